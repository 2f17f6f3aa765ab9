import { useEffect, useMemo } from "preact/hooks";
import { cancelRun, createRun } from "../api/client.ts";
import { type ApiInterrupt, hasRunEnded, type JsonRecord, type Run } from "../api/records.ts";
import { navigate, currentLocation, hrefOf, runHref, threadHref } from "../app/page-location.ts";
import { now } from "../app/clock.ts";
import { runAction, showNotice } from "../app/notices.ts";
import { resumeValueOf, userNameOfRun } from "../live/answer-requests.ts";
import { RunSubscription } from "../live/run-subscription.ts";
import { type PausedRun, pauseLabel } from "../live/paused-run.ts";
import { type QuestionOutcome, questionsAskedIn } from "../live/question-outcome.ts";
import { queueTimeMs, runDurationMs } from "../live/run-times.ts";
import { RUN_STATUS_TEXTS } from "../live/status-texts.ts";
import { ActionButton } from "../components/action-button.tsx";
import { CopyButton } from "../components/copy-button.tsx";
import { EmptyState, ErrorAlert, Loading } from "../components/empty-state.tsx";
import { JsonTree } from "../components/json-tree.tsx";
import { formatDuration } from "../components/duration.ts";
import { JoinedTexts } from "../components/joined-texts.tsx";
import { Age } from "../components/age.tsx";
import { StatusBadge } from "../components/status-badge.tsx";
import { idSuffix } from "../components/one-line-text.ts";
import { Tabs } from "../components/tabs.tsx";
import { GraphAndActorCharts } from "../graphs/graph-tab.tsx";
import { questionLine } from "../threads/event-answer.tsx";
import { repeatRequestOf, resumeRequestOf } from "../live/repeat-and-resume-requests.ts";
import { RunComparison } from "./run-comparison.tsx";
import { EventsTab } from "./events-tab.tsx";
import { RepeatButton } from "./repeat-button.tsx";
import { replayOriginOf } from "./timeline-rows.ts";
import { TimelineTab } from "./timeline-tab.tsx";

/** The page of a run, which may be in progress or have ended. */
export function RunPage({ thread, run: id }: { readonly thread: string; readonly run: string }) {
  const watch = useMemo(() => new RunSubscription(thread, id), [thread, id]);
  useEffect(() => () => watch.close(), [watch]);
  const { query } = currentLocation.value;
  const run = watch.run.value;
  const error = watch.error.value;
  const other = query.get("with");
  const tab = other !== null ? "compare" : (query.get("tab") ?? "timeline");
  if (watch.isMissing.value)
    return (
      <EmptyState title="Run not found">
        <p class="dim">{error}</p>
        <a href={threadHref(thread)}>Open thread</a>
      </EmptyState>
    );
  if (run === null)
    return error === null ? (
      <Loading isPadded />
    ) : (
      <ErrorAlert text={error} onRetry={() => watch.refresh()} />
    );
  const side = (name: string) => runHref(thread, id, { tab: name });
  return (
    <article class="page">
      <RunHead watch={watch} run={run} />
      <Tabs
        label="Views of the run"
        current={tab}
        tabs={[
          { id: "timeline", title: "Timeline", href: runHref(thread, id) },
          { id: "graph", title: "Graph", href: side("graph") },
          { id: "events", title: "Events", href: side("events") },
          { id: "record", title: "JSON", href: side("record") },
          ...(other === null
            ? []
            : [{ id: "compare", title: "Comparison", href: runHref(thread, id, { with: other }) }]),
        ]}
      />
      {error !== null && <ErrorAlert text={error} onRetry={() => watch.refresh()} />}
      {watch.waiting.value !== null && <Asked waiting={watch.waiting.value} thread={thread} />}
      {watch.questionOutcome.value !== null && (
        <Outcome outcome={watch.questionOutcome.value} questions={questionsAskedIn(watch.trace)} />
      )}
      {watch.isRebuilt.value && (
        <p class="note">
          The run's events have expired. This view is rebuilt from checkpoints, without tokens and exact
          times.
        </p>
      )}
      <Side tab={tab} watch={watch} run={run} other={other} />
    </article>
  );
}

function Side({
  tab,
  watch,
  run,
  other,
}: {
  tab: string;
  watch: RunSubscription;
  run: Run;
  other: string | null;
}) {
  void watch.changes.count;
  switch (tab) {
    case "graph":
      return (
        <GraphAndActorCharts
          model={watch.model}
          traces={[watch.trace]}
          graph={typeof run.metadata["graph_id"] === "string" ? run.metadata["graph_id"] : undefined}
          values={watch.trace.values}
          machineStatus={
            !hasRunEnded(run)
              ? "running"
              : watch.waiting.value !== null
                ? "interrupted"
                : run.status === "success"
                  ? "done"
                  : "failed"
          }
          onTask={({ id, step }) =>
            navigate(["threads", run.thread_id, "runs", run.run_id], { step, task: id })
          }
        />
      );
    case "events":
      return <EventsTab events={watch.log.events} />;
    case "record":
      return (
        <div class="pad">
          <CopyButton text={() => JSON.stringify(run, null, 2)} label="run as JSON" shown="Copy" />
          <JsonTree value={run} open={3} />
        </div>
      );
    case "compare":
      return <RunComparison watch={watch} other={other ?? ""} />;
    default:
      return <TimelineTab watch={watch} run={run} />;
  }
}

