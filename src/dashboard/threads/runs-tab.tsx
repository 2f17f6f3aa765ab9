import { useRef, useState } from "preact/hooks";
import { cancelRun, createRun, deleteRun, findRuns } from "../api/client.ts";
import { hasRunEnded, isJsonRecord, type Run } from "../api/records.ts";
import { now } from "../app/clock.ts";
import { runHref, threadHref } from "../app/page-location.ts";
import { runAction, showNotice } from "../app/notices.ts";
import type { ThreadSubscription } from "../live/thread-subscription.ts";
import { resumeValueOf, extractAnswersById, userNameOfRun } from "../live/answer-requests.ts";
import { pausedRunOf, pauseLabel } from "../live/paused-run.ts";
import { findRepeatObstacle } from "../live/repeat-obstacle.ts";
import { repeatRequestOf, resumeRequestOf } from "../live/repeat-and-resume-requests.ts";
import { queueTimeMs, runDurationMs, type RunTimes } from "../live/run-times.ts";
import { RUN_STATUS_TEXTS } from "../live/status-texts.ts";
import { ActionButton } from "../components/action-button.tsx";
import { ConfirmDialog } from "../components/dialogs.tsx";
import { EmptyState } from "../components/empty-state.tsx";
import { formatDuration } from "../components/duration.ts";
import { Age } from "../components/age.tsx";
import { useResource } from "../components/use-resource.ts";
import { StatusBadge } from "../components/status-badge.tsx";
import { RepeatButton } from "../run/repeat-button.tsx";
import { SlowestNodeLink } from "../run/slowest-node-link.tsx";
import { idSuffix } from "../components/one-line-text.ts";

/** The largest number of runs whose start and end are read. */
const MAX_TIMES = 100;

/**
 * The tab with the runs of a thread. Queued runs are shown with their position in the queue, such as "next" or "2nd".
 */
