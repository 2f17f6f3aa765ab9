import { signal } from "@preact/signals";
import { findRuns, getStateHistory, getRun, getThread, listRuns } from "../api/client.ts";
import { type FoundRun, hasRunEnded, type Run, type Thread, type ThreadState } from "../api/records.ts";
import { type FeedMessage as Told, FeedModel } from "../inspector/feed-model.ts";
import { EventLog } from "./event-log.ts";
import { RenderVersion } from "./render-version.ts";
import { traceFromHistory } from "./trace-from-history.ts";
import { ReconnectingSocket } from "./reconnecting-socket.ts";
import { Refresher } from "./refresher.ts";
import { reportReadFailure } from "./report-read-failure.ts";
import { type StreamEvent, Trace, TRACE_STREAM_PARAMS } from "./trace.ts";
import { findQuestionOutcome, type QuestionOutcome, questionsAskedIn } from "./question-outcome.ts";
import { findRepeatObstacle, type RepeatObstacle } from "./repeat-obstacle.ts";
import { type PausedRun, pausedRunOf } from "./paused-run.ts";
import type { RunTimes } from "./run-times.ts";

/**
 * Milliseconds between two reads of the run's records while the run has not ended, or while the inspector's feed is
 * not connected.
 */
const POLL_MS = 1_500;
/**
 * The largest number of runs that one search reads to find a run by its creation time: more than this number of runs of
 * a thread in the same millisecond is unlikely.
 */
const MAX_RUNS_PER_MS = 50;

interface Records {
  readonly run: Run;
  readonly times: RunTimes | null;
  readonly waiting: PausedRun | null;
  /** Whether this run is the thread's latest, and failed. */
  readonly isLastFailure: boolean;
  readonly followUp: RunFollowUp | null;
  readonly repeatObstacle: RepeatObstacle | null;
  readonly questionOutcome: QuestionOutcome | null;
}

/**
 * What happened on the thread after a failed run. `resumedBy`: the id of the run that continued the thread from the
 * failure; null if only other runs have followed.
 */
export interface RunFollowUp {
  readonly resumedBy: string | null;
}

/**
 * The data of one run in progress or ended, kept up to date. The trace is made of all of the run's events or, if the
 * server no longer stores them, of the thread's history. `log` has only the newest events.
 */
export class RunSubscription {
  readonly thread: string;
  readonly id: string;
  readonly run = signal<Run | null>(null);
  /** When the run was created, started and ended; null if it is not known. */
  readonly times = signal<RunTimes | null>(null);
  readonly error = signal<string | null>(null);
  readonly isMissing = signal(false);
  /**
   * The question or breakpoint at which the thread waits because of this run; null if it does not wait, or because of
   * another run.
   */
  readonly waiting = signal<PausedRun | null>(null);
  /** Whether this run is the thread's latest and failed, so that another run can resume the thread. */
  readonly isLastFailure = signal(false);
  /** What happened on the thread after this run failed; null if nothing has, or if the run did not fail. */
  readonly followUp = signal<RunFollowUp | null>(null);
  /** Why the run cannot be run again; null if it can, or if this is not known. */
  readonly repeatObstacle = signal<RepeatObstacle | null>(null);
  /**
   * The run that answered or dropped the questions of this run; null if there is none, if this run asked no question,
   * or if this is not known.
   */
  readonly questionOutcome = signal<QuestionOutcome | null>(null);
  /** Whether the trace was built from the thread's history, because the server no longer stores the run's events. */
  readonly isRebuilt = signal(false);
  readonly model = new FeedModel();
  readonly changes = new RenderVersion();
  readonly stream: ReconnectingSocket;
  readonly feed: ReconnectingSocket | null;
  readonly log = new EventLog();
  trace: Trace;
  readonly #records: Refresher<Records>;
  #last = "-1";
  #history: Refresher<readonly ThreadState[]> | null = null;
  readonly #poll: ReturnType<typeof setInterval>;

