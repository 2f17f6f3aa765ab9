import { ServiceError, withCauses } from "../model/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { KeyValueEntry } from "../ports/key-value-store.ts";
import type { Logger } from "../ports/logger.ts";
import type { ReplicationMetrics } from "../ports/replication-metrics.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { ShardLog } from "../ports/shard-log.ts";
import type { ShardSnapshot, ShardSnapshots } from "../ports/shard-snapshots.ts";
import { APPLIED_KEY, decodePosition } from "./log-applier.ts";
import { writeSnapshotParts } from "./shard-snapshot-parts.ts";

/** The default of {@link ShardSnapshotOptions.logBytes}. */
const DEFAULT_LOG_BYTES = 256 * 1024 * 1024;
/** Milliseconds after a snapshot until the next one is made, even if the log has fewer new bytes than {@link ShardSnapshotOptions.logBytes}. */
const INTERVAL_MS = 60 * 60 * 1000;
/**
 * The fewest new bytes in the log with which a snapshot is made after {@link INTERVAL_MS}. Health checks alone, which write to the log,
 * must not cause snapshots.
 */
const MIN_INTERVAL_BYTES = 1024 * 1024;
/** Milliseconds between two checks whether {@link INTERVAL_MS} has passed. */
const CHECK_MS = 60_000;
/**
 * The number of snapshots that are kept. Log entries after the oldest of them are kept too, so it can be used if the newer one is damaged,
 * or while a node is still reading it.
 */
const KEPT_SNAPSHOTS = 2;
/** The number of log positions that are trimmed at once. */
const TRIM_STEP = 500;
/**
 * Milliseconds before the next attempt after a snapshot has failed. The delay doubles with each further failure, up to LONGEST_DELAY_MS.
 */
const FIRST_DELAY_MS = 5_000;
const LONGEST_DELAY_MS = 5 * 60_000;

/** A copy of the database at a position of its log. */
export interface DatabaseCopy {
  readonly seq: number;
  /** All entries in the order of their keys. They can be read only once. */
  readonly entries: AsyncIterable<KeyValueEntry>;
  /** Releases the copy. */
  close(): Promise<void>;
}

export interface ShardSnapshotOptions {
  readonly store: ShardSnapshots;
  /** When the log has this many bytes of new entries, a snapshot is made. Default: 256 MiB. */
  readonly logBytes?: number | undefined;
  readonly logger: Logger;
}

export interface ShardSnapshotMakerDeps extends ShardSnapshotOptions {
  readonly shard: number;
  readonly log: ShardLog;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  /** Opens a copy of the database, between two writes. Rejects while the database does not accept writes. */
  copy(): Promise<DatabaseCopy>;
}

/**
 * Makes the snapshots of a shard, one at a time, while the shard is served, and trims the shard's log. Works in small steps, each followed
 * by a pause as long as the step, so that appends to the log are hardly delayed.
 *
 * The process may end at any moment: an incomplete snapshot is never used, and only log entries that complete snapshots include are
 * trimmed. The next owner of the shard begins by deleting what is left.
 */
export class ShardSnapshotMaker {
  readonly #deps: ShardSnapshotMakerDeps;
  #stop = new AbortController();
  /** Resolves when the work that was started last has ended. */
  #last: Promise<void> = Promise.resolve();
  /** Ends the wait for the next check whether a snapshot is due. */
  #wake: (() => void) | undefined;
  /** The bytes of the log entries after the newest snapshot. */
  #newBytes = 0;
  /** The position of the first log entry, and the bytes of all log entries. Undefined until they have been read. */
  #log: { readonly first: number; bytes: number } | undefined;
  #newest: ShardSnapshot | undefined;
  #made = 0;
  #failed = 0;

  constructor(deps: ShardSnapshotMakerDeps) {
    this.#deps = deps;
  }

  /** The replication metrics of a shard. `position`: the position up to which the owner has applied the log. */
  metrics(position: number): ReplicationMetrics {
    const log = this.#log;
    return {
      position,
      log: log && { entries: Math.max(0, position - log.first + 1), bytes: log.bytes },
      snapshot: this.#newest,
      snapshotsMade: this.#made,
      snapshotsFailed: this.#failed,
    };
  }

  /** Starts the work in the background. Called when the database accepts writes. */
  start(): void {
    this.#stop.abort();
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    // The previous work was stopped above, but may still wait for an answer of the cluster's database.
    this.#last = this.#last.then(() => this.#work(signal));
  }

  /** Gives up the snapshot that is being made, and makes no further snapshots until the next {@link start}. */
  stop(): void {
    this.#stop.abort();
    this.#wake?.();
  }

