import { withCauses } from "../model/errors.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Logger } from "../ports/logger.ts";
import { unavailable } from "./abstract-kv.ts";
import type { Committer } from "./committer.ts";
import { eventsPrefix, parseMark, SWEEPS, sweepKey, threadPrefix, within } from "./keys.ts";
import type { Kv, Op } from "./kv.ts";
import { MARK } from "./records.ts";

/** Keys deleted at a time. */
const PIECE = 200;

/**
 * Deletes what is too much for one batch: all keys of a removed thread, or the events of a forgotten run. The batch that
 * removed it left a mark; until the mark is gone nothing of it is read, and after a crash the sweep is taken up again.
 */
export class Sweeper {
  readonly #kv: Kv;
  readonly #committer: Committer;
  readonly #logger: Logger;
  /** Keys of the marks. */
  readonly #marks = new Set<string>();
  /** Marks on their way to storage: nothing more is written there, and until they are in the store all of it is read. */
  readonly #doomed = new Set<string>();
  /** Marks of threads that are being written, and not there before they are whole. */
  readonly #reserved = new Set<string>();

  constructor(kv: Kv, committer: Committer, logger: Logger) {
    this.#kv = kv;
    this.#committer = committer;
    this.#logger = logger;
  }

  /** Is the thread, or this run's log, about to be deleted? */
  has(key: ThreadKey, run: string | null = null): boolean {
    if (this.#marks.size === 0 && this.#doomed.size === 0) return false;
    return this.#isGone(sweepKey(key, null)) || (run !== null && this.#isGone(sweepKey(key, run)));
  }

  /** A batch is in the store before its writer hears of it: until then the store says whether the mark is. */
  #isGone(mark: string): boolean {
    return this.#marks.has(mark) || (this.#doomed.has(mark) && this.#kv.getSync(mark) !== undefined);
  }

  /** May nothing be written there any more? */
  refuses(key: ThreadKey, run: string | null = null): boolean {
    if (this.has(key, run)) return true;
    return this.#doomed.size > 0 && this.#doomed.has(sweepKey(key, run));
  }

  /** From here on nothing is written there. Called with the append whose batch holds the mark. */
  doom(key: ThreadKey, run: string | null): void {
    this.#doomed.add(sweepKey(key, run));
  }

  /** Deletes the events of a run that has ended. Its readers meet all of them, or none. */
  async expire(key: ThreadKey, run: string): Promise<void> {
    const mark = sweepKey(key, run);
    if (this.#marks.has(mark)) return;
    await this.#write([{ key: mark, value: MARK }]);
    this.#marks.add(mark);
    await this.sweep(key, run);
  }

  /** From here on it is gone for every reader. */
  hide(key: ThreadKey, run: string | null): void {
    this.#doomed.delete(sweepKey(key, run));
    this.#marks.add(sweepKey(key, run));
  }

  /** Marks a thread that is to be written in pieces: nobody reads it, and what is left of it after a crash is swept. */
  async reserve(key: ThreadKey): Promise<void> {
    const mark = sweepKey(key, null);
    this.#marks.add(mark);
    this.#reserved.add(mark);
    await this.#write([{ key: mark, value: MARK }]);
  }

  /** Writes a piece of it. @throws ServiceError `storage.unavailable` also when the storage has failed meanwhile */
  async fill(key: ThreadKey, ops: readonly Op[]): Promise<void> {
    // What was written before the failure may have been swept.
    if (!this.#reserved.has(sweepKey(key, null))) throw unavailable("a write failed", undefined);
    await this.#write(ops);
  }

  /** It is whole: with its last piece it is there. Throws as {@link fill} does. */
  async publish(key: ThreadKey, ops: readonly Op[]): Promise<void> {
    const mark = sweepKey(key, null);
    if (!this.#reserved.delete(mark)) throw unavailable("a write failed", undefined);
    await this.#write([...ops, { key: mark, value: null }], true);
    this.#marks.delete(mark);
  }

  /** That append was refused: what is stored decides, see {@link resume}. */
  clear(): void {
    this.#marks.clear();
    this.#doomed.clear();
    this.#reserved.clear();
  }

  /** Takes up what an earlier process, or a failure, has left. */
  async resume(): Promise<void> {
    const found: { key: ThreadKey; run: string | null }[] = [];
    for await (const [mark] of this.#kv.entries(SWEEPS)) {
      this.#marks.add(mark);
      found.push(parseMark(mark));
    }
    for (const { key, run } of found) {
      this.sweep(key, run).catch((error: unknown) => {
        this.#logger.warn("deleted data could not be swept; it is tried again later", {
          error: withCauses(error),
        });
      });
    }
  }

  /** Deletes it. Resolves once it is done; rejects when the storage fails, the mark stays then. */
  async sweep(key: ThreadKey, run: string | null): Promise<void> {
    const prefix = threadPrefix(key);
    let ops: Op[] = [];
    for await (const [found] of this.#kv.entries(within(run === null ? prefix : eventsPrefix(prefix, run)))) {
      ops.push({ key: found, value: null });
      if (ops.length < PIECE) continue;
      await this.#write(ops);
      ops = [];
    }
    const mark = sweepKey(key, run);
    ops.push({ key: mark, value: null });
    await this.#write(ops);
    this.#marks.delete(mark);
    this.#reserved.delete(mark);
  }

  #write(ops: readonly Op[], durable = false): Promise<void> {
    const { refusal } = this.#committer;
    if (refusal !== undefined) return Promise.reject(refusal);
    return new Promise((resolve, reject) => {
      this.#committer.submit({ ops, durable, stored: resolve, failed: reject });
    });
  }
}
