import { ServiceError, withCauses } from "../model/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { KeyValueEntry } from "../ports/key-value-store.ts";
import type { Logger } from "../ports/logger.ts";
import type { ReplicationMetrics } from "../ports/replication-metrics.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { ShardLog } from "../ports/shard-log.ts";
import type { ShardSnapshot, ShardSnapshots } from "../ports/shard-snapshots.ts";
import { APPLIED_KEY, decodePosition } from "./log-applier.ts";
import { toParts } from "./shard-snapshot-parts.ts";

/** Default: the bytes of new log entries after which a snapshot is made. */
const LOG_BYTES = 256 * 1024 * 1024;
/** Milliseconds after which a snapshot is made although the log has fewer new bytes. */
const INTERVAL_MS = 60 * 60 * 1000;
/**
 * A snapshot after {@link INTERVAL_MS} is made only if the log has at least this many new bytes. Otherwise
 * health checks alone, which write to the log, would cause snapshots.
 */
const INTERVAL_BYTES = 1024 * 1024;
/** Milliseconds between two checks of the time. */
const CHECK_MS = 60_000;
/**
 * The number of snapshots that are kept. Only log entries before the oldest of them are trimmed. Therefore
 * the oldest one can still be used if the newer one is damaged, and a node of the cluster that starts from a
 * snapshot has time to read it. A node that was away for a short time needs no snapshot.
 */
const KEPT = 2;
/** Positions of the log that are trimmed at once. */
const TRIM_STEP = 500;
/** Milliseconds before a snapshot that has failed is tried again; doubled each time up to the longest. */
const FIRST_DELAY_MS = 5_000;
const LONGEST_DELAY_MS = 5 * 60_000;

/** The database at a position of the log. */
export interface DatabaseCopy {
  readonly seq: number;
  /** All entries, in the order of their keys. Can be read once. */
  readonly entries: AsyncIterable<KeyValueEntry>;
  /** Releases the copy. */
  close(): Promise<void>;
}

export interface ShardSnapshotOptions {
  readonly store: ShardSnapshots;
  /** The bytes of new log entries after which a snapshot is made. Default: 256 MiB. */
  readonly logBytes?: number | undefined;
  readonly logger: Logger;
}

export interface ShardSnapshotMakerDeps extends ShardSnapshotOptions {
  readonly shard: number;
  readonly log: ShardLog;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  /** Takes a copy of the database, at a moment without a write. Rejects while the database does not take writes. */
  copy(): Promise<DatabaseCopy>;
}

/**
 * Makes the snapshots of a shard, one at a time, while the shard is served, and trims its log. Both proceed
 * in small steps, each followed by a pause of its own length, so that appends to the log are hardly delayed.
 *
 * A crash or a stop can come at any moment. An incomplete snapshot is never used, and only entries that
 * complete snapshots include are trimmed. What should have been deleted before the crash is deleted by the
 * next owner of the shard, which begins with these deletions.
 */
export class ShardSnapshotMaker {
  readonly #deps: ShardSnapshotMakerDeps;
  #stop = new AbortController();
  /** Resolves when the work that was started last has ended. */
  #last: Promise<void> = Promise.resolve();
  /** Ends the wait for the next snapshot, to check whether it is due. */
  #wake: (() => void) | undefined;
  /** The bytes of the log's entries after the newest snapshot. */
  #newBytes = 0;
  /** The position of the log's first entry, and the bytes of all entries; undefined until they have been read. */
  #log: { readonly first: number; bytes: number } | undefined;
  #newest: ShardSnapshot | undefined;
  #made = 0;
  #failed = 0;

  constructor(deps: ShardSnapshotMakerDeps) {
    this.#deps = deps;
  }

  /** The metrics of a shard whose owner has applied the log up to a position. */
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

  /** Starts the work in the background. Called when the database takes writes. */
  start(): void {
    this.#stop.abort();
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    // Waits for the previous work: it has been stopped, but may still wait for an answer of the cluster's
    // database.
    this.#last = this.#last.then(() => this.#work(signal));
  }

  /** Gives up a snapshot that is being made, and makes no further one. */
  stop(): void {
    this.#stop.abort();
    this.#wake?.();
  }

  /** Called after each append to the log, with the bytes of its batch. */
  appended(bytes: number): void {
    const { logBytes = LOG_BYTES } = this.#deps;
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

  /**
   * Deletes older snapshots, and the part of the log that is not needed. Then measures the size of the log.
   */
  async #tidy(signal: AbortSignal): Promise<void> {
    const { shard, log, store } = this.#deps;
    await store.prune(shard, KEPT);
    const complete = await store.list(shard);
    const oldest = complete[KEPT - 1];
    let whole = await log.extent(shard, 1);
    let { first } = whole;
    const isTrimmed = oldest !== undefined && first < oldest.seq;
    while (oldest !== undefined && first < oldest.seq) {
      const since = this.#deps.clock.mono();
      first = Math.min(first + TRIM_STEP, oldest.seq);
      // The entry at the position of the snapshot stays, so that a node which starts from the snapshot can compare it.
      await log.trim(shard, first);
      await this.#pause(this.#deps.clock.mono() - since, signal);
      if (signal.aborted) throw givenUp();
    }
    this.#newest = complete[0];
    this.#newBytes = 0;
    const { bytes } = await log.extent(shard, (this.#newest?.seq ?? 0) + 1);
    // Entries that were appended meanwhile may count twice; then the next snapshot is made a little early.
    this.#newBytes += bytes;
    if (isTrimmed) whole = await log.extent(shard, 1);
    this.#log = { first: whole.first, bytes: whole.bytes };
    if (signal.aborted) throw givenUp();
  }

  #isDue(startedAt: number): boolean {
    const { logBytes = LOG_BYTES, clock } = this.#deps;
    if (this.#newBytes >= logBytes) return true;
    if (this.#newBytes < INTERVAL_BYTES) return false;
    // The clocks of this machine and of the cluster's database may differ a little, which does no harm to an interval of an hour.
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
    for await (const part of toParts(checked(entries, seq))) {
      if (signal.aborted) throw givenUp();
      yield part;
      // The caller continues this generator only when it has stored the part.
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

/** Passes the entries of a copy on, and checks that the copy has the position that it should have. */
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