  /** Called after each append to the log, with the bytes of the appended batch. */
  appended(bytes: number): void {
    const { logBytes = DEFAULT_LOG_BYTES } = this.#deps;
    const isDue = this.#newBytes >= logBytes;
    this.#newBytes += bytes;
    if (this.#log !== undefined) this.#log.bytes += bytes;
    if (!isDue && this.#newBytes >= logBytes) this.#wake?.();
  }

  async #work(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#deps;
    const startedAt = clock.now();
    for (let delay = FIRST_DELAY_MS; !signal.aborted;) {
      try {
        await this.#tidy(signal);
        while (!signal.aborted && !this.#isDue(startedAt)) await this.#nextCheck(signal);
        if (signal.aborted) return;
        const since = clock.mono();
        const snapshot = await this.#make(signal);
        const { seq, bytes } = snapshot;
        logger.info("a snapshot was made", { seq, bytes, ms: Math.round(clock.mono() - since) });
        this.#made++;
        delay = FIRST_DELAY_MS;
      } catch (cause) {
        if (signal.aborted) return;
        this.#failed++;
        logger.warn("a snapshot could not be made; it is tried again", { error: withCauses(cause) });
        await this.#pause(delay, signal);
        delay = Math.min(2 * delay, LONGEST_DELAY_MS);
      }
    }
  }

  /** Deletes old snapshots and log entries that are no longer needed, and then measures the log. */
  async #tidy(signal: AbortSignal): Promise<void> {
    const { shard, log, store } = this.#deps;
    await store.prune(shard, KEPT_SNAPSHOTS);
    const complete = await store.list(shard);
    const oldest = complete[KEPT_SNAPSHOTS - 1];
    let whole = await log.extent(shard, 1);
    let { first } = whole;
    const isTrimmed = oldest !== undefined && first < oldest.seq;
    while (oldest !== undefined && first < oldest.seq) {
      const since = this.#deps.clock.mono();
      first = Math.min(first + TRIM_STEP, oldest.seq);
      // The entry at the snapshot's position stays, so that a node that starts from the snapshot can check its position against the log.
      await log.trim(shard, first);
      await this.#pause(this.#deps.clock.mono() - since, signal);
      if (signal.aborted) throw givenUp();
    }
    this.#newest = complete[0];
    this.#newBytes = 0;
    const { bytes } = await log.extent(shard, (this.#newest?.seq ?? 0) + 1);
    // Entries that are appended during the call above may be counted twice. The next snapshot is then made a little early.
    this.#newBytes += bytes;
    if (isTrimmed) whole = await log.extent(shard, 1);
    this.#log = { first: whole.first, bytes: whole.bytes };
    if (signal.aborted) throw givenUp();
  }

  #isDue(startedAt: number): boolean {
    const { logBytes = DEFAULT_LOG_BYTES, clock } = this.#deps;
    if (this.#newBytes >= logBytes) return true;
    if (this.#newBytes < MIN_INTERVAL_BYTES) return false;
    // `madeAt` is from the clock of the cluster's database, which may differ a little from this clock. For an interval of an hour, this
    // does not matter.
    return clock.now() - (this.#newest?.madeAt ?? startedAt) >= INTERVAL_MS;
  }

  #nextCheck(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        cancel();
        this.#wake = undefined;
        resolve();
      };
      const cancel = this.#deps.scheduler.after(CHECK_MS, end);
      this.#wake = end;
      if (signal.aborted) end();
    });
  }

  async #make(signal: AbortSignal): Promise<ShardSnapshot> {
    const { shard, store } = this.#deps;
    const copy = await this.#deps.copy();
    try {
      return await store.put(shard, copy.seq, this.#partsOf(copy, signal));
    } finally {
      await copy.close();
    }
  }

  async *#partsOf({ seq, entries }: DatabaseCopy, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const { clock } = this.#deps;
    let since = clock.mono();
    for await (const part of writeSnapshotParts(checked(entries, seq))) {
      if (signal.aborted) throw givenUp();
      yield part;
      // The time includes the storing of the part: the consumer asks for the next part only afterwards.
      await this.#pause(clock.mono() - since, signal);
      since = clock.mono();
    }
    if (signal.aborted) throw givenUp();
  }

  #pause(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        cancel();
        signal.removeEventListener("abort", end);
        resolve();
      };
      const cancel = this.#deps.scheduler.after(ms, end);
      if (signal.aborted) end();
      else signal.addEventListener("abort", end);
    });
  }
}

/** Passes on the entries of a copy, and throws if the copy does not have the expected position. */
async function* checked(entries: AsyncIterable<KeyValueEntry>, seq: number): AsyncGenerator<KeyValueEntry> {
  let found: number | undefined;
  for await (const entry of entries) {
    if (entry[0] === APPLIED_KEY) [found] = decodePosition(entry[1]);
    yield entry;
  }
  if (found !== seq)
    throw new ServiceError(
      "storage.unavailable",
      `The copy of the database is not at position ${seq}: ${found}`,
    );
}

const givenUp = (): ServiceError =>
  new ServiceError("storage.unavailable", "The snapshot is given up: this node stops, or has lost the shard");