export function RunsTab({ watch }: { readonly watch: ThreadSubscription }) {
  const [deleting, setDeleting] = useState<Run | null>(null);
  const [marked, setMarked] = useState<readonly string[]>([]);
  const list = useRef<HTMLUListElement>(null);
  const runs = watch.runs.value;
  const record = watch.record.value;
  const waiting = record === null ? null : pausedRunOf(record, runs);
  // Without a next node, the run failed before it planned a task, so there is nothing to resume.
  const isFailed = record?.status === "error" && (watch.state.value?.next ?? []).length > 0;
  /** The thread's latest run if it failed and another run can continue it. */
  const resumable = isFailed ? runs.slice(0, 1).find(hasRunEnded) : undefined;
  const times = useResource(
    () => readTimes(watch.id, runs.length),
    [runs.map(({ run_id, status }) => `${run_id} ${status}`).join()],
  );
  const queue = watch.queue.map(({ run_id }) => run_id);
  if (runs.length === 0)
    return (
      <EmptyState title="No runs yet">
        <a href={threadHref(watch.id)}>Start a run</a>
      </EmptyState>
    );
  const act = (work: () => Promise<unknown>, said: string) =>
    runAction(async () => {
      await work();
      showNotice(said);
      watch.refresh();
    });
  const mark = (id: string) =>
    setMarked(marked.includes(id) ? marked.filter((one) => one !== id) : [...marked, id].slice(-2));
  const [first, second] = marked;
  return (
    <div class="pad">
      <div class="bar">
        <p class="dim space">
          {runs.length}
          {watch.hasMoreRuns && "+"} {runs.length === 1 ? "run" : "runs"}
          {watch.queued > 0 && `, ${watch.queued} queued`}.{runs.length > 1 && " Select two to compare them."}
        </p>
        {first !== undefined && second !== undefined && (
          <a class="button primary" href={runHref(watch.id, first, { with: second })}>
            Compare
          </a>
        )}
      </div>
      <ul class="runs" ref={list} tabIndex={-1}>
        {runs.map((run) => (
          <li key={run.run_id} class="card">
            <input
              type="checkbox"
              aria-label={`Compare run ${run.run_id}`}
              checked={marked.includes(run.run_id)}
              onChange={() => mark(run.run_id)}
            />
            <a class="main" href={runHref(watch.id, run.run_id)}>
              {waiting?.run === run.run_id ? (
                <StatusBadge of="interrupted" words={pauseLabel(waiting)} />
              ) : (
                <StatusBadge of={run.status} words={RUN_STATUS_TEXTS[run.status]} />
              )}
              <code>…{idSuffix(run.run_id)}</code>
              {queue.includes(run.run_id) && (
                <span class="place">{placeOf(queue.indexOf(run.run_id))} in the queue</span>
              )}
              <span class="what">{inputSummary(run)}</span>
            </a>
            <span class="dim">
              {userNameOfRun(run) !== null && `by ${userNameOfRun(run)} · `}
              <Age since={run.created_at} isAgo />
              <Duration times={times.value?.get(run.run_id)} />
              <SlowestNodeLink run={run} label=" · slowest node: " />
            </span>
            <span class="actions">
              {waiting?.run === run.run_id && (
                <a class="button primary" href={threadHref(watch.id)}>
                  {waiting.questions.length > 0 ? "Answer" : "Resume"}
                </a>
              )}
              {hasRunEnded(run) ? (
                <>
                  {run === resumable && (
                    <ActionButton
                      class="primary"
                      title="Retries the failed tasks from the last checkpoint"
                      onAct={() =>
                        act(
                          () => createRun(watch.id, resumeRequestOf(run)),
                          "A new run continues from the last checkpoint.",
                        )
                      }
                    >
                      Resume
                    </ActionButton>
                  )}
                  <RepeatButton
                    run={run}
                    obstacle={record === null ? null : findRepeatObstacle(run, record)}
                    isQuiet
                    onRepeat={(notice) => act(() => createRun(watch.id, repeatRequestOf(run)), notice)}
                  />
                  <button type="button" class="quiet" onClick={() => setDeleting(run)}>
                    Delete
                  </button>
                </>
              ) : (
                <ActionButton
                  class="danger"
                  onAct={() => act(() => cancelRun(watch.id, run.run_id, "interrupt"), "Run cancelled.")}
                >
                  Cancel
                </ActionButton>
              )}
            </span>
          </li>
        ))}
      </ul>
      {deleting !== null && (
        <ConfirmDialog
          title="Delete the run?"
          text="This permanently deletes the run, its events and the states that it made."
          yes="Delete"
          onYes={async () => {
            const isDeleted = await act(() => deleteRun(watch.id, deleting.run_id), "Run deleted.");
            // The focused button has been removed together with its row, so the list gets the focus.
            if (isDeleted) list.current?.focus();
          }}
          onClose={() => setDeleting(null)}
        />
      )}
    </div>
  );
}

/** Reads the start and end of the newest runs of a thread, by run id. */
async function readTimes(thread: string, most: number): Promise<ReadonlyMap<string, RunTimes>> {
  if (most === 0) return new Map();
  const { runs } = await findRuns({ thread_id: thread }, Math.min(most, MAX_TIMES), null);
  return new Map(runs.map((run) => [run.run_id, run]));
}

/** How long a run has been executed, with its time in the queue as a tooltip. Empty if the run has not started. */
function Duration({ times }: { readonly times: RunTimes | undefined }) {
  const duration = times === undefined ? null : runDurationMs(times, now.value);
  if (times === undefined || duration === null) return null;
  return (
    <span title={`Queue time: ${formatDuration(queueTimeMs(times, now.value))}`}>
      {" · "}
      {formatDuration(duration)}
    </span>
  );
}

const placeOf = (index: number): string => ["next", "2nd", "3rd"][index] ?? `${index + 1}th`;

/** Formats the input of a run, or the answers that it gives, as one line. */
export function inputSummary(run: Run): string {
  const { input, command } = run.kwargs;
  const [answer, ...others] = extractAnswersById(isJsonRecord(command) ? command["resume"] : null) ?? [];
  const answered = answer !== undefined && others.length === 0 ? answer : resumeValueOf(run);
  const given = answered ?? command ?? input;
  if (given === null || given === undefined) return "no input (continues)";
  const text = `${answered === undefined ? "" : "answer: "}${JSON.stringify(given)}`;
  return text.length > 120 ? `${text.slice(0, 119)}…` : text;
}
