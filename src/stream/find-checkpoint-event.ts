import { eventCountOf } from "../model/run-event.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Journal } from "../ports/journal.ts";

/** How many chunks are read at a time. */
const CHUNKS_PER_READ = 64;

/**
 * Finds the checkpoint of the root graph in the event log of a run, and returns the id of the last event that shows the checkpoint; -1 if
 * the checkpoint is not in the log.
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
