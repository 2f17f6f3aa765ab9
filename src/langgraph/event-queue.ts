import { plainError, type PlainError } from "../model/errors.ts";
import type { Position } from "../ports/engine.ts";
import type { Stage } from "../ports/engine-host.ts";
import type { Called, Callee } from "./intercepted-call.ts";
import type { RawCheckpoint, RawWrites } from "./saver-records.ts";
import type { SaverIo } from "./saver.ts";
import type { StoredIds } from "./stored-ids.ts";

/** What LangGraph does, in the order in which it does it. */
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

/** Hears all that LangGraph does for one attempt, by whatever door, and passes it on in order, turn by turn. */
export class Ear implements Callee, SaverIo {
  readonly ids: StoredIds;
  readonly #stage: Stage;
  readonly #position: Position;
  readonly #takeIn: (heard: readonly Heard[]) => void;
  /** Told of what is read of graphs within. */
  found: (ns: string, position: Position) => void = () => undefined;
  /** Asked first where a graph stands; undefined: where it is stored. */
  begin: (ns: string, id: string | null) => Promise<Position | null> | undefined = () => undefined;
  #heard: Heard[] = [];
  #listening = false;
  #stopped = false;
  #over = false;

  constructor(ids: StoredIds, stage: Stage, position: Position, takeIn: (heard: readonly Heard[]) => void) {
    this.ids = ids;
    this.#stage = stage;
    this.#position = position;
    this.#takeIn = takeIn;
  }

  /** The attempt is over: nothing reaches it any more. */
  get over(): boolean {
    return this.#over;
  }

  /** The run was told to stop. */
  stop(): void {
    this.#stopped = true;
  }

  close(): void {
    this.#over = true;
  }

  // --- its saver ---

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
    // Who was told to stop and throws has stopped: that is no error of the task's.
    if (this.#stopped && raw.isError) return;
    this.#hear({ kind: "writes", raw });
  }

  // --- its nodes ---

  /** A node is called. It waits until the task's actor runs it. */
  called(called: Called): void {
    if (this.#over || this.#stopped) called.drop();
    else this.#hear({ kind: "called", called });
  }

  // --- its stream ---

  chunk(ns: readonly string[], mode: string, payload: unknown): void {
    if (!this.#stopped) this.#hear({ kind: "chunk", ns, mode, payload });
  }

  /** The graph has come to its end. */
  finished(thrown: { readonly error: unknown } | null): void {
    this.#hear({ kind: "ended", error: thrown === null ? null : plainError(thrown.error) });
  }

  /** Resolves once all that has happened so far is taken in. */
  takenIn(): Promise<void> {
    return new Promise((resolve) => this.#stage.soon(() => this.#stage.soon(resolve)));
  }

  #hear(heard: Heard): void {
    this.#heard.push(heard);
    if (this.#listening) return;
    this.#listening = true;
    // LangGraph goes on by promises alone until it waits for a body: after this turn it stands.
    this.#stage.soon(() => {
      this.#listening = false;
      const all = this.#heard;
      this.#heard = [];
      if (!this.#over) this.#takeIn(all);
    });
  }
}
