import { type Signal, useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { findRuns, listThreads } from "../api/client.ts";
import {
  type ApiRunStatus,
  type Assistant,
  type FoundRun,
  hasRunEnded,
  type TokenPrices,
} from "../api/records.ts";
import { now } from "../app/clock.ts";
import { errorMessage, showError } from "../app/notices.ts";
import { hrefOf, runHref, threadHref } from "../app/page-location.ts";
import { EmptyState, ErrorAlert, Loading } from "../components/empty-state.tsx";
import { formatDuration } from "../components/duration.ts";
import { Age } from "../components/age.tsx";
import { StatusBadge } from "../components/status-badge.tsx";
import { idSuffix } from "../components/one-line-text.ts";
import { ApiKeyRequired, RequestError } from "../api-errors.ts";
import { SlowestNodeLink } from "../run/slowest-node-link.tsx";
import { tokenCostOf, formatCost, formatCount } from "../run/run-calls.ts";
import { PAUSE_LABELS } from "../live/paused-run.ts";
import { queueTimeMs, runDurationMs } from "../live/run-times.ts";
import { RUN_STATUS_TEXTS } from "../live/status-texts.ts";
import { usePolling } from "../components/use-polling.ts";
import { useScrollRestoration } from "../components/use-scroll-restoration.ts";
import { REPEAT_SKIP_TEXTS, planRepeat } from "./bulk-repeat-plan.ts";
import { RESUME_SKIP_TEXTS, resumeObstaclesByRun } from "./resume-obstacle.ts";
import { applyRunAction, type ActionResult, type BulkRunAction } from "./run-actions.ts";
import { cronFilterValue, runFilterOf } from "./run-filter.ts";
import { SelectionBar } from "./selection-bar.tsx";
import {
  haveAllRunsEnded,
  newBatchId,
  readStartedRuns,
  type StartedRuns,
  StartedRunsSummary,
} from "./bulk-started-runs.tsx";

const PAGE_SIZE = 50;
/** New runs are counted up to this number. */
const MAX_NEW_RUNS = 100;
/** Milliseconds between two checks for new and changed runs. */
const POLL_MS = 3_000;
/** The largest difference, in milliseconds, that is assumed between the clock of the page and that of the server. */
const CLOCK_DIFFERENCE_MS = 60_000;

interface Props {
  readonly query: URLSearchParams;
  /**
   * The ids of the selected runs. After a change of the filter, runs that the new list also contains stay selected.
   */
  readonly chosen: Signal<ReadonlySet<string>>;
  readonly assistants: readonly Assistant[];
  readonly prices: TokenPrices;
}

/**
 * A page of the list of runs. New runs are not inserted, so that no row moves under the pointer: a button shows their
 * number and loads them.
 */
export function AllRunsList({ query, chosen, assistants, prices }: Props) {
  const cursor = query.get("cursor");
  const rows = useSignal<readonly FoundRun[] | null>(null);
  const next = useSignal<string | null>(null);
  const error = useSignal<string | null>(null);
  /** Why the last bulk action failed as a whole. Unlike `error`, it is not cleared by a later read that succeeds. */
  const actionError = useSignal<string | null>(null);
  const fresh = useSignal(0);
  const results = useSignal<ReadonlyMap<string, ActionResult>>(new Map());
  /** The ids of the runs to which the last bulk action was applied. */
  const acted = useSignal<readonly string[]>([]);
  const working = useSignal<Progress | null>(null);
  /** The runs that the last bulk action has started. */
  const started = useSignal<StartedRuns | null>(null);
  /** The id of the run whose checkbox was clicked last. */
  const lastClicked = useRef<string | null>(null);
  /** The time when the list was read, in epoch milliseconds by the page's clock. */
  const loadedAt = useRef(0);

  const load = async () => {
    loadedAt.current = Date.now();
    const page = await findRuns(runFilterOf(query, Date.now()), PAGE_SIZE, cursor);
    rows.value = page.runs;
    next.value = page.next;
    fresh.value = 0;
    results.value = new Map();
    acted.value = [];
    started.value = null;
    actionError.value = null;
    const there = new Set(page.runs.map(({ run_id }) => run_id));
    chosen.value = new Set([...chosen.value].filter((id) => there.has(id)));
  };
  /** Updates the shown rows and, on the first page of the list, counts the new runs. */
  const look = async (shown: readonly FoundRun[]) => {
    const filter = runFilterOf(query, Date.now());
    const newest = shown[0]?.created_at;
    if (filter.paused === true) rows.value = await withoutResumed(shown);
    else if (newest !== undefined && shown.some((run) => !hasRunEnded(run) || run.paused_at !== null)) {
      // The status is left out of the filter, so that a run stays in view when its status changes.
      const { status: _, ...others } = filter;
      const until = new Date(Date.parse(newest) + 1).toISOString();
      const again = await findRuns({ ...others, created_before: until }, 2 * PAGE_SIZE, cursor);
      const found = new Map(again.runs.map((run) => [run.run_id, run]));
      rows.value = shown.map((run) => found.get(run.run_id) ?? run);
    }
    if (cursor !== null) return;
    // An empty list has no newest run from which to search. Searching all runs is fast only by status, because the
    // server has an index for statuses; and an old run may get the status now. Other searches, also for paused runs,
    // begin when the list was read.
    const sinceLoad = new Date(loadedAt.current - CLOCK_DIFFERENCE_MS).toISOString();
    const isIndexed = filter.status !== undefined && filter.paused === undefined;
    const { created_after: from } = filter;
    const since = newest ?? (isIndexed || (from !== undefined && from > sinceLoad) ? from : sinceLoad);
    const newer = since === undefined ? filter : { ...filter, created_after: since };
    const latest = await findRuns(newer, MAX_NEW_RUNS, null);
    const known = new Set(shown.map(({ run_id }) => run_id));
    fresh.value = latest.runs.filter(({ run_id }) => !known.has(run_id)).length;
  };
  const attempt = async (work: () => Promise<void>, shownAs = error) => {
    try {
      await work();
      shownAs.value = null;
    } catch (cause) {
      if (cause instanceof ApiKeyRequired) showError(cause);
      shownAs.value = isCursorFault(cause) ? "The address names no page of this list." : errorMessage(cause);
    }
  };
  const lookAtStarted = async () => {
    const before = started.peek();
    if (before === null || haveAllRunsEnded(before)) return;
    const after = await readStartedRuns(before, PAGE_SIZE);
    // The user may have begun another action while the statuses were read.
    if (started.peek() === before) started.value = after;
  };
  usePolling(
    () =>
      attempt(async () => {
        const shown = rows.peek();
        if (shown === null) await load();
        // The list is not read during an action, because the action itself updates the rows.
        else if (working.peek() === null) {
          await look(shown);
          await lookAtStarted();
        }
      }),
    POLL_MS,
  );

  const act = async (action: BulkRunAction) => {
    if (working.peek() !== null) return;
    const runs = (rows.value ?? []).filter(({ run_id }) => chosen.value.has(run_id));
    const batch = newBatchId();
    acted.value = runs.map(({ run_id }) => run_id);
    started.value = null;
    working.value = { action, done: 0, of: runs.length };
    await attempt(async () => {
      // Checks again, because a thread may have got a newer run since the selection bar was rendered.
      const leftOut = await findLeftOut(action, runs);
      for (const [i, run] of runs.entries()) {
        const text = leftOut.get(run.run_id);
        const result = text === undefined ? await applyRunAction(action, run, batch) : { isOk: false, text };
        results.value = new Map(results.value).set(run.run_id, result);
        // Runs whose action failed stay selected.
        if (result.isOk) chosen.value = new Set([...chosen.value].filter((id) => id !== run.run_id));
        if (result.started !== undefined) {
          const { run_id, status } = result.started;
          const { first = result.started, statuses } = started.value ?? {};
          started.value = {
            batch,
            first,
            statuses: new Map<string, ApiRunStatus>(statuses).set(run_id, status),
          };
        }
        working.value = { action, done: i + 1, of: runs.length };
      }
    }, actionError);
    working.value = null;
    document.querySelector<HTMLElement>(".run-results")?.focus();
    await attempt(lookAtStarted);
  };

  const given = Object.fromEntries(query);
  const shown = rows.value;
  useScrollRestoration(shown !== null);
  if (shown === null)
    return error.value === null ? (
      <Loading isPadded />
    ) : (
      <div class="pad">
        <ErrorAlert text={error.value} onRetry={() => void attempt(load)} />
        {cursor !== null && (
          <a class="button" href={hrefOf(["runs"], { ...given, cursor: null })}>
            First page
          </a>
        )}
      </div>
    );
  const deleted = (run: FoundRun) => results.value.get(run.run_id)?.text === "Deleted";
  const selectable = shown.filter((run) => !deleted(run));
  const isAll = selectable.length > 0 && selectable.every(({ run_id }) => chosen.value.has(run_id));
  const isFiltered = [...query.keys()].some((name) => name !== "cursor");
  /** Selects or deselects a run; with Shift, all runs from the one that was clicked last to this one. */
  const toggle = (id: string, isRange: boolean) => {
    const ids = selectable.map(({ run_id }) => run_id);
    const to = ids.indexOf(id);
    const from = isRange ? ids.indexOf(lastClicked.current ?? id) : to;
    lastClicked.current = id;
    const changed = from < 0 ? [id] : ids.slice(Math.min(from, to), Math.max(from, to) + 1);
    const others = new Set(chosen.value);
    for (const one of changed)
      if (chosen.value.has(id)) others.delete(one);
      else others.add(one);
    chosen.value = others;
  };
  return (
    <div class="pad">
      {error.value !== null && <ErrorAlert text={error.value} onRetry={() => void attempt(load)} />}
      {actionError.value !== null && (
        <p class="failure" role="alert">
          {actionError.value}
        </p>
      )}
      <div role="status">
        {fresh.value > 0 && (
          <button type="button" class="fresh" onClick={() => void attempt(load)}>
            {fresh.value >= MAX_NEW_RUNS ? `${MAX_NEW_RUNS} or more` : fresh.value} new{" "}
            {fresh.value === 1 ? "run" : "runs"}
          </button>
        )}
      </div>
      <p class="run-results dim" role="status" tabIndex={-1}>
        {resultText(
          acted.value.flatMap((id) => results.value.get(id) ?? []),
          working.value,
        )}
      </p>
      {started.value !== null && <StartedRunsSummary started={started.value} />}
      {shown.length === 0 ? (
        <EmptyState title={isFiltered ? "No matching runs" : "No runs yet"}>
          {isFiltered ? (
            <a href={hrefOf(["runs"])}>Show all runs</a>
          ) : (
            <a class="button primary" href={hrefOf(["new"])}>
              Start a run on a new thread
            </a>
          )}
        </EmptyState>
      ) : (
        <table>
          <thead>
            <tr>
              <th>
                <input
                  type="checkbox"
                  aria-label="Select all runs on this page"
                  checked={isAll}
                  onChange={() =>
                    (chosen.value = new Set(isAll ? [] : selectable.map(({ run_id }) => run_id)))
                  }
                />
              </th>
              <th>Status</th>
              <th>Run</th>
              <th>Graph</th>
              <th>From</th>
              <th>Error</th>
              <th>Created</th>
              <th>Duration</th>
              <th>Slowest node</th>
              <th>Tokens</th>
              <th>Attempts</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((run) => (
              <Row
                key={run.run_id}
                run={run}
                assistant={assistants.find((one) => one.assistant_id === run.assistant_id)}
                prices={prices}
                result={results.value.get(run.run_id)}
                outcome={started.value?.statuses.get(results.value.get(run.run_id)?.started?.run_id ?? "")}
                isDeleted={deleted(run)}
                isChosen={chosen.value.has(run.run_id)}
                onChoose={(isRange) => toggle(run.run_id, isRange)}
              />
            ))}
          </tbody>
        </table>
      )}
      <nav class="bar" aria-label="Pages">
        {cursor !== null && (
          <a class="button" href={hrefOf(["runs"], { ...given, cursor: null })}>
            First page
          </a>
        )}
        {next.value !== null && (
          <a class="button" href={hrefOf(["runs"], { ...given, cursor: next.value })}>
            Next
          </a>
        )}
      </nav>
      {chosen.value.size > 0 && (
        <SelectionBar
          selected={shown.filter(({ run_id }) => chosen.value.has(run_id))}
          isBusy={working.value !== null}
          onAction={(action) => void act(action)}
          onClear={() => (chosen.value = new Set())}
        />
      )}
    </div>
  );
}

