import { computed, signal } from "@preact/signals";
import { deleteThread, getShortenedState, getStateWithoutValues, getThread } from "../api/client.ts";
import { hasRunEnded, isJsonRecord, type Run, type ShortenedState, type Thread } from "../api/records.ts";
import { type FeedMessage as Told, FeedModel } from "../inspector/feed-model.ts";
import { EventLog } from "./event-log.ts";
import { RenderVersion } from "./render-version.ts";
import { ReconnectingSocket } from "./reconnecting-socket.ts";
import { Refresher } from "./refresher.ts";
import { reportReadFailure } from "./report-read-failure.ts";
import { NO_RUNS, readThreadRuns, type ThreadRuns } from "./read-thread-runs.ts";
import { type StreamEvent, Trace, TRACE_STREAM_PARAMS } from "./trace.ts";

/** Milliseconds between two reads while a run has not ended, or while the inspector's feed is not connected. */
const POLL_MS = 2_500;
/** Milliseconds between two reads in any case, because the feed reports neither deleted runs nor changed metadata. */
const QUIET_POLL_MS = 15_000;
/** The largest number of runs whose traces are kept. */
const MAX_TRACES = 20;

/**
 * The number of elements of each list in the state, such as the messages of a conversation, that are read unless the
 * user asks for more. This limit bounds the memory of a page on which a conversation grows for hours.
 */
export const DEFAULT_LIST_LIMIT = 500;
/** The largest number of reads of a state whose lists go on growing while the user reads their first elements. */
const MAX_READS = 4;
/** The largest limit that the server accepts. */
const MAX_LIST_LIMIT = 1_000_000_000;

type Records = readonly [record: Thread, state: ShortenedState, runs: ThreadRuns];

/** The data of one thread, kept up to date: its records, the events of its runs, and its live actors. */
export class ThreadSubscription {
  readonly id: string;
  readonly record = signal<Thread | null>(null);
  /** The latest state. Its long lists have only their last elements. */
  readonly state = signal<ShortenedState | null>(null);
  /**
   * Set by the view: returns whether it follows the end of the conversation. If it does not, the elements that were
   * read stay while the lists grow, because the user may be reading them.
   */
  isFollowing = (): boolean => true;
  readonly #runs = signal(NO_RUNS);
  readonly runs = computed(() => this.#runs.value.runs);
  readonly error = signal<string | null>(null);
  readonly isMissing = signal(false);
  readonly model = new FeedModel();
  /** The latest events of the thread's runs, beginning with the run that was in progress when the page was opened. */
  readonly log = new EventLog();
  /** The traces by run id: of the runs in progress, and of the newest run that is not queued. */
  readonly traces = new Map<string, Trace>();
  /** Rises with each change of the traces and the actors. */
  readonly changes = new RenderVersion();
  readonly stream: ReconnectingSocket;
  readonly feed: ReconnectingSocket;
  readonly #records: Refresher<Records>;
  /** The number of elements of each list that the user wants to see. */
  #wanted = DEFAULT_LIST_LIMIT;
  /** The number of elements by which the lists have grown since the view has stopped following their ends. */
  #grown = 0;
  #last: string | null = null;
  readonly #polls: readonly ReturnType<typeof setInterval>[];

  constructor(id: string) {
    this.id = id;
    this.stream = new ReconnectingSocket({
      path: `threads/${id}/stream`,
      query: () => {
        const last = this.#last;
        return new URLSearchParams({
          ...TRACE_STREAM_PARAMS,
          stream_states: "false",
          ...(last !== null && { last_event_id: last }),
        });
      },
      onOpen: () => this.refresh(),
      onMessage: (data) => this.#take(JSON.parse(data) as StreamEvent, data),
      onMissing: (reason) => {
        // If the thread has never been read, it may not have been created yet.
        if (this.record.peek() !== null) this.#deleted(reason);
      },
    });
    this.feed = new ReconnectingSocket({
      path: "inspect",
      query: () => new URLSearchParams({ thread_id: id }),
      onOpen: () => this.model.clear(),
      onMessage: (data) => this.#receive(JSON.parse(data) as Told),
    });
    this.#records = new Refresher<Records>({
      read: (signal) => this.#read(signal),
      take: (found) => this.#show(found),
      onError: (cause) => reportReadFailure(this, cause),
    });
    const isReported = () => this.feed.state.peek() === "open" && this.runs.peek().every(hasRunEnded);
    this.#polls = [
      setInterval(() => !isReported() && this.#records.poll(), POLL_MS),
      setInterval(() => this.#records.poll(), QUIET_POLL_MS),
    ];
  }

