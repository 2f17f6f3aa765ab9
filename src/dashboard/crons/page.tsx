import { useEffect, useState } from "preact/hooks";
import { deleteCron, findRuns, getCron, listCrons, runCronNow, updateCron } from "../api/client.ts";
import type { Assistant, Cron, FoundRun } from "../api/records.ts";
import { nowTruncatedToSeconds } from "../app/clock.ts";
import { runAction, showNotice } from "../app/notices.ts";
import { hrefOf, navigate, pageNumberOf, runHref } from "../app/page-location.ts";
import { cronFilterValue } from "../all-runs/run-filter.ts";
import { RUN_STATUS_TEXTS } from "../live/status-texts.ts";
import { ActionButton } from "../components/action-button.tsx";
import { ConfirmDialog } from "../components/dialogs.tsx";
import { EmptyState, ErrorAlert, Loading } from "../components/empty-state.tsx";
import { JsonTree } from "../components/json-tree.tsx";
import { Age, formatTimeUntil } from "../components/age.tsx";
import { StatusBadge } from "../components/status-badge.tsx";
import { idSuffix } from "../components/one-line-text.ts";
import { assistantLabel, useAssistantList } from "../components/use-assistants.ts";
import { useResource } from "../components/use-resource.ts";
import { differingMembers } from "../assistants/differing-members.ts";
import { definitionOfCron } from "./cron-fields.ts";
import { CronDialog } from "./cron-dialog.tsx";
import { CronThreadLink } from "./thread-choice.tsx";
import { errorLine } from "../components/one-line-text.ts";

const PAGE_SIZE = 20;
/** The number of recent runs that are shown for each cron. */
const LAST_RUNS = 5;
/** Milliseconds between two reads of the crons. */
const POLL_MS = 5_000;

interface ListedCron {
  readonly cron: Cron;
  /** The most recent runs of the cron, newest first. */
  readonly runs: readonly FoundRun[];
}

async function readCrons(page: number): Promise<{ readonly rows: readonly ListedCron[]; hasMore: boolean }> {
  const crons = await listCrons(PAGE_SIZE + 1, page * PAGE_SIZE);
  const rows = crons.slice(0, PAGE_SIZE).map(async (cron) => {
    const { runs } = await findRuns({ metadata: { cron_id: cron.cron_id } }, LAST_RUNS, null);
    return { cron, runs };
  });
  return { rows: await Promise.all(rows), hasMore: crons.length > PAGE_SIZE };
}

/** The crons, each with the time of its next run and the outcomes of its most recent runs. */
export function CronsPage({ query }: { readonly query: URLSearchParams }) {
  const page = pageNumberOf(query);
  const { value: assistants } = useAssistantList();
  const crons = useResource(() => readCrons(page), [page]);
  useEffect(() => {
    const poll = setInterval(() => {
      if (!document.hidden) crons.poll();
    }, POLL_MS);
    return () => clearInterval(poll);
  }, []);
  /** The cron in the form; null for a new one, undefined if the form is not shown. */
  const [edited, setEdited] = useState<Cron | null | undefined>(undefined);
  const [deleting, setDeleting] = useState<Cron | null>(null);
  const act = (work: () => Promise<unknown>, said: string) =>
    runAction(async () => {
      try {
        await work();
        showNotice(said);
      } finally {
        // A failed action may mean that somebody else has deleted the cron.
        crons.reload();
      }
    });
  const { rows = [], hasMore = false } = crons.value ?? {};
  return (
    <article class="page crons pad">
      <div class="bar">
        <h1 class="space">Crons</h1>
        <button type="button" class="primary" onClick={() => setEdited(null)}>
          New cron
        </button>
      </div>
      <p class="dim">Schedules on which runs start.</p>
      {crons.error !== null && <ErrorAlert text={crons.error} onRetry={crons.reload} />}
      {crons.value === undefined && crons.error === null && <Loading />}
      {crons.value !== undefined && rows.length === 0 && <NoCron isFirst={page === 0} />}
      <ul>
        {rows.map(({ cron, runs }) => (
          <CronCard
            key={cron.cron_id}
            cron={cron}
            runs={runs}
            assistant={assistants?.find(({ assistant_id }) => assistant_id === cron.assistant_id)}
            onRun={() => act(() => runCronNow(cron.cron_id), "Run started.")}
            onEnable={(enabled) =>
              act(() => updateCron(cron.cron_id, { enabled }), enabled ? "Cron resumed." : "Cron paused.")
            }
            onEdit={() => setEdited(cron)}
            onDelete={() => setDeleting(cron)}
          />
        ))}
      </ul>
      <nav class="bar" aria-label="Pages of crons">
        {page > 0 && (crons.value === undefined || rows.length > 0) && (
          <a class="button" href={hrefOf(["crons"], { page: page - 1 })}>
            Previous
          </a>
        )}
        {hasMore && (
          <a class="button" href={hrefOf(["crons"], { page: page + 1 })}>
            Next
          </a>
        )}
      </nav>
      {edited !== undefined && (
        <CronDialog
          cron={edited}
          assistants={assistants}
          onSaved={() => {
            showNotice(edited === null ? "Cron created." : "Cron saved.");
            setEdited(undefined);
            crons.reload();
            // The new cron is on the first page.
            if (edited === null && page > 0) navigate(["crons"]);
          }}
          onClose={() => setEdited(undefined)}
        />
      )}
      {deleting !== null && (
        <ConfirmDialog
          title="Delete the cron?"
          text="It will start no more runs. Its earlier runs are kept."
          yes="Delete"
          onYes={() => void act(() => deleteUnchangedCron(deleting), "Cron deleted.")}
          onClose={() => setDeleting(null)}
        />
      )}
    </article>
  );
}

