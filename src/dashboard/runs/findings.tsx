import type { Task } from "../live/trace.ts";
import { lasting } from "../parts/status.tsx";
import { tookOf } from "./layout.ts";

interface FindingsProps {
  readonly failed: Task | null;
  /** Why the run failed. */
  readonly error: { readonly error: string; readonly message: string } | null;
  readonly slowest: Task | null;
  readonly onChoose: (task: Task) => void;
}

/** What one looks for first in a run: where and why it failed, and what took longest. */
export function Findings({ failed, error, slowest, onChoose }: FindingsProps) {
  const why = failed?.error ?? (error === null ? null : `${error.error}: ${error.message}`);
  return (
    <>
      {why !== null && (
        <div class="failure" role="alert">
          <span>
            {failed === null ? "It failed: " : `${failed.name} failed: `}
            {why}
          </span>
          {failed !== null && (
            <button type="button" onClick={() => onChoose(failed)}>
              Show where
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
          , {lasting(tookOf(slowest) ?? 0)}
          {slowest.status === "stopped" && ", until it was stopped"}
        </p>
      )}
    </>
  );
}
