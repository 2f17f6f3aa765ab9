import type { CheckpointMetadata } from "@langchain/langgraph-checkpoint";
import type { CheckpointHead } from "../model/checkpoint.ts";
import type { Source } from "../ports/engine.ts";
import type { CheckpointPayload } from "./loop-checkpoints.ts";
import { langGraphPart } from "./checkpoint-records.ts";

/**
 * Checkpoints are ordered by their ids, and LangGraph makes those by the wall clock, which may be set back. A checkpoint whose
 * id is not above all earlier ones of its thread is stored under another that is. LangGraph goes on to know it by the id that it
 * made, and derives the ids of its tasks from that; so it is kept with the checkpoint.
 */
export class StoredIds {
  readonly #source: Pick<Source, "checkpointId">;
  /** By LangGraph's own ids, where they differ. */
  readonly #stored = new Map<string, string>();

  constructor(source: Pick<Source, "checkpointId">) {
    this.#source = source;
  }

  /** LangGraph has made a checkpoint: the id that it is stored under. */
  made(own: string, step: number): string {
    const known = this.#stored.get(own);
    if (known !== undefined) return known;
    const id = this.#source.checkpointId(step, own);
    if (id !== own) this.#stored.set(own, id);
    return id;
  }

  /** LangGraph reads a stored checkpoint. */
  read({ id, engine }: CheckpointHead): void {
    const own = langGraphPart(engine)?.id;
    if (own !== undefined) this.#stored.set(own, id);
  }

  /** The id that a checkpoint is stored under, by that or by LangGraph's own. */
  of(id: string): string {
    return this.#stored.get(id) ?? id;
  }

  /** The same of one that LangGraph tells of. */
  told({ config }: Pick<CheckpointPayload, "config">): string {
    return this.of(config.configurable?.checkpoint_id ?? "");
  }

  /** What LangGraph says of a checkpoint, which names those of the graphs around it. */
  metadata(own: CheckpointMetadata): CheckpointMetadata {
    if (this.#stored.size === 0) return own;
    const parents = Object.entries(own.parents ?? {}).map(([ns, id]) => [ns, this.of(id)]);
    return { ...own, parents: Object.fromEntries(parents) as CheckpointMetadata["parents"] };
  }
}