/**
 * Deletes a cron, unless somebody else has changed what it runs or when since the page read it.
 * @throws Error if somebody has
 */
async function deleteUnchangedCron(cron: Cron): Promise<void> {
  const shown = definitionOfCron(cron);
  const stored = definitionOfCron(await getCron(cron.cron_id));
  if (differingMembers(shown, stored).length > 0)
    throw new Error("The cron was not deleted: somebody else has changed it. Look at it again.");
  await deleteCron(cron.cron_id);
}

function NoCron({ isFirst }: { readonly isFirst: boolean }) {
  if (!isFirst)
    return (
      <EmptyState title="No more crons">
        <a href={hrefOf(["crons"])}>First page</a>
      </EmptyState>
    );
  return (
    <EmptyState title="No crons yet">
      <p class="dim">Create one here or with a client, for one thread or with a new thread per run:</p>
      <pre class="code">{`await client.crons.create("agent", { schedule: "0 9 * * MON", input: {} })`}</pre>
      <a href="docs">Open guide</a>
    </EmptyState>
  );
}

interface CardProps extends ListedCron {
  readonly assistant: Assistant | undefined;
  readonly onRun: () => Promise<unknown>;
  readonly onEnable: (enabled: boolean) => Promise<unknown>;
  readonly onEdit: () => void;
  readonly onDelete: () => void;
}

function CronCard({ cron, runs, assistant, onRun, onEnable, onEdit, onDelete }: CardProps) {
  const { cron_id: id, schedule, timezone, next_run_date: next, enabled, last_run: outcome } = cron;
  return (
    <li class="card">
      <div class="bar">
        <h2>
          <code>{schedule}</code> <span class="dim">{timezone ?? "UTC"}</span>
        </h2>
        {!enabled && <StatusBadge of="interrupted" words="paused" />}
        <span class="space" />
        <ActionButton onAct={onRun}>Run now</ActionButton>
        <ActionButton key={String(enabled)} onAct={() => onEnable(!enabled)}>
          {enabled ? "Pause" : "Resume"}
        </ActionButton>
        <button type="button" onClick={onEdit}>
          Edit
        </button>
        <button type="button" class="quiet" onClick={onDelete}>
          Delete
        </button>
      </div>
      <p>
        {assistant !== undefined
          ? assistantLabel(assistant)
          : (runs[0]?.graph_id ?? `assistant …${idSuffix(cron.assistant_id)}`)}{" "}
        · <CronThreadLink {...cron} /> ·{" "}
        {next === null ? enabled ? "finished" : "no next run while paused" : <NextRun at={next} />}
      </p>
      {outcome !== undefined && runs.every(({ run_id }) => run_id !== outcome.run_id) && (
        <p>
          Last run: <StatusBadge of={outcome.status} words={RUN_STATUS_TEXTS[outcome.status]} />{" "}
          <span class="dim">
            <Age since={outcome.ended_at} isAgo />
          </span>{" "}
          <Failure error={outcome.error} />
        </p>
      )}
      {runs.length === 0 ? (
        <p class="dim">
          {cron.on_run_completed === "delete" ? (
            <>
              Runs and their threads are deleted when they end. To keep them, edit the cron (
              <code>on_run_completed: "keep"</code>).
            </>
          ) : (
            "No runs yet"
          )}
        </p>
      ) : (
        <ul class="last-runs" aria-label="Last runs">
          {runs.map((run) => (
            <li key={run.run_id}>
              <StatusBadge of={run.status} words={RUN_STATUS_TEXTS[run.status]} />{" "}
              <a href={runHref(run.thread_id, run.run_id)}>…{idSuffix(run.run_id)}</a>{" "}
              <span class="dim">
                <Age since={run.created_at} isAgo />
              </span>{" "}
              <Failure error={run.error} />
            </li>
          ))}
          <li>
            <a href={hrefOf(["runs"], { from: cronFilterValue(id) })}>View all runs</a>
          </li>
        </ul>
      )}
      <details class="more">
        <summary>Run request</summary>
        <JsonTree value={{ cron_id: id, ...cron.payload, metadata: cron.metadata }} open={2} />
      </details>
    </li>
  );
}

function Failure({ error }: Pick<FoundRun, "error">) {
  if (error === null) return null;
  return <span class="bad">{errorLine(error.error, error.message).split("\n", 1)[0]}</span>;
}

function NextRun({ at }: { readonly at: string }) {
  return (
    <time dateTime={at} title={new Date(at).toLocaleString()}>
      next run {formatTimeUntil(at, nowTruncatedToSeconds.value)}
    </time>
  );
}