  constructor(thread: string, id: string, isLive = true) {
    this.thread = thread;
    this.id = id;
    this.trace = new Trace(id);
    this.stream = new ReconnectingSocket({
      path: `threads/${thread}/runs/${id}/stream`,
      query: () => new URLSearchParams({ ...TRACE_STREAM_PARAMS, last_event_id: this.#last }),
      onMessage: (data) => this.#take(JSON.parse(data) as StreamEvent, data),
      onEnd: () => this.refresh(),
      onMissing: (reason) => {
        if (this.run.peek() !== null) this.#deleted(reason);
      },
    });
    this.feed = isLive
      ? new ReconnectingSocket({
          path: "inspect",
          query: () => new URLSearchParams({ thread_id: thread, run_id: id }),
          onOpen: () => this.model.clear(),
          onMessage: (data) => this.#receive(JSON.parse(data) as Told),
        })
      : null;
    this.#records = new Refresher({
      read: () => this.#read(),
      take: (found) => this.#show(found),
      onError: (cause) => reportReadFailure(this, cause),
    });
    this.#poll = setInterval(() => {
      const run = this.run.peek();
      const isReported = run !== null && hasRunEnded(run) && (this.feed?.state.peek() ?? "open") === "open";
      if (!isReported && !this.isMissing.peek()) this.#records.poll();
    }, POLL_MS);
  }

  /** Reports that the run or its thread was deleted, and stops reading. */
  #deleted(reason: string): void {
    this.error.value = reason;
    this.isMissing.value = true;
    this.close();
  }

  close(): void {
    clearInterval(this.#poll);
    this.#records.close();
    this.#history?.close();
    this.stream.close();
    this.feed?.close();
  }

  /** Reads the run's records again soon. */
  refresh(): void {
    this.#records.request();
  }

  async #read(): Promise<Records> {
    const run = await getRun(this.thread, this.id);
    // Used if the thread is not read: while the run is in progress, the thread waits for nothing, and without a feed,
    // the page shows nothing about the thread.
    const unset = {
      waiting: null,
      isLastFailure: false,
      followUp: null,
      repeatObstacle: null,
      questionOutcome: null,
    };
    if (this.feed === null) return { run, times: null, ...unset };
    if (!hasRunEnded(run)) return { run, times: await this.#readTimes(run), ...unset };
    const [record, runs, times] = await Promise.all([
      getThread(this.thread),
      listRuns(this.thread, 1),
      this.#readTimes(run),
    ]);
    const waiting = pausedRunOf(record, runs);
    const isLatest = runs[0]?.run_id === this.id;
    const isLastFailure = record.status === "error" && isLatest;
    const hasFailed = run.status === "error" || run.status === "timeout";
    const [followUp, questionOutcome] = await Promise.all([
      hasFailed && !isLatest ? this.#readFollowUp(run) : null,
      isLatest ? null : this.#readQuestionOutcome(run, record),
    ]);
    return {
      run,
      times,
      waiting: waiting?.run === this.id ? waiting : null,
      isLastFailure,
      followUp,
      repeatObstacle: findRepeatObstacle(run, record),
      questionOutcome,
    };
  }

  async #readFollowUp(run: Run): Promise<RunFollowUp> {
    return { resumedBy: (await this.#find(run))?.resumed_by ?? null };
  }

  /** Reads who answered the run's questions, unless this is known and can no longer change. */
  async #readQuestionOutcome(run: Run, { interrupts }: Thread): Promise<QuestionOutcome | null> {
    const known = this.questionOutcome.peek();
    if (known !== null && hasRunEnded(known.run)) return known;
    const questions = questionsAskedIn(this.trace);
    if (questions.length === 0) return null;
    // An error is ignored: the page can show everything else.
    const pending = new Set(Object.values(interrupts).flatMap((asked) => asked.map(({ id }) => id)));
    return findQuestionOutcome(run, questions, pending).catch(() => known);
  }

  /**
   * Reads when the run started and ended. Reads nothing if the end is known, or if the run is in progress and its start
   * is known.
   */
  async #readTimes(run: Run): Promise<RunTimes | null> {
    const known = this.times.peek();
    if (known?.ended_at != null || (known?.started_at != null && !hasRunEnded(run))) return known;
    // An error is ignored: the page can show everything else.
    return (await this.#find(run).catch(() => undefined)) ?? known;
  }

  /** Finds the run by a search, which returns more fields than the run's own record. */
  async #find({ created_at }: Run): Promise<FoundRun | undefined> {
    const created_before = new Date(Date.parse(created_at) + 1).toISOString();
    const filter = { thread_id: this.thread, created_after: created_at, created_before };
    const { runs } = await findRuns(filter, MAX_RUNS_PER_MS, null);
    return runs.find(({ run_id }) => run_id === this.id);
  }

  #show(records: Records): void {
    const { run, times, waiting, isLastFailure, followUp, repeatObstacle } = records;
    this.run.value = run;
    this.times.value = times;
    this.isLastFailure.value = isLastFailure;
    this.followUp.value = followUp;
    this.repeatObstacle.value = repeatObstacle;
    this.questionOutcome.value = records.questionOutcome;
    this.waiting.value = waiting;
    this.error.value = null;
    this.isMissing.value = false;
    if (!hasRunEnded(run)) return;
    // While the stream is open, its remaining events will end the trace with more detail.
    const stream = this.stream.state.peek();
    if (stream !== "open") this.trace.end(Date.parse(run.updated_at));
    if (stream === "ended" && this.trace.tasks.size === 0 && this.trace.steps.length === 0)
      this.#history ??= this.#readHistory();
    this.changes.increment();
  }

  #take(event: StreamEvent, text: string): void {
    this.#last = event.id;
    if (!this.trace.take(event)) return;
    this.log.add(event, text);
    this.changes.increment();
  }

  /** Builds the trace from the thread's history, for a run whose events the server no longer stores. */
  #readHistory(): Refresher<readonly ThreadState[]> {
    return new Refresher({
      read: () => getStateHistory(this.thread, { limit: 1_000, metadata: { run_id: this.id } }),
      take: (states) => {
        if (states.length === 0) return;
        this.trace = traceFromHistory(this.id, states);
        this.isRebuilt.value = true;
        // The run's questions are known only now, so their answer is read, too.
        this.refresh();
        this.changes.increment();
      },
      // If the history cannot be read, the page still shows the run's record.
      onError: () => undefined,
    });
  }

  #receive(message: Told): void {
    this.model.take(message);
    const { kind, sessionId, snapshot, type } = message;
    const isOver = kind === "run" && snapshot?.status !== "active";
    // Each connection of the feed begins with the current states of the actors. They may be newer than the latest
    // read, so they also cause a read.
    if (type !== "@xstate.event" && (isOver || kind === "thread")) this.refresh();
    const task = kind === "task" ? this.trace.tasks.get(sessionId) : undefined;
    if (task !== undefined) this.trace.tried(task, snapshot?.value);
    this.changes.increment();
  }
}
