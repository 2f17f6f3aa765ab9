import { signal } from "@preact/signals";
import { findRuns, getHistory, getRun, getThread, listRuns } from "../api/client.ts";
import { type FoundRun, hasRunEnded, type Run, type ThreadState } from "../api/records.ts";
import { isKeyMissing, errorMessage } from "../app/notices.ts";
import { type FeedMessage as Told, FeedModel } from "../inspector/feed-model.ts";
import { ApiKeyRequired, isNotFound } from "../api-errors.ts";
import { EventLog } from "./event-log.ts";
import { RenderVersion } from "./render-version.ts";
import { traceFromHistory } from "./trace-from-history.ts";
import { ReconnectingSocket } from "./reconnecting-socket.ts";
import { Refresher } from "./refresher.ts";
import { type StreamEvent, Trace, TRACE_STREAM_PARAMS } from "./trace.ts";
import { findRepeatObstacle, type RepeatObstacle } from "./repeat-obstacle.ts";
import { type PausedRun, pausedRunOf } from "./paused-run.ts";
import type { RunTimes } from "./run-times.ts";

/** Milliseconds between two reads of the records until the run has ended, or while its feed is not open. */
const POLL_MS = 1_500;
/** The most runs of a thread that are created in one millisecond, as a queue of them may be. */
const MOST_AT_ONCE = 50;

interface Records {
  readonly run: Run;
  readonly times: RunTimes | null;
  readonly waiting: PausedRun | null;
  /** Whether the thread stopped at the failure of this run. */
  readonly isLastFailure: boolean;
  readonly followUp: FollowUp | null;
  readonly repeatObstacle: RepeatObstacle | null;
}

/** What became of the thread after a run that failed. `resumedBy`: the run that continued it; null: others have run since. */
export interface FollowUp {
  readonly resumedBy: string | null;
}

/** One run with all of its events, from the first one on. The run may be live or have ended long ago. */
export class RunSubscription {
  readonly thread: string;
  readonly id: string;
  readonly run = signal<Run | null>(null);
  /** When the run started and ended; null: not known. */
  readonly times = signal<RunTimes | null>(null);
  readonly error = signal<string | null>(null);
  readonly isMissing = signal(false);
  /** The question or breakpoint at which the thread waits, if it waits because of this run. */
  readonly waiting = signal<PausedRun | null>(null);
  /** Whether the thread stopped at the failure of this run, so that another run can resume from there. */
  readonly isLastFailure = signal(false);
  /** What became of the thread after this run failed; null: nothing has, or the run did not fail. */
  readonly followUp = signal<FollowUp | null>(null);
  /** Why the run cannot be run again; null: it can, or this is not known. */
  readonly repeatObstacle = signal<RepeatObstacle | null>(null);
  /** True if the server no longer stores the run's events: the trace is built from the thread's history. */
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
      onError: (cause) => this.#fail(cause),
    });
    this.#poll = setInterval(() => {
      const run = this.run.peek();
      const isReported = run !== null && hasRunEnded(run) && (this.feed?.state.peek() ?? "open") === "open";
      if (!isReported && !this.isMissing.peek()) this.#records.poll();
    }, POLL_MS);
  }

  /** Shows that the run or its thread was deleted, and ends all reading. */
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

  /** Schedules a new read of the records. */
  refresh(): void {
    this.#records.request();
  }

  async #read(): Promise<Records> {
    const run = await getRun(this.thread, this.id);
    // A run that has not ended does not wait. Without a feed, the page shows neither value. In both cases,
    // the thread need not be read.
    const unset = { waiting: null, isLastFailure: false, followUp: null, repeatObstacle: null };
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
    const followUp = hasFailed && !isLatest ? await this.#readFollowUp(run) : null;
    return {
      run,
      times,
      waiting: waiting?.run === this.id ? waiting : null,
      isLastFailure,
      followUp,
      repeatObstacle: findRepeatObstacle(run, record),
    };
  }

  async #readFollowUp(run: Run): Promise<FollowUp> {
    return { resumedBy: (await this.#find(run))?.resumed_by ?? null };
  }

  /** Reads when the run started and ended, unless that is known. */
  async #readTimes(run: Run): Promise<RunTimes | null> {
    const known = this.times.peek();
    if (known?.ended_at != null || (known?.started_at != null && !hasRunEnded(run))) return known;
    // Without the times, the page still shows everything else.
    return (await this.#find(run).catch(() => undefined)) ?? known;
  }

  /** Finds the run with the fields that only the search returns. */
  async #find({ created_at }: Run): Promise<FoundRun | undefined> {
    const created_before = new Date(Date.parse(created_at) + 1).toISOString();
    const filter = { thread_id: this.thread, created_after: created_at, created_before };
    const { runs } = await findRuns(filter, MOST_AT_ONCE, null);
    return runs.find(({ run_id }) => run_id === this.id);
  }

  #show({ run, times, waiting, isLastFailure, followUp, repeatObstacle }: Records): void {
    this.run.value = run;
    this.times.value = times;
    this.isLastFailure.value = isLastFailure;
    this.followUp.value = followUp;
    this.repeatObstacle.value = repeatObstacle;
    this.waiting.value = waiting;
    this.error.value = null;
    this.isMissing.value = false;
    if (!hasRunEnded(run)) return;
    // While the stream is open, the trace is not ended here: the events that are still to come end it with more detail.
    const stream = this.stream.state.peek();
    if (stream !== "open") this.trace.end(Date.parse(run.updated_at));
    if (stream === "ended" && this.trace.tasks.size === 0 && this.trace.steps.length === 0)
      this.#history ??= this.#readHistory();
    this.changes.increment();
  }

  #fail(cause: unknown): void {
    if (cause instanceof ApiKeyRequired) isKeyMissing.value = true;
    this.isMissing.value = isNotFound(cause);
    this.error.value = errorMessage(cause);
  }

  #take(event: StreamEvent, text: string): void {
    this.#last = event.id;
    if (!this.trace.take(event)) return;
    this.log.add(event, text);
    this.changes.increment();
  }

  /** Rebuilds the trace from the thread's history. Used when the server no longer stores the run's events. */
  #readHistory(): Refresher<readonly ThreadState[]> {
    return new Refresher({
      read: () => getHistory(this.thread, { limit: 1_000, metadata: { run_id: this.id } }),
      take: (states) => {
        if (states.length === 0) return;
        this.trace = traceFromHistory(this.id, states);
        this.isRebuilt.value = true;
        this.changes.increment();
      },
      // Without the history, the page still shows the run's record.
      onError: () => undefined,
    });
  }

  #receive(message: Told): void {
    this.model.take(message);
    const { kind, sessionId, snapshot, type } = message;
    const isOver = kind === "run" && snapshot?.status !== "active";
    // Each connection of the feed begins with the current states of the actors. The last read may be older, so these
    // messages cause a new read too.
    if (type !== "@xstate.event" && (isOver || kind === "thread")) this.refresh();
    const task = kind === "task" ? this.trace.tasks.get(sessionId) : undefined;
    if (task !== undefined) this.trace.tried(task, snapshot?.value);
    this.changes.increment();
  }
}
