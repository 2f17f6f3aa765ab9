import { noFailpoints } from "../../src/ports/failpoints.ts";
import { openStorage } from "../../src/storage/open-storage.ts";
import { chunkEnd } from "../../src/model/run-event.ts";
import { isTerminal } from "../../src/model/run.ts";
import { recordsGrow } from "../chaos/checkers/machines.ts";
import { indexesAgree } from "../chaos/checkers/stored.ts";
import { readAll, type Snapshot } from "../chaos/snapshot.ts";
import { SimulatedClock } from "./clock.ts";
import { Disk } from "./disk.ts";
import type { Observed } from "./observed.ts";
import { SimulatedRandom } from "./random.ts";
import { SimulatedScheduler } from "./scheduler.ts";

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/**
 * Reads the data that a server has left on its disk, and checks that it is consistent: each run that has not ended is
 * its thread's active one, queued or delayed; a run that has ended is none of these; the index of active threads lists
 * the threads with work; and the event log of a run is as long as its record states.
 */
export async function checkConsistency(disk: Disk, clock: SimulatedClock, observed: Observed): Promise<void> {
  const random = new SimulatedRandom(1);
  // Only this reader's clock advances: a server that died in its first steps has left an empty disk, and opening that
  // writes to it.
  const own = new SimulatedClock(clock.now());
  const scheduler = new SimulatedScheduler(own);
  const copy = new Disk(random, null, disk.values);
  const opening = openStorage(
    { kind: "key-value", store: copy.mount(scheduler) },
    { scheduler, clock: own, failpoints: noFailpoints, logger: silent },
  );
  const [storage] = await Promise.all([opening, scheduler.untilIdle()]);
  const snapshot = await readAll(storage.journal, storage.catalog);
  for (const { invariant, message } of [...indexesAgree(snapshot), ...recordsGrow(snapshot)])
    observed.violation(invariant, message);
  for (const fault of faultsOfLogs(snapshot, observed.powerCuts > 0)) observed.violation("I4", fault);
  scheduler.kill();
}

/**
 * `hasGaps`: after a power cut a run's next attempt continues at its reserved id, far above the events that may be
 * lost.
 */
function* faultsOfLogs({ threads }: Snapshot, hasGaps: boolean): Generator<string> {
  for (const { runs } of threads) {
    for (const { record, chunks, nextEvent } of runs) {
      let next = 0;
      for (const chunk of chunks) {
        if (hasGaps ? chunk.first < next : chunk.first !== next) {
          yield `run ${record.run_id}: a stored chunk begins at event ${chunk.first}, ${next} was due`;
        }
        next = chunkEnd(chunk);
      }
      const end = isTerminal(record.status) ? record.next_event : nextEvent;
      if (chunks.length > 0 && (end !== next || nextEvent !== next)) {
        yield `run ${record.run_id} (${record.status}): its events end at ${next}, but ${end} is recorded as the next`;
      }
    }
  }
}