  /** Reports that the thread was deleted, and stops reading. */
  #deleted(reason: string): void {
    this.error.value = reason;
    this.isMissing.value = true;
    this.close();
  }

  close(): void {
    for (const poll of this.#polls) clearInterval(poll);
    this.#records.close();
    this.stream.close();
    this.feed.close();
  }

  /** Reads the thread's records again soon. */
  refresh(): void {
    this.#records.request();
  }

  /** Reads the last `count` elements of each list in the state soon; Infinity: all. */
  showElements(count: number): void {
    this.#wanted = Math.min(count, MAX_LIST_LIMIT);
    this.#grown = 0;
    this.#records.request();
  }

  /**
   * Deletes the thread. Reading is suspended meanwhile: the thread may be gone before the response arrives, and reads
   * would then fail.
   */
  async delete(): Promise<void> {
    this.#records.suspend();
    try {
      await deleteThread(this.id);
    } catch (cause) {
      this.#records.resume();
      throw cause;
    }
  }

  /** The run in progress; undefined if there is none. */
  get active(): Run | undefined {
    return this.runs.value.find(({ status }) => status === "running");
  }

  /** The queued runs, in the order in which they will start. In a long queue, the runs at the end are left out. */
  get queue(): readonly Run[] {
    return this.#runs.value.queue;
  }

  /** The number of queued runs, including those that `queue` leaves out. */
  get queued(): number {
    return this.#runs.value.queued;
  }

  /** Whether the thread may have runs that `runs` does not contain. */
  get hasMoreRuns(): boolean {
    return this.#runs.value.hasMore;
  }

  async #read(signal: AbortSignal): Promise<Records> {
    const { id } = this;
    const reads = Promise.all([getThread(id, signal), readThreadRuns(id, signal)]);
    const all = Promise.all([reads, this.#readState(signal)]);
    // The first time, the thread and its runs are shown before the state, which may be large, has arrived. Later, all
    // of them are shown together.
    if (this.record.peek() === null) {
      reads.then(
        ([record, runs]) => this.#showFirst(record, runs),
        // This error is also an error of `all`, which reports it.
        () => undefined,
      );
    }
    const [[record, runs], state] = await all;
    return [record, state, runs];
  }

  /**
   * Reads the thread's latest state. Its values, which may be large, are read only if there is a new checkpoint, or if
   * more elements of the lists are wanted.
   */
  async #readState(signal: AbortSignal): Promise<ShortenedState> {
    const before = this.state.peek();
    const known = before?.checkpoint?.checkpoint_id;
    if (before !== null && known !== undefined && this.#limit <= before.list_limit) {
      const head = await getStateWithoutValues(this.id, signal);
      if (head.checkpoint?.checkpoint_id === known) return { ...before, ...head };
    }
    // At the end of the conversation, nobody sees that earlier elements, which were asked for before, are left out again.
    if (before !== null && this.isFollowing() && this.#limit <= before.list_limit) {
      this.#wanted = DEFAULT_LIST_LIMIT;
      this.#grown = 0;
    }
    for (let reads = 1; ; reads++) {
      // oxlint-disable-next-line no-await-in-loop -- read again with a larger limit
      const state = await getShortenedState(this.id, this.#limit, signal);
      const more = before === null || this.isFollowing() ? 0 : elementsLost(before, state);
      if (more === 0 || reads === MAX_READS) return state;
      // Twice as many, because the lists may grow on during the next read.
      this.#grown += 2 * more;
    }
  }

  get #limit(): number {
    return Math.min(this.#wanted + this.#grown, MAX_LIST_LIMIT);
  }

  #showFirst(record: Thread, runs: ThreadRuns): void {
    if (this.record.peek() !== null) return;
    this.record.value = record;
    this.#runs.value = runs;
  }

  #show([record, state, found]: Records): void {
    this.record.value = record;
    this.state.value = state;
    this.#runs.value = found;
    this.error.value = null;
    this.isMissing.value = false;
    const { runs } = found;
    const latest = runs.find(({ status }) => status !== "pending");
    for (const run of runs.filter(hasRunEnded)) {
      this.traces.get(run.run_id)?.end(Date.parse(run.updated_at));
      if (run !== latest) this.traces.delete(run.run_id);
    }
    this.changes.increment();
  }

  #take(event: StreamEvent, text: string): void {
    const { run_id: run } = event;
    if (run === undefined) return;
    this.#last = event.id;
    let trace = this.traces.get(run);
    if (trace === undefined) {
      trace = new Trace(run, false);
      this.traces.set(run, trace);
      const [oldest] = this.traces.keys();
      if (this.traces.size > MAX_TRACES && oldest !== undefined) this.traces.delete(oldest);
      this.refresh();
    }
    if (trace.take(event)) {
      this.log.add(event, text);
      this.changes.increment();
    }
    if (event.event === "error" || event.event === "run_done" || isNewState(event)) this.refresh();
  }

  #receive(message: Told): void {
    this.model.take(message);
    this.changes.increment();
    const { kind, run_id: run, sessionId, snapshot } = message;
    const trace = this.traces.get(run ?? "");
    const task = kind === "task" ? trace?.tasks.get(sessionId) : undefined;
    if (task !== undefined) trace?.tried(task, snapshot?.value);
    // Each connection of the feed begins with the current states of the actors. They may be newer than the latest
    // read, so they also cause a read.
    if (message.type !== "@xstate.event" && (kind === "thread" || kind === "run")) this.refresh();
  }
}

