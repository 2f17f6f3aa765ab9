import { signal } from "@preact/signals";
import { getHistory, getRun, getThread, listRuns } from "../api/client.ts";
import { isDone, type Run } from "../api/records.ts";
import { isLocked, errorMessage } from "../app/notices.ts";
import { type FeedMessage as Told, FeedModel } from "../inspector/feed-model.ts";
import { ApiKeyRequired, RequestError } from "../requests.ts";
import { ChangeCounter } from "./change-counter.ts";
import { fromHistory } from "./trace-from-history.ts";
import { ReconnectingSocket } from "./reconnecting-socket.ts";
import { type StreamEvent, Trace, TRACED } from "./trace.ts";
import { type PausedRun, pausedRunOf } from "./paused-run.ts";

/** Milliseconds between two reads of the record of an unfinished run. */
const POLL = 1_500;

/** The events of one run from its first event on, live or long ended. */
export class RunSubscription {
  readonly thread: string;
  readonly id: string;
  readonly run = signal<Run | null>(null);
  readonly error = signal<string | null>(null);
  readonly isMissing = signal(false);
  /** The question or breakpoint at which the thread waits, if it waits because of this run. */
  readonly waiting = signal<PausedRun | null>(null);
  /** True if the server no longer stores the run's events: the trace is built from the thread's history. */
  readonly isRebuilt = signal(false);
  readonly model = new FeedModel();
  readonly changes = new ChangeCounter();
  readonly stream: ReconnectingSocket;
  readonly feed: ReconnectingSocket | null;
  trace: Trace;
  #last = "-1";
  #timer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;

  constructor(thread: string, id: string, isLive = true) {
    this.thread = thread;
    this.id = id;
    this.trace = new Trace(id);
    this.stream = new ReconnectingSocket({
      path: `threads/${thread}/runs/${id}/stream`,
      query: () => new URLSearchParams({ stream_mode: TRACED, last_event_id: this.#last }),
      onMessage: (data) => this.#take(JSON.parse(data) as StreamEvent),
      onEnd: () => void this.#ended(),
    });
    this.feed = isLive
      ? new ReconnectingSocket({
          path: "inspect",
          query: () => new URLSearchParams({ thread_id: thread, run_id: id }),
          onOpen: () => this.model.clear(),
          onMessage: (data) => this.#receive(JSON.parse(data) as Told),
        })
      : null;
    void this.refresh();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.stream.close();
    this.feed?.close();
  }

  async refresh(): Promise<void> {
    clearTimeout(this.#timer);
    try {
      const run = await getRun(this.thread, this.id);
      if (this.#closed) return;
      this.run.value = run;
      this.error.value = null;
      if (isDone(run)) {
        // Events that are still on their way carry more detail.
        if (this.stream.state.peek() !== "open") this.trace.end(Date.parse(run.updated_at));
        this.changes.increment();
        return await this.#wait();
      }
    } catch (cause) {
      if (this.#closed) return;
      if (cause instanceof ApiKeyRequired) isLocked.value = true;
      this.isMissing.value = cause instanceof RequestError && (cause.status === 404 || cause.status === 422);
      this.error.value = errorMessage(cause);
      if (this.isMissing.value) return;
    }
    this.#timer = setTimeout(() => void this.refresh(), POLL);
  }

  #take(event: StreamEvent): void {
    this.#last = event.id;
    if (this.trace.take(event)) this.changes.increment();
  }

  /** Checks whether the thread waits because of this run. Only where the thread is watched live. */
  async #wait(): Promise<void> {
    if (this.feed === null) return;
    const [record, runs] = await Promise.all([getThread(this.thread), listRuns(this.thread, 1)]);
    const waiting = pausedRunOf(record, runs);
    this.waiting.value = waiting?.run === this.id ? waiting : null;
  }

  async #ended(): Promise<void> {
    await this.refresh();
    const run = this.run.peek();
    // Tasks that were reported after the record was read have ended with the run too.
    if (run !== null && isDone(run)) this.trace.end(Date.parse(run.updated_at));
    if (this.trace.tasks.size > 0 || this.trace.steps.length > 0 || this.#closed) return;
    const states = await getHistory(this.thread, { limit: 1_000, metadata: { run_id: this.id } }).catch(
      () => [],
    );
    if (states.length === 0 || this.#closed) return;
    this.trace = fromHistory(this.id, states);
    this.isRebuilt.value = true;
    this.changes.increment();
  }

  #receive(message: Told): void {
    this.model.take(message);
    const { kind, sessionId, snapshot, type } = message;
    const isOver = kind === "run" && snapshot?.status !== "active";
    if (type === "@xstate.snapshot" && (isOver || kind === "thread")) void this.refresh();
    const task = kind === "task" ? this.trace.tasks.get(sessionId) : undefined;
    if (task !== undefined) this.trace.tried(task, snapshot?.value);
    this.changes.increment();
  }
}
