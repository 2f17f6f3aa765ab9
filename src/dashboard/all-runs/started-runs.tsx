import { findRuns } from "../api/client.ts";
import { type ApiRunStatus, hasRunEnded, type Run } from "../api/records.ts";
import { hrefOf } from "../app/page-location.ts";
import { RUN_STATUS_TEXTS } from "../live/status-texts.ts";

/** The runs that one bulk action has started. */
export interface StartedRuns {
  /** The id in the metadata of each of them. */
  readonly batch: string;
  /** The first of them. */
  readonly first: Run;
  /** How each of them is doing, by its id. */
  readonly statuses: ReadonlyMap<string, ApiRunStatus>;
}

/** Returns a new id for the runs of one action. It begins with a letter, so that the search takes it as text. */
export function newBatchId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return `b${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** Reads how the runs are doing. `most`: how many there are at most. */
export async function readStartedRuns(started: StartedRuns, most: number): Promise<StartedRuns> {
  const { batch, first } = started;
  // With `created_after`, the server need not search through all older runs.
  const created_after = new Date(Date.parse(first.created_at) - 1).toISOString();
  const { runs } = await findRuns({ metadata: { batch }, created_after }, most, null);
  return { ...started, statuses: new Map(runs.map(({ run_id, status }) => [run_id, status])) };
}

export const areAllDone = ({ statuses }: StartedRuns): boolean =>
  [...statuses.values()].every((status) => hasRunEnded({ status }));

/** The number of runs that an action has started, in total and by status. Each number links to these runs. */
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
