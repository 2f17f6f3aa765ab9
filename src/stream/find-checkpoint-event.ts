import { eventCountOf } from "../model/run-event.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Journal } from "../ports/journal.ts";

const CHUNKS_PER_READ = 64;

/**
 * Returns the id of the last event that shows a checkpoint of the root graph; -1 if the run's event log does not contain the checkpoint.
 */
export async function checkpointEventId(
  journal: Journal,
  key: ThreadKey,
  run: string,
  checkpoint: string,
): Promise<number> {
  for (let after = -1; ;) {
    const chunks = await journal.events(key, run, after, CHUNKS_PER_READ);
    if (chunks.length === 0) return -1;
    for (const { first, facts } of chunks) {
      let id = first;
      for (const fact of facts) {
        id += eventCountOf(fact);
        if (fact.t === "checkpoint" && fact.ns === "" && fact.id === checkpoint) return id - 1;
      }
      after = id - 1;
    }
  }
}
