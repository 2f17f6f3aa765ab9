import { findRuns } from "../api/client.ts";
import { type ApiRunStatus, hasRunEnded, type Run } from "../api/records.ts";
import { hrefOf } from "../app/page-location.ts";
import { RUN_STATUS_TEXTS } from "../live/status-texts.ts";

/** The runs that one bulk action has started. */
export interface StartedRuns {
  /** The value of `batch` in the metadata of these runs. */
  readonly batch: string;
  /** The run that was started first. */
  readonly first: Run;
  /** The status of each of these runs, by run id. */
  readonly statuses: ReadonlyMap<string, ApiRunStatus>;
}

/**
 * Returns a new id for the runs of one bulk action. It begins with a letter, because the filter `batch={id}` would read
 * an id of digits as a number.
 */
export function newBatchId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return `b${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** Reads the current statuses of the started runs. `most`: the largest number of runs to read. */
export async function readStartedRuns(started: StartedRuns, most: number): Promise<StartedRuns> {
  const { batch, first } = started;
  // With `created_after`, the server does not search through all older runs.
  const created_after = new Date(Date.parse(first.created_at) - 1).toISOString();
  const { runs } = await findRuns({ metadata: { batch }, created_after }, most, null);
  return { ...started, statuses: new Map(runs.map(({ run_id, status }) => [run_id, status])) };
}

export const haveAllRunsEnded = ({ statuses }: StartedRuns): boolean =>
  [...statuses.values()].every((status) => hasRunEnded({ status }));

/**
 * Shows how many runs a bulk action has started, in total and by status. Each number is a link to the list of these
 * runs.
 */
export function StartedRunsSummary({ started: { batch, statuses } }: { readonly started: StartedRuns }) {
  const all = [...statuses.values()];
  const of = `batch=${batch}`;
  const counted = (Object.keys(RUN_STATUS_TEXTS) as ApiRunStatus[])
    .map((status) => ({ status, count: all.filter((one) => one === status).length }))
    .filter(({ count }) => count > 0);
  return (
    <p class="started-runs" role="status">
      <a href={hrefOf(["runs"], { of })}>
        {all.length} {all.length === 1 ? "run" : "runs"} started
      </a>
      {counted.map(({ status, count }, i) => (
        <span key={status}>
          {i === 0 ? ": " : ", "}
          <a href={hrefOf(["runs"], { of, status })}>
            {count} {RUN_STATUS_TEXTS[status]}
          </a>
        </span>
      ))}
    </p>
  );
}
