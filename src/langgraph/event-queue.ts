import { plainError, type PlainError } from "../model/errors.ts";
import type { Position } from "../ports/engine.ts";
import type { EngineHost } from "../ports/engine-host.ts";
import type { Called, Callee } from "./intercepted-call.ts";
import type { RawCheckpoint, RawWrites } from "./saver-records.ts";
import type { SaverIo } from "./saver.ts";
import type { StoredIds } from "./stored-ids.ts";

/** An event of LangGraph's execution. */
export type Heard =
  | {
      readonly kind: "chunk";
      readonly ns: readonly string[];
      readonly mode: string;
      readonly payload: unknown;
    }
  | { readonly kind: "put"; readonly raw: RawCheckpoint }
  | { readonly kind: "writes"; readonly raw: RawWrites }
  | { readonly kind: "called"; readonly called: Called }
  | { readonly kind: "ended"; readonly error: PlainError | null };

/**
 * Queue of all events of one attempt: what LangGraph puts to its saver, streams, and calls. It delivers them in order, in
 * one batch for each turn of the event loop.
 */
export class Ear implements Callee, SaverIo {
  readonly ids: StoredIds;
  readonly #stage: EngineHost;
  readonly #position: Position;
  readonly #takeIn: (heard: readonly Heard[]) => void;
  /** Called with each position of a subgraph that is read. */
  found: (ns: string, position: Position) => void = () => undefined;
  /** Called first on each read; undefined means that the stored position is read. */
  begin: (ns: string, id: string | null) => Promise<Position | null> | undefined = () => undefined;
  #heard: Heard[] = [];
  #listening = false;
  #stopped = false;
  #over = false;

  constructor(
    ids: StoredIds,
    stage: EngineHost,
    position: Position,
    takeIn: (heard: readonly Heard[]) => void,
  ) {
    this.ids = ids;
    this.#stage = stage;
    this.#position = position;
    this.#takeIn = takeIn;
  }

  /** True when the attempt is over: no further events are accepted. */
  get over(): boolean {
    return this.#over;
  }

  /** Stops the run: chunks and calls that come later are ignored. */
  stop(): void {
    this.#stopped = true;
  }

  close(): void {
    this.#over = true;
  }

  // --- calls of the saver ---

  async read(ns: string, id: string | null): Promise<Position | null> {
    const { head } = this.#position;
    const begun = this.begin(ns, id);
    if (begun !== undefined) return begun;
    const own = ns === "" && head !== null && head.id === id;
    const position = own ? this.#position : await this.#stage.read(ns, id);
    if (position !== null && ns !== "") this.found(ns, position);
    return position;
  }

  history(
    ns: string,
    query: { readonly before?: string; readonly limit: number },
  ): Promise<readonly Position[]> {
    return this.#stage.history({ ns, ...query });
  }

  put(raw: RawCheckpoint): void {
    if (!this.#over) this.#hear({ kind: "put", raw });
  }

  putWrites(raw: RawWrites): void {
    if (this.#over) return;
    // A task that throws after a stop was stopped: its error is not an error of the task.
    if (this.#stopped && raw.isError) return;
    this.#hear({ kind: "writes", raw });
  }

  // --- calls of the nodes ---

  /** Adds a node that LangGraph calls. The call waits until the task's actor runs it. */
  called(called: Called): void {
    if (this.#over || this.#stopped) called.drop();
    else this.#hear({ kind: "called", called });
  }

  // --- the stream ---

  chunk(ns: readonly string[], mode: string, payload: unknown): void {
    if (!this.#stopped) this.#hear({ kind: "chunk", ns, mode, payload });
  }

  /** Adds the end of the graph, with the error that it threw, if any. */
  finished(thrown: { readonly error: unknown } | null): void {
    this.#hear({ kind: "ended", error: thrown === null ? null : plainError(thrown.error) });
  }

  /** Resolves when all events so far have been delivered. */
  takenIn(): Promise<void> {
    return new Promise((resolve) => this.#stage.soon(() => this.#stage.soon(resolve)));
  }

  #hear(heard: Heard): void {
    this.#heard.push(heard);
    if (this.#listening) return;
    this.#listening = true;
    // Between two waits for node bodies, LangGraph runs on promises alone: at the end of this turn it is waiting.
    this.#stage.soon(() => {
      this.#listening = false;
      const all = this.#heard;
      this.#heard = [];
      if (!this.#over) this.#takeIn(all);
    });
  }
}
