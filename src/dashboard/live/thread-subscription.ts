import { signal } from "@preact/signals";
import { getState, getThread, listRuns } from "../api/client.ts";
import { isDone, type Run, type Thread, type ThreadState } from "../api/records.ts";
import { isLocked, errorMessage } from "../app/notices.ts";
import { type FeedMessage as Told, FeedModel } from "../inspector/feed-model.ts";
import { ApiKeyRequired, RequestError } from "../requests.ts";
import { ChangeCounter } from "./change-counter.ts";
import { ReconnectingSocket } from "./reconnecting-socket.ts";
import { type StreamEvent, Trace, TRACED } from "./trace.ts";

/** Milliseconds: changes are gathered for this long before the records are read anew. */
const GATHER = 120;
/** Milliseconds between two reads where no feed reports changes. */
const POLL = 2_500;
/** The largest number of runs whose events are kept. */
const TRACES = 20;

/** Everything about one thread, live: its records, the events of its runs, its live actors. */
export class ThreadSubscription {
  readonly id: string;
  readonly record = signal<Thread | null>(null);
  readonly state = signal<ThreadState | null>(null);
  readonly runs = signal<readonly Run[]>([]);
  readonly error = signal<string | null>(null);
  readonly isMissing = signal(false);
  readonly model = new FeedModel();
  readonly traces = new Map<string, Trace>();
  /** Counts the changes of the traces and the actors. */
  readonly changes = new ChangeCounter();
  readonly stream: ReconnectingSocket;
  readonly feed: ReconnectingSocket;
  #last: string | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #reading = false;
  #again = false;
  #closed = false;
  readonly #poll: ReturnType<typeof setInterval>;

  constructor(id: string) {
    this.id = id;
    this.stream = new ReconnectingSocket({
      path: `threads/${id}/stream`,
      query: () => {
        const last = this.#last;
        return new URLSearchParams({ stream_mode: TRACED, ...(last !== null && { last_event_id: last }) });
      },
      onOpen: () => this.refresh(),
      onMessage: (data) => this.#take(JSON.parse(data) as StreamEvent),
    });
    this.feed = new ReconnectingSocket({
      path: "inspect",
      query: () => new URLSearchParams({ thread_id: id }),
      onOpen: () => this.model.clear(),
      onMessage: (data) => this.#receive(JSON.parse(data) as Told),
    });
    this.refresh();
    this.#poll = setInterval(() => {
      const isAtWork = this.runs.peek().some((run) => !isDone(run));
      if (this.feed.state.peek() !== "open" || isAtWork) this.refresh();
    }, POLL);
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#poll);
    clearTimeout(this.#timer);
    this.stream.close();
    this.feed.close();
  }

  /** Schedules a new read of the records. */
  refresh(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#read(), GATHER);
  }

  /** The running run, if any. */
  get active(): Run | undefined {
    return this.runs.value.find(({ status }) => status === "running");
  }

  /** The queued runs, the next one first. */
  get queue(): readonly Run[] {
    return this.runs.value.filter(({ status }) => status === "pending").toReversed();
  }

  async #read(): Promise<void> {
    if (this.#reading) {
      this.#again = true;
      return;
    }
    this.#reading = true;
    try {
      const [record, state, runs] = await Promise.all([
        getThread(this.id),
        getState(this.id),
        listRuns(this.id),
      ]);
      if (this.#closed) return;
      this.record.value = record;
      this.state.value = state;
      this.runs.value = runs;
      this.error.value = null;
      for (const run of runs) if (isDone(run)) this.traces.get(run.run_id)?.end(Date.parse(run.updated_at));
      this.changes.increment();
    } catch (cause) {
      if (this.#closed) return;
      if (cause instanceof ApiKeyRequired) isLocked.value = true;
      this.isMissing.value = cause instanceof RequestError && (cause.status === 404 || cause.status === 422);
      this.error.value = errorMessage(cause);
    } finally {
      this.#reading = false;
      if (this.#again && !this.#closed) {
        this.#again = false;
        this.refresh();
      }
    }
  }

  #take(event: StreamEvent): void {
    const { run_id: run } = event;
    if (run === undefined) return;
    this.#last = event.id;
    let trace = this.traces.get(run);
    if (trace === undefined) {
      trace = new Trace(run);
      this.traces.set(run, trace);
      const [oldest] = this.traces.keys();
      if (this.traces.size > TRACES && oldest !== undefined) this.traces.delete(oldest);
      this.refresh();
    }
    if (trace.take(event)) this.changes.increment();
    if (event.event === "error") this.refresh();
  }

  #receive(message: Told): void {
    this.model.take(message);
    this.changes.increment();
    const { kind, run_id: run, sessionId, snapshot } = message;
    const trace = this.traces.get(run ?? "");
    const task = kind === "task" ? trace?.tasks.get(sessionId) : undefined;
    if (task !== undefined) trace?.tried(task, snapshot?.value);
    if (message.type === "@xstate.snapshot" && (kind === "thread" || kind === "run")) this.refresh();
  }
}
