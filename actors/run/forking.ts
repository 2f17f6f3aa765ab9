import { ServiceError } from "../../src/model/errors.ts";
import type { RunRecord } from "../../src/model/run.ts";
import type { Position } from "../../src/ports/engine.ts";
import { andThen, type Eventually } from "../../src/ports/eventually.ts";
import type { Cell } from "../thread/cell.ts";

/**
 * Where an attempt of the run starts: at the thread's latest checkpoint, or at the one that the run names, as long as it has
 * made none of its own.
 * @throws ServiceError `checkpoint.not_found` when that has been taken back since the run was admitted
 */
export function positionFor(cell: Cell, { run_id, kwargs }: RunRecord): Eventually<Position> {
  const latest = cell.position();
  const { checkpoint_id: named } = kwargs.config.configurable;
  if (typeof named !== "string") return latest;
  return andThen(latest, (position) => {
    const { head } = position;
    if (head?.run_id === run_id || head?.id === named) return position;
    return andThen(cell.at(named), (found) => {
      if (found !== undefined) return found;
      throw new ServiceError("checkpoint.not_found", `Checkpoint ${named} is not there any more`);
    });
  });
}
