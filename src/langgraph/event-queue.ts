import type { StreamEvent } from "@langchain/core/tracers/log_stream";
import { toPlainError, type PlainError } from "../model/errors.ts";
import type { CheckpointWithState } from "../ports/engine.ts";
import type { EngineHost } from "../ports/engine-host.ts";
import type { InterceptedCall, CallReceiver } from "./intercepted-call.ts";
import type { SaverCheckpoint, SaverWrites } from "./saver-inputs.ts";
import type { SaverIo } from "./checkpoint-saver.ts";
import type { CheckpointIdMap } from "./checkpoint-id-map.ts";

/** An event of LangGraph's execution. */
export type LangGraphEvent =
  | {
      readonly kind: "chunk";
      readonly ns: readonly string[];
      readonly mode: string;
      readonly payload: unknown;
    }
  | { readonly kind: "event"; readonly event: StreamEvent }
  | { readonly kind: "put"; readonly raw: SaverCheckpoint }
  | { readonly kind: "writes"; readonly raw: SaverWrites }
  | { readonly kind: "called"; readonly called: InterceptedCall }
  | { readonly kind: "ended"; readonly error: PlainError | null };

/**
 * Queue of all events of one attempt: LangGraph's calls of its saver and of nodes, and its streamed chunks. It delivers them in order, in
 * one batch for each turn of the event loop.
 */
export class LangGraphEventQueue implements CallReceiver, SaverIo {
  readonly ids: CheckpointIdMap;
  readonly #stage: EngineHost;
  readonly #position: CheckpointWithState;
  readonly #takeIn: (events: readonly LangGraphEvent[]) => void;
  /** Called when LangGraph reads a stored checkpoint of a subgraph. `position`: the checkpoint, its state and its pending writes. */
  onRead: (ns: string, position: CheckpointWithState) => void = () => undefined;
  /** Called at each read of a checkpoint. If it returns undefined, the stored checkpoint is read. */
  branchPosition: (ns: string, id: string | null) => Promise<CheckpointWithState | null> | undefined = () =>
    undefined;
  #events: LangGraphEvent[] = [];
  #isScheduled = false;
  #stopped = false;
  #over = false;

  constructor(
    ids: CheckpointIdMap,
    stage: EngineHost,
    position: CheckpointWithState,
    takeIn: (events: readonly LangGraphEvent[]) => void,
  ) {
    this.ids = ids;
    this.#stage = stage;
    this.#position = position;
    this.#takeIn = takeIn;
  }

  /** True if the attempt is over. Then no further events are delivered. */
  get over(): boolean {
    return this.#over;
  }

  /** Stops the run: further chunks, events and node calls are ignored. Checkpoints and writes are still taken. */
  stop(): void {
    this.#stopped = true;
  }

  close(): void {
    this.#over = true;
  }

  // --- calls of the saver ---

  async read(ns: string, id: string | null): Promise<CheckpointWithState | null> {
    const { head } = this.#position;
    const begun = this.branchPosition(ns, id);
    if (begun !== undefined) return begun;
    const own = ns === "" && head !== null && head.id === id;
    const position = own ? this.#position : await this.#stage.read(ns, id);
    if (position !== null && ns !== "") this.onRead(ns, position);
    return position;
  }

  history(
    ns: string,
    query: { readonly before?: string; readonly limit: number },
  ): Promise<readonly CheckpointWithState[]> {
    return this.#stage.history({ ns, ...query });
  }

  put(raw: SaverCheckpoint): void {
    if (!this.#over) this.#push({ kind: "put", raw });
  }

  putWrites(raw: SaverWrites): void {
    if (this.#over) return;
    // After a stop, the error of a task is ignored: the task has not failed, it was only stopped.
    if (this.#stopped && raw.isError) return;
    this.#push({ kind: "writes", raw });
  }

  // --- calls of the nodes ---

  /** Adds LangGraph's call of a node. The call waits until the actor of its task runs the node function. */
  called(called: InterceptedCall): void {
    if (this.#over || this.#stopped) called.drop();
    else this.#push({ kind: "called", called });
  }

  // --- the stream ---

  chunk(ns: readonly string[], mode: string, payload: unknown): void {
    if (!this.#stopped) this.#push({ kind: "chunk", ns, mode, payload });
  }

  /** Adds an event that LangChain's `streamEvents` has yielded. */
  event(event: StreamEvent): void {
    if (!this.#stopped) this.#push({ kind: "event", event });
  }

  /** Adds the end of the graph. `thrown`: the error that the graph threw; null if it ended without an error. */
  finished(thrown: { readonly error: unknown } | null): void {
    this.#push({ kind: "ended", error: thrown === null ? null : toPlainError(thrown.error) });
  }

  /** Resolves when all events that were added so far have been delivered. */
  whenDelivered(): Promise<void> {
    return new Promise((resolve) => this.#stage.soon(() => this.#stage.soon(resolve)));
  }

  #push(events: LangGraphEvent): void {
    this.#events.push(events);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    // Delivers the events in the next turn of the event loop. LangGraph plans a step in promise callbacks, before that turn, so all events
    // of the step are then in the queue.
    this.#stage.soon(() => {
      this.#isScheduled = false;
      const all = this.#events;
      this.#events = [];
      if (!this.#over) this.#takeIn(all);
    });
  }
}