/** Returns whether the server refuses the cursor in the address, because people edit addresses. */
const isCursorFault = (cause: unknown): boolean =>
  cause instanceof RequestError && cause.fields.some(({ at }) => at === "cursor");

/**
 * Sets `paused_at` to null for runs whose thread no longer waits. Reads the threads, because a search for paused runs
 * may read all runs.
 */
async function withoutResumed(shown: readonly FoundRun[]): Promise<readonly FoundRun[]> {
  const ids = [...new Set(shown.filter((run) => run.paused_at !== null).map((run) => run.thread_id))];
  if (ids.length === 0) return shown;
  const { rows } = await listThreads({ ids, status: "interrupted" }, "latest", 0, ids.length);
  const waiting = new Set(rows.map(({ thread_id }) => thread_id));
  return shown.map((run) => (waiting.has(run.thread_id) ? run : { ...run, paused_at: null }));
}

/** Returns, by run id, a text that says why the action skips the run. Runs that are not skipped are absent. */
async function findLeftOut(
  action: BulkRunAction,
  runs: readonly FoundRun[],
): Promise<ReadonlyMap<string, string>> {
  const left = new Map<string, string>();
  if (action === "resume")
    for (const [id, obstacle] of await resumeObstaclesByRun(runs))
      if (obstacle !== null) left.set(id, RESUME_SKIP_TEXTS[obstacle]);
  if (action === "retry")
    for (const [{ run_id }, obstacle] of (await planRepeat(runs)).obstacles)
      if (obstacle !== null) left.set(run_id, REPEAT_SKIP_TEXTS[obstacle]);
  return left;
}

