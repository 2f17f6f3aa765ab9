import { withCauses } from "../model/errors.ts";
import { threadMapKey, type ThreadKey } from "../model/thread.ts";
import type { Logger } from "../ports/logger.ts";
import { unavailable } from "./abstract-level-store.ts";
import type { Committer } from "./committer.ts";
import {
  eventsPrefix,
  parseThreadMark,
  SWEEPS_RANGE,
  sweepKey,
  threadPrefix,
  prefixRange,
  runPrefix,
} from "./keys.ts";
import { andThen, type Eventually } from "../ports/eventually.ts";
import type { KeyValueStore, WriteOperation } from "../ports/key-value-store.ts";
import { PRESENT_MARK } from "./records.ts";
import { tryDecodeRun, runIndexKeys } from "./run-index.ts";
import type { WriteOrder } from "./write-order.ts";

/** Keys deleted at a time. */
const PIECE = 200;

/**
 * Deletes what does not fit into one batch: all keys of a removed thread, or the events of a run. The batch that removed it stored a mark.
 * While the mark exists, readers do not see any of the keys; after a crash the sweep continues.
 */
export class DeletionSweeper {
  readonly #kv: KeyValueStore;
  readonly #committer: Committer;
  readonly #order: WriteOrder;
  readonly #logger: Logger;
  /** Keys of the stored marks. */
  readonly #marks = new Set<string>();
  /** Marks in flight: nothing more may be written in their scope, but readers still see it until the mark is stored. */
  readonly #refusing = new Set<string>();
  /** Marks of threads that are written in pieces, hidden until they are complete. */
  readonly #reserved = new Set<string>();

  constructor(kv: KeyValueStore, committer: Committer, order: WriteOrder, logger: Logger) {
    this.#kv = kv;
    this.#committer = committer;
    this.#order = order;
    this.#logger = logger;
  }

  /** Whether the thread, or this run's log, is deleted for readers. */
  isDeleted(key: ThreadKey, run: string | null = null): Eventually<boolean> {
    if (this.#marks.size === 0 && this.#refusing.size === 0) return false;
    return andThen(
      this.#isGone(sweepKey(key, null)),
      (isGone) => isGone || (run !== null && this.#isGone(sweepKey(key, run))),
    );
  }

  /** A batch is stored before its writer is acknowledged. In between, only the store knows whether the mark is there. */
  #isGone(mark: string): Eventually<boolean> {
    if (this.#marks.has(mark)) return true;
    return this.#refusing.has(mark) && andThen(this.#kv.get(mark), (found) => found !== undefined);
  }

  /** Whether writes to it are refused. */
  refusesWrites(key: ThreadKey, run: string | null = null): boolean {
    if (this.#marks.size === 0 && this.#refusing.size === 0) return false;
    const isRefused = (mark: string) => this.#marks.has(mark) || this.#refusing.has(mark);
    return isRefused(sweepKey(key, null)) || (run !== null && isRefused(sweepKey(key, run)));
  }

  /** Refuses writes to it from now on. Called with the append whose batch has the mark. */
  refuseWrites(key: ThreadKey, run: string | null): void {
    this.#refusing.add(sweepKey(key, run));
  }

  /** Deletes the events of a run that has ended. A reader gets all of them, or none. */
  async expire(key: ThreadKey, run: string): Promise<void> {
    const mark = sweepKey(key, run);
    if (this.#marks.has(mark)) return;
    await this.#write([{ key: mark, value: PRESENT_MARK }]);
    this.#marks.add(mark);
    await this.sweep(key, run);
  }

  /** Hides it from all readers from now on. */
  hide(key: ThreadKey, run: string | null): void {
    this.#refusing.delete(sweepKey(key, run));
    this.#marks.add(sweepKey(key, run));
  }

  /** Marks a thread that is written in pieces: nobody reads it, and its parts are deleted after a crash. */
  async reserve(key: ThreadKey): Promise<void> {
    const mark = sweepKey(key, null);
    this.#marks.add(mark);
    this.#reserved.add(mark);
    await this.#write([{ key: mark, value: PRESENT_MARK }]);
  }

  /**
   * Writes a piece of a reserved thread. @throws ServiceError `storage.unavailable`, also when the storage has failed since {@link reserve}
   */
  async writePiece(key: ThreadKey, ops: readonly WriteOperation[]): Promise<void> {
    // The pieces written before the failure may have been deleted.
    if (!this.#reserved.has(sweepKey(key, null))) throw unavailable("a write failed", undefined);
    await this.#write(ops);
  }

  /** Writes the last piece and makes the thread visible. Throws as {@link writePiece} does. */
  async publish(key: ThreadKey, ops: readonly WriteOperation[]): Promise<void> {
    const mark = sweepKey(key, null);
    if (!this.#reserved.delete(mark)) throw unavailable("a write failed", undefined);
    await this.#write([...ops, { key: mark, value: null }], true);
    this.#marks.delete(mark);
  }

  /** Forgets all marks after a failed write: then only the stored marks count, see {@link readMarks}. */
  clear(): void {
    this.#marks.clear();
    this.#refusing.clear();
    this.#reserved.clear();
  }

  /**
   * Reads the stored marks. MUST have ended before the first write is accepted: without its mark, a thread could be created
   * in the middle of what the sweep deletes.
   */
  async readMarks(): Promise<void> {
    for await (const [mark] of this.#kv.entries(SWEEPS_RANGE)) this.#marks.add(mark);
  }

  /**
   * Continues the sweeps that an earlier process, or a failure, interrupted. Unlike after a deletion, no request waits for their end.
   * Writes to such a thread wait here until all of it is deleted and it can be created again.
   */
  resume(): void {
    for (const mark of this.#marks) {
      const { key, run } = parseThreadMark(mark);
      const swept = this.sweep(key, run).catch((error: unknown) => {
        this.#logger.warn("deleted data could not be swept; retrying later", {
          error: withCauses(error),
        });
      });
      if (run === null) this.#order.hold([threadMapKey(key)], swept);
    }
  }

  /**
   * Deletes all keys in the scope, including index entries of its runs, then the mark. Rejects if the storage fails; then the mark remains.
   * `isIndexed`: false if its runs are known to be in no index.
   */
  async sweep(key: ThreadKey, run: string | null, isIndexed = true): Promise<void> {
    const prefix = threadPrefix(key);
    const runs = runPrefix(prefix);
    let ops: WriteOperation[] = [];
    for await (const [found, bytes] of this.#kv.entries(
      prefixRange(run === null ? prefix : eventsPrefix(prefix, run)),
    )) {
      ops.push({ key: found, value: null });
      if (isIndexed && found.startsWith(runs)) {
        const stored = tryDecodeRun(bytes, key, found);
        if (stored !== undefined)
          for (const at of runIndexKeys(key, stored)) ops.push({ key: at, value: null });
      }
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

  #write(ops: readonly WriteOperation[], durable = false): Promise<void> {
    return this.#committer.store(ops, durable);
  }
}
