import { packWriteBatch } from "../codec/value-encoding.ts";
import { ServiceError } from "../model/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Eventually } from "../ports/eventually.ts";
import type {
  KeyValueEntry,
  KeyValueStore,
  ReplaceableKeyValueStore,
  ScanRange,
  WriteOperation,
} from "../ports/key-value-store.ts";
import type { Random } from "../ports/random.ts";
import type { ReplicationMetrics } from "../ports/replication-metrics.ts";
import type { Cancel, Scheduler } from "../ports/scheduler.ts";
import { fencedAppendError, type ShardLog } from "../ports/shard-log.ts";
import type { TimeBudget } from "../ports/time-budget.ts";
import type { OnProgress } from "../ports/work-progress.ts";
import { LogApplier, TAKEOVER_ENTRY } from "./log-applier.ts";
import { type DatabaseCopy, ShardSnapshotMaker, type ShardSnapshotOptions } from "./shard-snapshot-maker.ts";
import { restoreIfNeeded } from "./shard-snapshot-restore.ts";

/** The default of {@link ReplicationDeps.patienceMs}. A restart of PostgreSQL usually takes less time, so no batch fails then. */
const PATIENCE_MS = 5_000;
/** Milliseconds before an append is repeated for the first time. The delay doubles with each repetition, up to LONGEST_DELAY_MS. */
const FIRST_DELAY_MS = 20;
const LONGEST_DELAY_MS = 1_000;
/** Milliseconds between two reads of the log while another process owns the shard. */
const FOLLOW_MS = 50;
/** The range of all keys. Keys are ASCII. */
const EVERYTHING: ScanRange = { gte: "", lt: "\x7f" };

/** A shard that this process owns, or will own. */
export interface OwnedShard {
  readonly shard: number;
  /**
   * The epoch of this ownership. No two ownerships of a shard have the same epoch, not even those of one process before and after its
   * restart. A promise while another process owns the shard: `open` then applies the log until the promise resolves.
   */
  readonly epoch: number | Promise<number>;
}

export interface ReplicationDeps {
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly random: Random;
  /** Milliseconds for which an append without an answer is repeated before its batch fails. Default: 5000. */
  readonly patienceMs?: number;
  /** Absent: snapshots are neither used nor made, and the log is not trimmed. */
  readonly snapshots?: ShardSnapshotOptions;
  /**
   * Called once, when the shard is found to have another owner. From then on, every batch and every `open` is refused with `log.fenced`.
   */
  onFenced?(): void;
  /** Called with the progress of `open`. */
  readonly onProgress?: OnProgress;
  /** Called each time `open` has applied the whole log while this process does not own the shard yet. */
  onCaughtUp?(): void;
}

/**
 * The database of a shard. Its batches are durable in a log instead of on the disk: a batch is appended to the log, then written to the
 * inner store without sync, then acknowledged.
 *
 * `open` brings the inner store up to date, from a snapshot and the log, and appends an entry that changes nothing. From then on, no
 * earlier append of this or a former owner can be stored, however late it arrives, because its position is taken.
 */
export class ReplicatedKeyValueStore implements KeyValueStore {
  readonly #inner: ReplaceableKeyValueStore;
  readonly #log: ShardLog;
  readonly #shard: number;
  readonly #owned: OwnedShard["epoch"];
  /** The epoch of the ownership; 0 while this process does not own the shard yet. */
  #epoch = 0;
  readonly #deps: ReplicationDeps;
  readonly #applier: LogApplier;
  readonly #snapshotMaker: ShardSnapshotMaker | undefined;
  /** Resolves when the last batch has ended. The log accepts one append of a shard at a time. */
  #last: Promise<void> = Promise.resolve();
  #isOpen = false;
  /**
   * The error of the first batch that has failed since the store was opened. After it, all batches are refused, because it is unknown
   * whether the log has the failed batch.
   */
  #failure: unknown;
  #isInnerOpen = false;
  #isFenced = false;
  /** Ends the pause before an append is repeated, or the log is read again. Undefined if there is no pause. */
  #endPause: (() => void) | undefined;