/**
 * A bulk action in progress. `of`: the number of selected runs. `done`: how many of them the action has been applied
 * to.
 */
interface Progress {
  readonly action: BulkRunAction;
  readonly done: number;
  readonly of: number;
}

const DOING: { readonly [A in BulkRunAction]: string } = {
  resume: "Resuming",
  retry: "Running again",
  cancel: "Cancelling",
  delete: "Deleting",
};

function resultText(results: readonly ActionResult[], working: Progress | null): string {
  if (working !== null) return `${DOING[working.action]}… ${working.done} of ${working.of}`;
  if (results.length === 0) return "";
  const failed = results.filter(({ isOk }) => !isOk).length;
  const done = results.length - failed;
  return failed === 0 ? `Done: ${done}.` : `Done: ${done}. Not done: ${failed}; the rows show why.`;
}

interface RowProps {
  readonly run: FoundRun;
  readonly assistant: Assistant | undefined;
  readonly prices: TokenPrices;
  readonly result: ActionResult | undefined;
  /**
   * The status of the run that the last bulk action started from this row's run. Undefined if the action started none,
   * or if the status is not known yet.
   */
  readonly outcome: ApiRunStatus | undefined;
  readonly isDeleted: boolean;
  readonly isChosen: boolean;
  /** `isRange`: whether all runs from the one that was clicked last are meant. */
  readonly onChoose: (isRange: boolean) => void;
}

