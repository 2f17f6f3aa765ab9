import type { Task } from "../live/trace.ts";
import { formatDuration } from "../components/duration.ts";
import { errorLine } from "../components/one-line-text.ts";
import { taskDurationMs } from "./timeline-rows.ts";

interface RunFindingsProps {
  readonly failed: Task | null;
  /** The error of the run; null if it did not fail. */
  readonly error: { readonly error: string; readonly message: string } | null;
  readonly slowest: Task | null;
  readonly onChoose: (task: Task) => void;
}

/** What stands out in a run: its failed task and error, and its slowest task. */
export function RunFindings({ failed, error, slowest, onChoose }: RunFindingsProps) {
  const why = failed?.error ?? (error === null ? null : errorLine(error.error, error.message));
  return (
    <>
      {why !== null && (
        <div class="failure" role="alert">
          <span>
            {failed === null ? "The run failed: " : `${failed.name} failed: `}
            {why}
          </span>
          {failed !== null && (
            <button type="button" onClick={() => onChoose(failed)}>
              Open task
            </button>
          )}
        </div>
      )}
      {slowest !== null && (
        <p class="dim findings">
          Slowest node:{" "}
          <button type="button" class="quiet link" onClick={() => onChoose(slowest)}>
            {slowest.name}
          </button>
          , {formatDuration(taskDurationMs(slowest) ?? 0)}
          {slowest.status === "stopped" && ", until it was stopped"}
        </p>
      )}
    </>
  );
}