/** The questions for which a run waits, with a link to the page on which they can be answered. */
function Asked({ waiting, thread }: { readonly waiting: PausedRun; readonly thread: string }) {
  const { questions } = waiting;
  return (
    <div class="note">
      {questions.length > 0 ? (
        <QuestionLines questions={questions} />
      ) : (
        <span>The run is paused at a breakpoint.</span>
      )}
      <a class="button primary" href={threadHref(thread)}>
        {questions.length > 0 ? "Answer" : "Open thread"}
      </a>
    </div>
  );
}

interface OutcomeProps {
  readonly outcome: QuestionOutcome;
  readonly questions: readonly ApiInterrupt[];
}

/** The questions that a run asked, and which later run ended them. */
function Outcome({ outcome: { run, kind }, questions }: OutcomeProps) {
  const user = userNameOfRun(run);
  const link = <a href={runHref(run.thread_id, run.run_id)}>run …{idSuffix(run.run_id)}</a>;
  const when = <Age since={run.created_at} isAgo />;
  return (
    <div class="note">
      <QuestionLines questions={questions} />
      {kind === "answer" && (
        <span>
          Answered{user !== null && ` by ${user}`} {when} in {link}
        </span>
      )}
      {kind === "timer" && (
        <span>
          Not answered: a timer moved the machine on {when} in {link}
        </span>
      )}
      {kind === "input" && (
        <span>
          Not answered: {link} began with a new input {when}
          {user !== null && `, by ${user}`}
        </span>
      )}
    </div>
  );
}

const QuestionLines = ({ questions }: { readonly questions: readonly ApiInterrupt[] }) => (
  <span>
    Question:{" "}
    <q>
      <JoinedTexts texts={questions.map(({ value }) => questionLine(value))} />
    </q>
  </span>
);

function RunHead({ watch, run }: { readonly watch: RunSubscription; readonly run: Run }) {
  const { thread_id: thread, run_id: id } = run;
  const graph = run.metadata["graph_id"];
  const state = watch.stream.state.value;
  const waiting = watch.waiting.value;
  const followUp = watch.followUp.value;
  void watch.changes.count;
  const origin = replayOriginOf(run);
  const user = userNameOfRun(run);
  const times = watch.times.value;
  const duration = times === null ? null : runDurationMs(times, now.value);
  const start = (request: JsonRecord, said: string) =>
    runAction(async () => {
      const { run_id } = await createRun(thread, request);
      showNotice(said);
      navigate(["threads", thread, "runs", run_id]);
    });
  // A run without tasks failed before it planned a task, so there is nothing to resume.
  const isResumable = watch.isLastFailure.value && watch.trace.tasks.size > 0;
  return (
    <header class="head">
      <a class="back" href={threadHref(thread, "runs")} aria-label="Runs of the thread">
        ←
      </a>
      <div class="which">
        <h2>
          <span class="dim">run of</span> {typeof graph === "string" ? graph : "a graph"}{" "}
          {waiting === null ? (
            <StatusBadge of={run.status} words={RUN_STATUS_TEXTS[run.status]} />
          ) : (
            <StatusBadge of="interrupted" words={pauseLabel(waiting)} />
          )}
          {state === "broken" && <span class="live broken">connection lost, trying again…</span>}
        </h2>
        <p class="dim">
          <code>{id}</code> <CopyButton text={id} label="run ID" /> · created{" "}
          <Age since={run.created_at} isAgo />
          {times !== null && ` · queue time ${formatDuration(queueTimeMs(times, now.value))}`}
          {duration !== null && ` · duration ${formatDuration(duration)}`}
          {origin !== null && (
            <>
              {" · replay of "}
              <a href={runHref(thread, origin.run)}>…{idSuffix(origin.run)}</a> from superstep {origin.step}
            </>
          )}
          {resumeValueOf(run) !== undefined && " · answers a question"}
          {user !== null && ` · by ${user}`}
          {watch.trace.attempt > 1 && ` · attempt ${watch.trace.attempt}`}
          {followUp !== null && followUp.resumedBy === null && " · the thread has newer runs"}
          {followUp !== null && followUp.resumedBy !== null && (
            <>
              {" · resumed by "}
              <a href={runHref(thread, followUp.resumedBy)}>…{idSuffix(followUp.resumedBy)}</a>
            </>
          )}
        </p>
      </div>
      <div class="actions">
        {hasRunEnded(run) ? (
          <>
            {isResumable && (
              <ActionButton
                class="primary"
                title="Retries the failed tasks from the last checkpoint"
                onAct={() => start(resumeRequestOf(run), "A new run continues from the last checkpoint.")}
              >
                Resume
              </ActionButton>
            )}
            <RepeatButton
              run={run}
              obstacle={watch.repeatObstacle.value}
              onRepeat={(notice) => start(repeatRequestOf(run), notice)}
            />
          </>
        ) : (
          <ActionButton
            class="danger"
            onAct={() =>
              runAction(async () => {
                await cancelRun(thread, id, "interrupt");
                watch.refresh();
              })
            }
          >
            Cancel run
          </ActionButton>
        )}
        <CopyButton text={() => location.href} label="link to this view" shown="Copy link" />
        <a class="button quiet" href={hrefOf(["threads", thread])}>
          Thread
        </a>
      </div>
    </header>
  );
}