function Row({ run, assistant, prices, result, outcome, isDeleted, isChosen, onChoose }: RowProps) {
  const { run_id: id, thread_id: thread, error } = run;
  const isOwn = assistant !== undefined && assistant.metadata["created_by"] !== "system";
  const text = error === null ? "" : `${error.error}: ${error.message}`;
  const duration = runDurationMs(run, now.value);
  return (
    <tr class={isDeleted ? "gone" : undefined}>
      <td>
        <input
          type="checkbox"
          aria-label={`Select run ${id}`}
          checked={isChosen}
          disabled={isDeleted}
          title="Shift-click selects all from the last clicked run to this one"
          onMouseDown={(event) => {
            // Shift-click would select the text between.
            if (event.shiftKey) event.preventDefault();
          }}
          onClick={({ shiftKey }) => onChoose(shiftKey)}
        />
      </td>
      <td class="how">
        {run.paused_at === null ? (
          <StatusBadge of={run.status} words={RUN_STATUS_TEXTS[run.status]} />
        ) : (
          <StatusBadge of="interrupted" words={PAUSE_LABELS[run.paused_at]} />
        )}
        <FollowUp run={run} />
      </td>
      <td class="which">
        <a href={runHref(thread, id)} title={id}>
          …{idSuffix(id)}
        </a>{" "}
        <a class="dim" href={threadHref(thread)} title={`Thread ${thread}`}>
          thread
        </a>
        {result !== undefined && (
          <span class={`result ${result.isOk && !isFailure(outcome) ? "good" : "bad"}`}>
            {result.started === undefined ? (
              result.text
            ) : (
              <a href={runHref(thread, result.started.run_id)}>{result.text}</a>
            )}
            {outcome !== undefined && `: ${RUN_STATUS_TEXTS[outcome]}`}
          </span>
        )}
      </td>
      <td class="graph" title={isOwn ? `${run.graph_id} ${assistant.name}` : run.graph_id}>
        <span>{run.graph_id}</span>
        {isOwn && <span class="dim"> {assistant.name}</span>}
      </td>
      <td class="from dim">
        <Origin run={run} />
      </td>
      <td class="problem" title={text}>
        {text.split("\n", 1)[0]}
      </td>
      <td class="when">
        <Age since={run.created_at} isAgo />
      </td>
      <td class="took" title={`Queue time: ${formatDuration(queueTimeMs(run, now.value))}`}>
        {duration !== null && formatDuration(duration)}
      </td>
      <td class="slowest">
        <SlowestNodeLink run={run} />
      </td>
      <td class="spent">
        <Spent usage={run.usage} prices={prices} />
      </td>
      <td class={run.attempt > 1 ? "tried" : "tried once"}>{run.attempt}</td>
    </tr>
  );
}

