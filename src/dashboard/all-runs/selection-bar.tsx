import { useMemo, useState } from "preact/hooks";
import type { FoundRun } from "../api/records.ts";
import { runAction } from "../app/notices.ts";
import { ActionButton } from "../components/action-button.tsx";
import { ConfirmDialog } from "../components/dialogs.tsx";
import { useResource } from "../components/use-resource.ts";
import {
  findResumeObstacle,
  resumeObstaclesByRun,
  type ResumeObstacle,
  resumableCount,
  resumeSummary,
} from "./resume-obstacle.ts";
import { planRepeat, runsToRepeat, type RepeatPlan, repeatSummary } from "./bulk-repeat-plan.ts";
import type { BulkRunAction } from "./run-actions.ts";

interface SelectionBarProps {
  readonly selected: readonly FoundRun[];
  readonly isBusy: boolean;
  readonly onAction: (action: BulkRunAction) => void;
  readonly onClear: () => void;
}

/** A bar with the actions for the selected runs: resume, run again, cancel, delete. */
export function SelectionBar({ selected, isBusy, onAction, onClear }: SelectionBarProps) {
  const [isDeleting, setDeleting] = useState(false);
  const [repeating, setRepeating] = useState<RepeatPlan | null>(null);
  /** Runs the selected runs again. Asks for confirmation first if this starts several runs, or drops or may drop a question. */
  const repeat = async () => {
    const plan = await planRepeat(selected);
    if (runsToRepeat(plan).length > 1 || plan.unanswered.size > 0 || plan.queued.size > 0) setRepeating(plan);
    else onAction("retry");
  };
  // Kept by run id: otherwise, selecting one more row would read the threads of all selected runs again.
  const known = useMemo(() => new Map<string, Promise<ResumeObstacle | null>>(), []);
  const obstacleOf = (run: FoundRun) => {
    const found = known.get(run.run_id) ?? findResumeObstacle(run);
    known.set(run.run_id, found);
    found.catch(() => known.delete(run.run_id));
    return found;
  };
  const obstacles = useResource(
    () => resumeObstaclesByRun(selected, obstacleOf),
    [selected.map(({ run_id }) => run_id).join()],
  );
  const counted = obstacles.isReading || obstacles.error !== null ? undefined : obstacles.value;
  return (
    <div class="chosen" role="group" aria-label="Selected runs">
      <div class="bar">
        <strong>{selected.length} selected</strong>
        <button
          type="button"
          aria-describedby="about-resume"
          disabled={isBusy || (counted !== undefined && resumableCount(counted) === 0)}
          onClick={() => onAction("resume")}
        >
          Resume
        </button>
        <ActionButton aria-describedby="about-retry" isDisabled={isBusy} onAct={() => runAction(repeat)}>
          Run again
        </ActionButton>
        <button type="button" disabled={isBusy} onClick={() => onAction("cancel")}>
          Cancel
        </button>
        <button type="button" class="danger" disabled={isBusy} onClick={() => setDeleting(true)}>
          Delete
        </button>
        <button type="button" class="quiet" onClick={onClear}>
          Clear selection
        </button>
      </div>
      <p class="hint" id="about-resume">
        <em>Resume</em> continues each thread from its last checkpoint: tasks that succeeded do not run again.{" "}
        {counted === undefined ? (obstacles.error ?? "Loading…") : resumeSummary(counted)}
      </p>
      <p class="hint" id="about-retry">
        <em>Run again</em> sends the same input again, to the thread's current state: all tasks run.
      </p>
      {repeating !== null && (
        <ConfirmDialog
          title={`Run ${runsToRepeat(repeating).length} ${runsToRepeat(repeating).length === 1 ? "run" : "runs"} again?`}
          text={`${repeatSummary(repeating)} The input of each is sent again, to the current state of its thread: all tasks run.`}
          yes="Run again"
          onYes={() => onAction("retry")}
          onClose={() => setRepeating(null)}
        />
      )}
      {isDeleting && (
        <ConfirmDialog
          title={`Delete ${selected.length === 1 ? "the run" : `${selected.length} runs`}?`}
          text="This permanently deletes them, their events and the states that they made."
          yes="Delete"
          onYes={() => onAction("delete")}
          onClose={() => setDeleting(false)}
        />
      )}
    </div>
  );
}