/**
 * Returns how many of the list elements in `before` are no longer in the newer state `next` because of its limit; the
 * largest number of all lists. Elements that the thread has removed may be counted as well: they cannot be told apart.
 */
function elementsLost(before: ShortenedState, next: ShortenedState): number {
  const lost = Object.keys(next.list_lengths).map((name) => {
    const omitted = countOmittedElements(next, name);
    // A list that removes as many elements at its beginning as it gets at its end leaves out the same number as before.
    return Math.max(
      omitted - countOmittedElements(before, name),
      Math.min(omitted, countBeforeFirst(before.values[name], next.values[name])),
    );
  });
  return Math.max(0, ...lost);
}

/**
 * Returns how many elements of the list `before` precede the first element of the list `next`, by ids. 0 if the
 * elements have no ids, or if this element is not in `before`.
 */
function countBeforeFirst(before: unknown, next: unknown): number {
  if (!Array.isArray(before) || !Array.isArray(next)) return 0;
  const idOf = (element: unknown) => (isJsonRecord(element) ? element["id"] : undefined);
  const first = idOf(next[0]);
  return typeof first === "string"
    ? Math.max(
        0,
        before.findIndex((element) => idOf(element) === first),
      )
    : 0;
}

/** Returns the number of elements that a state leaves out at the beginning of a list. */
export function countOmittedElements(state: ShortenedState | null, name: string): number {
  const length = state?.list_lengths[name];
  const shown = state?.values[name];
  return length !== undefined && Array.isArray(shown) ? length - shown.length : 0;
}

/** Returns whether an event reports a new checkpoint of the root graph. */
const isNewState = ({ event, data }: StreamEvent): boolean =>
  event === "debug" && isJsonRecord(data) && data["type"] === "checkpoint";
