import { signal } from "@preact/signals";
import { listWaitingThreads, type WaitingThreads } from "../api/client.ts";
import type { ApiInterrupt, WaitingThread } from "../api/records.ts";
import { errorMessage, isKeyMissing } from "../app/notices.ts";
import { Refresher } from "../live/refresher.ts";
import { ThreadDescriptions } from "../live/thread-descriptions.ts";
import { awaitedEventTypes } from "../threads/event-answer.tsx";
import type { RunningTimer } from "../threads/machine-timers.tsx";
import { ApiKeyRequired } from "../api-errors.ts";
import { WaitingMachineTimers } from "./waiting-machine-timers.ts";

/** The number of threads on a page of the inbox. */
export const INBOX_PAGE_SIZE = 25;
/** Milliseconds between two reads of the page. */
const POLL_MS = 2_000;

/** A row of the inbox: a question, or a thread that waits without a question. */
export interface InboxRow {
  /** Identifies the row in successive reads, while its question is pending. */
  readonly key: string;
  readonly thread: WaitingThread;
  /** The question; null if the thread waits at a breakpoint, or because its state was edited. */
  readonly question: ApiInterrupt | null;
}

/** One page of the threads that wait for an answer or at a breakpoint, kept up to date. Other pages are not read. */
export class InboxSubscription {
  readonly rows = signal<readonly InboxRow[] | null>(null);
  /** The number of threads that wait, on all pages. */
  readonly total = signal(0);
  readonly error = signal<string | null>(null);
  /** Rises when descriptions or timers of the rows have been read. */
  readonly #version = signal(0);
  readonly #descriptions = new ThreadDescriptions(() => this.#version.value++);
  readonly #timers = new WaitingMachineTimers(() => this.#version.value++);
  readonly #refresher: Refresher<WaitingThreads>;
  readonly #poll: ReturnType<typeof setInterval>;

  /** `page`: the number of the page, counted from 0. */
  constructor(page: number) {
    this.#refresher = new Refresher<WaitingThreads>({
      read: (signal) => listWaitingThreads(page * INBOX_PAGE_SIZE, INBOX_PAGE_SIZE, signal),
      take: ({ threads, total }) => {
        const rows = threads.flatMap(rowsOf);
        this.rows.value = rows;
        this.#descriptions.setVisibleRows(threads);
        const machines = rows.filter(
          ({ question }) => question !== null && awaitedEventTypes(question) !== null,
        );
        void this.#timers.setThreads(machines.map(({ thread }) => thread));
        // An empty page, such as one of an old link, does not tell that the pages before it are full.
        this.total.value =
          threads.length === 0 ? total : Math.max(total, page * INBOX_PAGE_SIZE + threads.length);
        this.error.value = null;
      },
      onError: (cause) => {
        if (cause instanceof ApiKeyRequired) isKeyMissing.value = true;
        this.error.value = errorMessage(cause);
      },
    });
    this.#poll = setInterval(() => {
      if (!document.hidden) this.#refresher.poll();
    }, POLL_MS);
  }

  /** Returns the description of a row's thread; empty if it has none or it has not been read yet. */
  descriptionOf({ thread }: InboxRow): string {
    void this.#version.value;
    return this.#descriptions.of(thread);
  }

  /** Returns the next timer of the machine that asks; undefined if it has none or it has not been read yet. */
  nextTimerOf({ thread }: InboxRow): RunningTimer | undefined {
    void this.#version.value;
    return this.#timers.nextOf(thread);
  }

  refresh(): void {
    this.#refresher.request();
  }

  close(): void {
    clearInterval(this.#poll);
    this.#refresher.close();
  }
}

function rowsOf(thread: WaitingThread): readonly InboxRow[] {
  // Several tasks of a superstep may wait at the same interrupt of a subgraph. Such an interrupt gets only one row.
  const questions = new Map(
    Object.values(thread.interrupts)
      .flat()
      .map((one) => [one.id, one]),
  );
  if (questions.size === 0) return [{ key: thread.thread_id, thread, question: null }];
  return [...questions].map(([id, question]) => ({ key: `${thread.thread_id} ${id}`, thread, question }));
}