/** What happened on the thread after a failed run. */
function FollowUp({ run: { status, thread_id, is_latest, resumed_by } }: { readonly run: FoundRun }) {
  if (!isFailure(status) || is_latest) return null;
  if (resumed_by === null) return <span class="dim since">the thread has newer runs</span>;
  return (
    <a class="since" href={runHref(thread_id, resumed_by)} title={`Run ${resumed_by}`}>
      resumed by another run
    </a>
  );
}

const isFailure = (status: ApiRunStatus | undefined): boolean => status === "error" || status === "timeout";

function Spent({ usage, prices }: Pick<FoundRun, "usage"> & { readonly prices: TokenPrices }) {
  if (usage.length === 0) return null;
  const tokensIn = usage.reduce((sum, one) => sum + one.input_tokens, 0);
  const tokensOut = usage.reduce((sum, one) => sum + one.output_tokens, 0);
  const costs = usage.flatMap(
    (one) => tokenCostOf(one.models, one.input_tokens, one.output_tokens, prices) ?? [],
  );
  const by = usage.flatMap(({ models }) => models[0] ?? []).join(", ");
  return (
    <span title={`${formatCount(tokensIn)} in, ${formatCount(tokensOut)} out${by && `: ${by}`}`}>
      {formatCount(tokensIn + tokensOut)}
      {costs.length > 0 && <span class="dim"> {formatCost(costs.reduce((sum, cost) => sum + cost, 0))}</span>}
    </span>
  );
}

/** What started a run: a person in the dashboard, a cron, a timer, or a client of the API. */
function Origin({ run: { metadata, origin } }: { readonly run: FoundRun }) {
  const { cron_id: cron, started_from: from } = metadata;
  if (from === "dashboard") return <>dashboard</>;
  if (typeof cron !== "string")
    return <>{origin === "socket" ? "WebSocket" : origin === "timer" ? "timer" : "API"}</>;
  return (
    <a href={hrefOf(["runs"], { from: cronFilterValue(cron) })} title={`Cron ${cron}`}>
      cron
    </a>
  );
}
