import { withCauses } from "../model/errors.ts";
import { threadMapKey, type ThreadKey } from "../model/thread.ts";
import type { Logger } from "../ports/logger.ts";
import { storageUnavailableError } from "./abstract-level-store.ts";
import type { Committer } from "./committer.ts";
import {
  eventsPrefix,
  parseThreadMark,
  DELETION_MARKS_RANGE,
  deletionMarkKey,
  threadPrefix,
  prefixRange,
  runPrefix,
} from "./keys.ts";
import { andThen, type Eventually } from "../ports/eventually.ts";
import type { KeyValueStore, WriteOperation } from "../ports/key-value-store.ts";
import { PRESENT_MARK } from "./stored-records.ts";
import { tryDecodeRun, runIndexKeys } from "./run-index.ts";
import type { WriteOrder } from "./write-order.ts";

/** Deletions are written as a batch when there are this many, or a few more. */
const DELETIONS_PER_BATCH = 200;

/**
 * Deletions of data that does not fit into one batch: all keys of a removed thread, or the events of a run. The batch that removes the
 * thread or the run stores a key as a mark of the deletion. While the mark exists, readers do not see the data, and a sweep deletes it.
 * After a crash, the marks show which sweeps have to continue.
 */
export class MarkedDeletions {
  readonly #kv: KeyValueStore;
  readonly #committer: Committer;
  readonly #order: WriteOrder;
  readonly #logger: Logger;
  /**
   * Deletion marks (see {@link MarkedDeletions}) that are stored, or that {@link reserve} is storing. Each mark hides its thread or run
   * from readers.
   */
  readonly #marks = new Set<string>();
  /**
   * Deletion marks whose batch is in flight. Writes to the thread or run are refused, but readers still see its data until the mark is
   * stored.
   */
  readonly #refusing = new Set<string>();
  /** Deletion marks of threads that are being written in pieces. Such a mark hides the thread until all of its pieces are written. */
  readonly #reserved = new Set<string>();

  /**
   * Called when cached data may belong to deleted threads or runs: after a thread or run was hidden, before its data is deleted, and after
   * the stored marks were read. The listener MUST drop cached data.
   */
  onHide: () => void = () => undefined;

  constructor(kv: KeyValueStore, committer: Committer, order: WriteOrder, logger: Logger) {
    this.#kv = kv;
    this.#committer = committer;
    this.#order = order;
    this.#logger = logger;
  }

  /** True when readers do not see the thread, or the event log of `run`: it is deleted, or is still being written in pieces. */
  isDeleted(key: ThreadKey, run: string | null = null): Eventually<boolean> {
    if (this.#marks.size === 0 && this.#refusing.size === 0) return false;
    return andThen(
      this.#isGone(deletionMarkKey(key, null)),
      (isGone) => isGone || (run !== null && this.#isGone(deletionMarkKey(key, run))),
    );
  }

  /**
   * True when a deletion mark hides its thread or run. `#marks` gets the mark only when its batch is acknowledged, some time after the
   * batch was stored. Until then, the store is asked.
   */
  #isGone(mark: string): Eventually<boolean> {
    if (this.#marks.has(mark)) return true;
    return this.#refusing.has(mark) && andThen(this.#kv.get(mark), (found) => found !== undefined);
  }

  /** True when writes to the thread, or to the event log of `run`, are refused. */
  refusesWrites(key: ThreadKey, run: string | null = null): boolean {
    if (this.#marks.size === 0 && this.#refusing.size === 0) return false;
    const isRefused = (mark: string) => this.#marks.has(mark) || this.#refusing.has(mark);
    return isRefused(deletionMarkKey(key, null)) || (run !== null && isRefused(deletionMarkKey(key, run)));
  }

  /** Refuses writes to the thread or run from now on. Called when the batch with the deletion mark is submitted. */
  refuseWrites(key: ThreadKey, run: string | null): void {
    this.#refusing.add(deletionMarkKey(key, run));
  }

  /** Deletes the events of a run that has ended. The mark is stored first, so a reader gets all events of the run or none of them. */
  async expire(key: ThreadKey, run: string): Promise<void> {
    const mark = deletionMarkKey(key, run);
    if (this.#marks.has(mark)) return;
    await this.#write([{ key: mark, value: PRESENT_MARK }]);
    this.hide(key, run);
    await this.sweep(key, run);
  }

  /** Hides the thread or run from all readers from now on. Called when the deletion mark is stored. */
  hide(key: ThreadKey, run: string | null): void {
    this.#refusing.delete(deletionMarkKey(key, run));
    this.#marks.add(deletionMarkKey(key, run));
    this.onHide();
  }

  /**
   * Stores a deletion mark for a thread that will be written in pieces. Until {@link publish}, nobody can read the thread, and after a
   * crash its pieces are deleted.
   */
  async reserve(key: ThreadKey): Promise<void> {
    const mark = deletionMarkKey(key, null);
    this.#marks.add(mark);
    this.#reserved.add(mark);
    await this.#write([{ key: mark, value: PRESENT_MARK }]);
  }

  /**
   * Writes a piece of a reserved thread. @throws ServiceError `storage.unavailable`, also if the storage has failed since {@link reserve}
   */
  async writePiece(key: ThreadKey, ops: readonly WriteOperation[]): Promise<void> {
    // If a write has failed, the thread is not reserved any more, and its earlier pieces may have been deleted.
    if (!this.#reserved.has(deletionMarkKey(key, null)))
      throw storageUnavailableError("a write failed", undefined);
    await this.#write(ops);
  }

  /** Writes the last piece and makes the thread visible. Throws the errors of {@link writePiece}. */
  async publish(key: ThreadKey, ops: readonly WriteOperation[]): Promise<void> {
    const mark = deletionMarkKey(key, null);
    if (!this.#reserved.delete(mark)) throw storageUnavailableError("a write failed", undefined);
    await this.#write([...ops, { key: mark, value: null }], true);
    this.#marks.delete(mark);
  }

  /** Forgets all deletion marks after a failed write. The stored marks are read again later: see {@link readMarks}. */
  clear(): void {
    this.#marks.clear();
    this.#refusing.clear();
    this.#reserved.clear();
  }

  /**
   * Reads the stored deletion marks. MUST resolve before writes are accepted: otherwise a thread could be created while the sweep of an
   * earlier thread with the same id deletes its keys.
   */
  async readMarks(): Promise<void> {
    for await (const [mark] of this.#kv.entries(DELETION_MARKS_RANGE)) this.#marks.add(mark);
    this.onHide();
  }

  /**
   * Continues the sweeps that were interrupted by the end of an earlier process or by a failure. No request waits for
   * these sweeps. Writes to a thread wait until its sweep has ended; then the thread can be created again.
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
   * Deletes the events of `run`, or, if `run` is null, all keys of the thread and the index entries of its runs. Then deletes the mark.
   * Rejects if the storage fails; the mark then stays. `isIndexed`: false if the thread was temporary, so that its runs are in no index.
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
      if (ops.length < DELETIONS_PER_BATCH) continue;
      await this.#write(ops);
      ops = [];
    }
    const mark = deletionMarkKey(key, run);
    ops.push({ key: mark, value: null });
    await this.#write(ops);
    this.#marks.delete(mark);
    this.#reserved.delete(mark);
  }

  #write(ops: readonly WriteOperation[], durable = false): Promise<void> {
    return this.#committer.store(ops, durable);
  }
}