  constructor(inner: ReplaceableKeyValueStore, log: ShardLog, owned: OwnedShard, deps: ReplicationDeps) {
    this.#inner = inner;
    this.#log = log;
    this.#shard = owned.shard;
    this.#owned = owned.epoch;
    this.#deps = deps;
    this.#applier = new LogApplier(inner, log, owned.shard);
    const { snapshots, clock, scheduler } = deps;
    const { shard } = owned;
    this.#snapshotMaker =
      snapshots &&
      new ShardSnapshotMaker({ ...snapshots, shard, log, clock, scheduler, copy: () => this.#copy() });
  }

  /** Undefined if there are no snapshot options. */
  get metrics(): ReplicationMetrics | undefined {
    return this.#snapshotMaker?.metrics(this.#applier.applied);
  }

  get budget(): TimeBudget | undefined {
    return this.#inner.budget;
  }

  set budget(budget: TimeBudget | undefined) {
    this.#inner.budget = budget;
  }

  async open(): Promise<void> {
    await this.#inner.open();
    this.#isInnerOpen = true;
    try {
      await this.#applier.readPosition();
      await this.#restore();
      this.#epoch = await this.#waitForOwnership();
      await this.#recover();
    } catch (error) {
      await this.#closeInner();
      throw error;
    }
    this.#failure = undefined;
    this.#isOpen = true;
    this.#snapshotMaker?.start();
  }

  get(key: string, isSlow?: boolean): Eventually<Buffer | undefined> {
    return this.#inner.get(key, isSlow);
  }

  entries(range: ScanRange): AsyncIterable<KeyValueEntry> {
    return this.#inner.entries(range);
  }

  keys(range: ScanRange): AsyncIterable<readonly string[]> {
    return this.#inner.keys(range);
  }

  /**
   * Appends a batch to the log, and writes it to the inner store. The option `sync` makes no difference, because every batch in the log
   * survives a power cut.
   */
  batch(ops: readonly WriteOperation[]): Promise<void> {
    const stored = this.#last.then(() => this.#store(ops));
    this.#last = stored.catch(() => undefined);
    return stored;
  }

  /**
   * Probes the inner store, and then the log, by appending an entry that changes nothing. Rejects while either fails. After a failed write
   * to the inner store, or a failed `open`, the log is not probed, because the inner store has to be opened again first.
   */
  async probe(): Promise<void> {
    await this.#inner.probe?.();
    if (this.#isInnerOpen && !this.#applier.hasFailed) await this.#recover();
  }

  async close(): Promise<void> {
    this.#isOpen = false;
    this.#snapshotMaker?.stop();
    this.#endPause?.();
    await this.#last;
    await this.#closeInner();
  }

  async #closeInner(): Promise<void> {
    this.#isInnerOpen = false;
    await this.#inner.close();
  }

  async #store(ops: readonly WriteOperation[]): Promise<void> {
    if (!this.#isOpen)
      throw new ServiceError("storage.unavailable", "The storage is not available: it is closed");
    if (this.#failure !== undefined) throw this.#failure;
    if (ops.length === 0) return;
    try {
      const seq = this.#applier.applied + 1;
      const batch = packWriteBatch(ops);
      await this.#append(seq, batch);
      await this.#applier.apply(seq, this.#epoch, ops);
      this.#snapshotMaker?.appended(batch.length);
    } catch (error) {
      this.#failure = error;
      throw error;
    }
  }

  /** Appends a batch to the log, and repeats the append while the log does not answer. */
  async #append(seq: number, batch: Uint8Array): Promise<void> {
    const { clock, patienceMs = PATIENCE_MS } = this.#deps;
    const until = clock.mono() + patienceMs;
    for (let delay = FIRST_DELAY_MS; ; delay = Math.min(2 * delay, LONGEST_DELAY_MS)) {
      try {
        return await this.#appendOnce(seq, batch);
      } catch (error) {
        if (isFenced(error) || clock.mono() >= until || !this.#isOpen) throw error;
        await this.#pause(delay);
      }
    }
  }

  /**
   * Appends a batch to the log. If the log refuses the append, an earlier attempt without an answer may have been stored: the entry at the
   * position then has the same epoch and content, and the append counts as successful.
   */
  async #appendOnce(seq: number, batch: Uint8Array): Promise<void> {
    const [shard, epoch] = [this.#shard, this.#epoch];
    try {
      await this.#log.append(shard, seq, epoch, batch);
    } catch (error) {
      if (!isFenced(error)) throw error;
      const [taken] = (await this.#log.last(shard)) < seq ? [] : await this.#log.read(shard, seq, 1);
      if (taken?.epoch !== epoch || Buffer.compare(taken.batch, batch) !== 0) throw this.#fenced(error);
    }
  }

  /**
   * Opens a copy of the database between two batches. The next batch does not wait until the copy is read: the first read, which begins
   * here and is not awaited, determines the content of the copy.
   */
  #copy(): Promise<DatabaseCopy> {
    const copied = this.#last.then((): DatabaseCopy => {
      if (!this.#isOpen) throw new ServiceError("storage.unavailable", "The database is closed");
      if (this.#failure !== undefined) throw this.#failure;
      const iterator = this.#inner.entries(EVERYTHING)[Symbol.asyncIterator]();
      const first = iterator.next();
      first.catch(() => undefined);
      async function* entries(): AsyncGenerator<KeyValueEntry> {
        for (let next = await first; next.done !== true; next = await iterator.next()) yield next.value;
      }
      return {
        seq: this.#applier.applied,
        entries: entries(),
        close: async () => void (await iterator.return?.()),
      };
    });
    this.#last = copied.then(
      () => undefined,
      () => undefined,
    );
    return copied;
  }

  /** Fills the inner store from a snapshot, if the store is empty, or if the log no longer has all entries after the store's position. */
  async #restore(): Promise<void> {
    const { snapshots, onProgress } = this.#deps;
    if (snapshots === undefined || this.#isFenced) return;
    await restoreIfNeeded(this.#inner, this.#applier, {
      ...snapshots,
      shard: this.#shard,
      log: this.#log,
      ...(onProgress && { onProgress }),
    });
  }

  /** Returns the epoch of the ownership. While another process owns the shard, applies what that process appends to the log. */
  async #waitForOwnership(): Promise<number> {
    const owned = this.#owned;
    if (typeof owned === "number") return owned;
    const taken: { epoch?: number } = {};
    void owned.then((epoch) => {
      taken.epoch = epoch;
      this.#endPause?.();
    });
    const { onProgress, onCaughtUp } = this.#deps;
    await this.#applier.follow(onProgress);
    while (taken.epoch === undefined) {
      onCaughtUp?.();
      await this.#pause(FOLLOW_MS);
      await this.#applier.follow();
    }
    return taken.epoch;
  }

