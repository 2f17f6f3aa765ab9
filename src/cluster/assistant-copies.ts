import type { AssistantRecord } from "../model/assistant.ts";
import type { Clock } from "../ports/clock.ts";
import type { Eventually } from "../ports/eventually.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { Assistants } from "../service/assistants.ts";

/**
 * Milliseconds for which a process without the home shard uses its copy of an assistant. A change of an assistant waits until all processes
 * have discarded their copies, but not longer than this: then the copies of a process that does not answer are too old to be used.
 */
export const ASSISTANT_COPY_MS = 2_000;

/** The most copies of a process. */
const MAX_COPIES = 1_000;

interface Copy {
  /** When the home shard was asked, by the monotonic clock. */
  readonly askedAt: number;
  record: Eventually<AssistantRecord>;
}

/**
 * The assistants that this process has asked the home shard for. Every run names an assistant, so without copies, each run of another shard
 * would cost a call of the home shard.
 */
export class AssistantCopies {
  readonly #clock: Pick<Clock, "mono">;
  readonly #copies = new Map<string, Copy>();

  constructor(clock: Pick<Clock, "mono">) {
    this.#clock = clock;
  }

  /** The assistant from a copy, or else from `ask`. `key`: names what is asked for. An error is not copied. */
  find(key: string, ask: () => Promise<AssistantRecord>): Eventually<AssistantRecord> {
    const askedAt = this.#clock.mono();
    const known = this.#copies.get(key);
    if (known !== undefined && askedAt - known.askedAt < ASSISTANT_COPY_MS) return known.record;
    if (this.#copies.size >= MAX_COPIES) this.#copies.clear();
    const record = ask();
    const copy: Copy = { askedAt, record };
    this.#copies.set(key, copy);
    record.then(
      (found) => (copy.record = found),
      () => {
        if (this.#copies.get(key) === copy) this.#copies.delete(key);
      },
    );
    return record;
  }

  /** Discards all copies, and what has been asked and not been answered yet. */
  forget(): void {
    this.#copies.clear();
  }
}

/**
 * Wraps the assistants of the home shard, so that a change is acknowledged only when no process uses an earlier copy any more.
 * @param forget asks each other process to discard its copies
 */
export function withCopiesForgotten(
  assistants: Assistants,
  scheduler: Scheduler,
  forget: () => readonly Promise<unknown>[],
): Assistants {
  const forgotten = (asked: Promise<unknown>): Promise<void> =>
    new Promise((resolve) => {
      const cancel = scheduler.after(ASSISTANT_COPY_MS, resolve, true);
      asked.then(
        () => {
          cancel();
          resolve();
        },
        // The process may still have its copies, so the time has to pass.
        () => undefined,
      );
    });
  /** Awaits a change. One that fails may have been stored. */
  const changed = async <T>(change: Promise<T>): Promise<T> => {
    try {
      return await change;
    } finally {
      await Promise.all(forget().map(forgotten));
    }
  };
  return {
    ...assistants,
    update: (...args) => changed(assistants.update(...args)),
    setLatest: (...args) => changed(assistants.setLatest(...args)),
    delete: (...args) => changed(assistants.delete(...args)),
  };
}
