import type { CheckpointMetadata } from "@langchain/langgraph-checkpoint";
import type { CheckpointHead } from "../model/checkpoint.ts";
import type { ExecutionServices } from "../ports/engine.ts";
import type { CheckpointPayload } from "./graph-progress.ts";
import { storedLangGraphData } from "./checkpoint-records.ts";

/**
 * Maps the checkpoint ids that LangGraph makes to the ids under which the checkpoints are stored. The two differ if LangGraph's id is not
 * greater than all earlier ids of the thread, for example because the wall clock was set back. LangGraph continues to use its own id, and
 * derives task ids from it, so that id is stored with the checkpoint.
 */
export class CheckpointIdMap {
  readonly #source: Pick<ExecutionServices, "checkpointId">;
  /** The ids under which checkpoints are stored, by LangGraph's ids. Contains only checkpoints for which the two differ. */
  readonly #stored = new Map<string, string>();

  constructor(source: Pick<ExecutionServices, "checkpointId">) {
    this.#source = source;
  }

  /** The id under which to store a checkpoint that LangGraph has made with the id `own`. */
  idForNew(own: string, step: number): string {
    const known = this.#stored.get(own);
    if (known !== undefined) return known;
    const id = this.#source.checkpointId(step, own);
    if (id !== own) this.#stored.set(own, id);
    return id;
  }

  /** Remembers LangGraph's id of a stored checkpoint, if it differs from the id under which the checkpoint is stored. */
  noteStored({ id, engine }: CheckpointHead): void {
    const own = storedLangGraphData(engine)?.id;
    if (own !== undefined) this.#stored.set(own, id);
  }

  /** The id under which a checkpoint is stored. `id`: LangGraph's id, or the stored id. */
  storedIdOf(id: string): string {
    return this.#stored.get(id) ?? id;
  }

  /** The stored id of a checkpoint that LangGraph streams. */
  storedIdOfPayload({ config }: Pick<CheckpointPayload, "config">): string {
    return this.storedIdOf(config.configurable?.checkpoint_id ?? "");
  }

  /** The metadata of a checkpoint, with stored ids in `parents` (the checkpoints of the graphs around the checkpoint's graph). */
  withStoredIds(own: CheckpointMetadata): CheckpointMetadata {
    if (this.#stored.size === 0) return own;
    const parents = Object.entries(own.parents ?? {}).map(([ns, id]) => [ns, this.storedIdOf(id)]);
    return { ...own, parents: Object.fromEntries(parents) as CheckpointMetadata["parents"] };
  }
}
