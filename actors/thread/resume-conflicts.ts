import { ServiceError } from "../../src/model/errors.ts";
import { graphCommandOf, type RunRecord } from "../../src/model/run.ts";
import { answersById, isResume } from "../../src/graph/interrupts.ts";
import type { LiveThread } from "./live-thread.ts";

/**
 * Refuses a run that answers an interrupt for which another run, in progress or waiting, already has an answer.
 * `ahead`: the runs before this run, in order.
 * @throws ServiceError `resume.conflict`, `resume.invalid`
 */
export function refuseConflictingResume(
  { record }: LiveThread,
  run: RunRecord,
  ahead: readonly RunRecord[],
): void {
  const command = graphCommandOf(run.kwargs);
  if (command === null || !isResume(command) || startsElsewhere(run)) return;
  const openIds = new Set(Object.values(record.interrupts).flatMap((list) => list.map(({ id }) => id)));
  const left = unanswered(openIds, ahead);
  const ids = answersById(command.resume)?.keys();
  if (ids === undefined) {
    if (openIds.size > 0 && left?.size === 0) throw conflict([...openIds][0]);
    // An answer without an id may be for an interrupt that a run ahead will raise, so the answer is checked when the
    // run starts.
    return;
  }
  for (const id of ids) {
    if (!openIds.has(id)) throw new ServiceError("resume.invalid", `No interrupt ${id} waits for an answer`);
    if (!left?.has(id)) throw conflict(id);
  }
}

const conflict = (id: string | undefined) =>
  new ServiceError(
    "resume.conflict",
    `Interrupt ${id} is answered, or moved past, by another run of the thread`,
  );

/**
 * The interrupts that these runs do not answer. Null if one of these runs starts with a new input or from another
 * checkpoint: after that run, none of the interrupts waits any more.
 */
function unanswered(openIds: ReadonlySet<string>, ahead: readonly RunRecord[]): Set<string> | null {
  const left = new Set(openIds);
  for (const run of ahead) {
    // The answers of a run that is rolled back do not count.
    if (run.cancel === "rollback") continue;
    const command = graphCommandOf(run.kwargs);
    const { input } = run.kwargs;
    const isAnswer = command !== null && isResume(command);
    if (startsElsewhere(run) || (!isAnswer && (command !== null || input !== null))) return null;
    if (!isAnswer) continue;
    const ids = answersById(command.resume)?.keys();
    if (ids !== undefined) for (const id of ids) left.delete(id);
    // An answer without an id answers the only open interrupt. If several are open, such an answer is ambiguous and
    // fails, so it answers none.
    else if (left.size === 1) left.clear();
  }
  return left;
}

/** True when the run names the checkpoint that it starts from. The interrupts at that checkpoint are not known here. */
const startsElsewhere = ({ kwargs }: RunRecord): boolean =>
  typeof kwargs.config.configurable["checkpoint_id"] === "string";