  /** Applies the log entries that the inner store does not have, and appends the {@link TAKEOVER_ENTRY}. */
  async #recover(): Promise<void> {
    const [shard, epoch] = [this.#shard, this.#epoch];
    if (this.#isFenced) throw fencedAppendError(shard, this.#applier.applied + 1, epoch);
    await this.#applier.checkPosition();
    for (;;) {
      await this.#applier.catchUp(this.#deps.onProgress);
      const seq = this.#applier.applied + 1;
      if (this.#applier.epoch > epoch) throw this.#fenced(fencedAppendError(shard, seq, epoch));
      try {
        await this.#log.append(shard, seq, epoch, TAKEOVER_ENTRY);
        return await this.#applier.apply(seq, epoch, []);
      } catch (error) {
        if (!isFenced(error)) throw error;
        // If the position is taken, a late append of this or a former owner was stored there. That entry is applied, and the next position
        // is tried. If the position is free, the shard has a newer epoch: another node owns it.
        if ((await this.#log.last(shard)) < seq) throw this.#fenced(error);
      }
    }
  }

  #fenced(error: unknown): unknown {
    if (!this.#isFenced) this.#deps.onFenced?.();
    this.#isFenced = true;
    this.#snapshotMaker?.stop();
    return error;
  }

  /**
   * Waits before an append is repeated, or the log is read again. The pause is random, between half of `ms` and `ms`, so that the nodes of a cluster do not retry at
   * the same moment.
   */
  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        cancel();
        this.#endPause = undefined;
        resolve();
      };
      const cancel: Cancel = this.#deps.scheduler.after(
        ms * (0.5 + this.#deps.random.float() / 2),
        end,
        true,
      );
      this.#endPause = end;
    });
  }
}

const isFenced = (error: unknown): boolean => error instanceof ServiceError && error.code === "log.fenced";
