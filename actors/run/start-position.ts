import { ServiceError } from "../../src/model/errors.ts";
import type { RunRecord } from "../../src/model/run.ts";
import { rootCheckpointOf, type SubgraphCheckpoint } from "../../src/model/start-checkpoint.ts";
import type { CheckpointWithState } from "../../src/ports/engine.ts";
import { andThen, type Eventually } from "../../src/ports/eventually.ts";
import type { LiveThread } from "../thread/live-thread.ts";

/**
 * The position from which an attempt starts: the checkpoint that the run names, or the thread's latest checkpoint if
 * the run names none or has already made one.
 * @throws ServiceError `checkpoint.not_found` when the named checkpoint was deleted after the run was admitted
 */
export function startPosition(
  liveThread: LiveThread,
  { run_id, kwargs }: RunRecord,
): Eventually<CheckpointWithState> {
  const latest = liveThread.position();
  const named = rootCheckpointOf(kwargs.config.configurable);
  if (named === null) return latest;
  return andThen(latest, (position) => {
    const { head } = position;
    if (head?.run_id === run_id || head?.id === named) return position;
    return positionAtCheckpoint(liveThread, { ns: "", id: named });
  });
}

/** The state at a checkpoint from which an admitted run starts. Throws the errors of {@link startPosition}. */
export function positionAtCheckpoint(
  liveThread: LiveThread,
  { ns, id }: SubgraphCheckpoint,
): Eventually<CheckpointWithState> {
  liveThread.noteCheckpointId(id);
  return andThen(liveThread.positionAt(id, ns), (found) => {
    if (found !== undefined) return found;
    throw new ServiceError("checkpoint.not_found", `Checkpoint ${id} no longer exists`);
  });
}
