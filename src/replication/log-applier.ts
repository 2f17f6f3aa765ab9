import { packWriteBatch, unpackWriteBatch } from "../codec/value-encoding.ts";
import { ServiceError } from "../model/errors.ts";
import type { KeyValueStore, WriteOperation } from "../ports/key-value-store.ts";
import type { ShardLog } from "../ports/shard-log.ts";
import type { OnProgress } from "../ports/work-progress.ts";

/**
 * The key under which a database stores the position and the epoch of the last log entry that it has applied. The key sorts after all other
 * keys, and after the end (`~`) of every other range that is scanned. So only a scan of the whole database returns it.
 */
export const APPLIED_KEY = "~applied";
/** The bytes of log entries that are read and applied at once. */
const READ_BYTES = 4 * 1024 * 1024;

/**
 * Applies the log of a shard to a database. Each batch is written together with its position, without sync: if a power cut removes batches
 * from the database, they are applied again from the log.
 */
export class LogApplier {
  readonly #kv: KeyValueStore;
  readonly #log: ShardLog;
  readonly #shard: number;
  #applied = 0;
  #epoch = 0;
  #hasFailed = false;

  constructor(kv: KeyValueStore, log: ShardLog, shard: number) {
    this.#kv = kv;
    this.#log = log;
    this.#shard = shard;
  }

  /** The position of the last log entry that the database has applied; 0 if there is none. */
  get applied(): number {
    return this.#applied;
  }

  /** The epoch of the last log entry that the database has applied; 0 if there is none. */
  get epoch(): number {
    return this.#epoch;
  }

  /** True if a write to the database has failed since {@link readPosition}. The database then has to be opened again. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  /** Reads the position and the epoch from the database, which MUST be open. */
  async readPosition(): Promise<void> {
    this.#hasFailed = false;
    const stored = await this.#kv.get(APPLIED_KEY);
    [this.#applied, this.#epoch] = stored === undefined ? [0, 0] : decodePosition(stored);
  }

  /**
   * Checks that the log has not lost the last entry that this database has applied. A trimmed entry counts as not lost. The log may have lost
   * acknowledged entries after a failover to a standby that was behind, or after a backup was restored.
   * @throws ServiceError `journal.damaged` if the entry is lost, or the log has another entry at its position
   */
  async checkPosition(): Promise<void> {
    if (this.#applied === 0) return;
    const last = await this.#log.last(this.#shard);
    const found = last < this.#applied ? undefined : await this.#epochAt(this.#applied);
    if (found === this.#epoch) return;
    throw new ServiceError(
      "journal.damaged",
      `The log of shard ${this.#shard} has lost entries: it ends at ${last}, and the entry at ${this.#applied} is not the one ` +
        "that this node has applied. Where a backup of the database was restored, stop all nodes and delete their data directories",
    );
  }

  async #epochAt(seq: number): Promise<number | undefined> {
    try {
      const [entry] = await this.#log.read(this.#shard, seq, 1);
      return entry?.epoch;
    } catch (error) {
      // The entry was trimmed, not lost. Only entries that a complete snapshot includes are trimmed.
      if (error instanceof ServiceError && error.code === "log.trimmed") return this.#epoch;
      throw error;
    }
  }

  /**
   * Applies all log entries after the current position.
   * @throws ServiceError `journal.damaged` if an entry is damaged or missing; errors of the log and the database
   */
  catchUp(onProgress?: OnProgress): Promise<void> {
    return this.#applyUntil(({ entries }) => entries === 0, onProgress);
  }

  /**
   * Applies log entries until few are left. Unlike {@link catchUp}, it also ends while the shard's owner goes on appending.
   * @throws the errors of {@link catchUp}
   */
  follow(onProgress?: OnProgress): Promise<void> {
    return this.#applyUntil(({ bytes }) => bytes < READ_BYTES / 2, onProgress);
  }

  async #applyUntil(
    isEnd: (applied: { readonly entries: number; readonly bytes: number }) => boolean,
    onProgress: OnProgress | undefined,
  ): Promise<void> {
    for (let done = 0; ;) {
      const applied = await this.#applyNext();
      done += applied.entries;
      if (applied.entries > 0) onProgress?.({ work: "applying the log", done, unit: "entries" });
      if (isEnd(applied)) return;
    }
  }

  async #applyNext(): Promise<{ readonly entries: number; readonly bytes: number }> {
    const entries = await this.#log.read(this.#shard, this.#applied + 1, READ_BYTES);
    const ops: WriteOperation[] = [];
    let bytes = 0;
    for (const [i, { seq, batch }] of entries.entries()) {
      if (seq !== this.#applied + 1 + i) throw damagedEntry(this.#shard, seq);
      bytes += batch.length;
      try {
        for (const op of unpackWriteBatch(batch)) ops.push(op);
      } catch (cause) {
        throw damagedEntry(this.#shard, seq, cause);
      }
    }
    const last = entries.at(-1);
    if (last !== undefined) await this.apply(last.seq, last.epoch, ops);
    return { entries: entries.length, bytes };
  }

  /** Writes the changes of the log entries up to position `seq` to the database, together with this position. */
  async apply(seq: number, epoch: number, ops: readonly WriteOperation[]): Promise<void> {
    const position = Buffer.allocUnsafe(12);
    position.writeUIntBE(seq, 0, 6);
    position.writeUIntBE(epoch, 6, 6);
    try {
      await this.#kv.batch([...ops, { key: APPLIED_KEY, value: position }], { sync: false });
    } catch (error) {
      this.#hasFailed = true;
      throw error;
    }
    this.#applied = seq;
    this.#epoch = epoch;
  }
}

/** Decodes the position and the epoch that are stored under {@link APPLIED_KEY}. */
export const decodePosition = (stored: Buffer): readonly [seq: number, epoch: number] => [
  stored.readUIntBE(0, 6),
  stored.readUIntBE(6, 6),
];

/**
 * The first entry of a new owner of the shard. It changes nothing, but takes a position in the log, which a late append of an earlier owner
 * then cannot take.
 */
export const TAKEOVER_ENTRY: Uint8Array = packWriteBatch([]);

const damagedEntry = (shard: number, seq: number, cause?: unknown): ServiceError =>
  new ServiceError("journal.damaged", `The log of shard ${shard} holds a damaged entry at position ${seq}`, {
    cause,
  });
