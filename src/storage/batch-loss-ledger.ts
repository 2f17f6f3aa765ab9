import {
  closeSync,
  fdatasyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  write,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import type { Logger } from "../ports/logger.ts";
import type { Scheduler } from "../ports/scheduler.ts";

/** A new ledger file is started after batches with this many bytes in total. */
const SEGMENT_BYTES = 40 * 1024 * 1024;
/**
 * The largest number of ledger files. All but the current one, which may have just begun, cover 80 MiB. That must be more than the batches
 * that LevelDB has only in its logs: at most two logs of 32 MiB each.
 */
const MAX_SEGMENTS = 3;

/** If the last file of an earlier process has more bytes than this, a new file is started. */
const LARGE_SEGMENT_BYTES = 4 * 1024 * 1024;

/**
 * Milliseconds for which lines are collected before they are written. Each write wakes a thread of Node's pool, which blocks the event loop
 * for 100 µs and more. With 10 ms, the writes took 5 % of the CPU of a run with one client.
 */
const COLLECT_MS = 40;

const NAME = /^(\d{16})\.log$/;

/** A batch as recorded in the ledger. */
export interface LedgerEntry {
  readonly number: number;
  readonly synced: boolean;
  /** What the batch changed: the key prefixes of threads, and keys that belong to no thread. */
  readonly touches: readonly string[];
}

export interface LedgerSummary {
  /** The number of the first batch that the ledger covers; undefined if the ledger has no file. */
  readonly first: number | undefined;
  readonly last: number;
  /** The boot id of the machine when the last process started; empty if it is unknown. */
  readonly boot: string;
  /** True if there is no readable line. Each start of a server writes a line, so the directory was never used, or has lost its ledger. */
  readonly isEmpty: boolean;
}

/**
 * The ledger: a record, outside the database, of the written batches and of what each of them changed. It shows whether the database has
 * lost a batch, even the last one, and which data that batch had changed.
 *
 * Each batch is one line with its own checksum. Lines may be in any order. A line is written some milliseconds after its batch, which does
 * not wait for it: waiting would double the time of a synced batch. A process that is killed may leave its last lines unwritten. This
 * matters only if the end of the database's log is lost too.
 */
export class BatchLossLedger {
  readonly #directory: string;
  readonly #logger: Logger;
  readonly #scheduler: Scheduler;
  #fd: number | undefined;
  #bytes = 0;
  /** The first batch number of each file, oldest file first. */
  #segments: number[];
  /** Lines that are not written yet. */
  #lines = "";
  #cancel: (() => void) | undefined;
  #isWriting = false;
  #idle: (() => void) | undefined;
  #hasFailed = false;

  constructor(
    directory: string,
    { logger, scheduler }: { readonly logger: Logger; readonly scheduler: Scheduler },
  ) {
    this.#directory = directory;
    this.#logger = logger;
    this.#scheduler = scheduler;
    mkdirSync(directory, { recursive: true });
    this.#segments = readdirSync(directory)
      .flatMap((name) => NAME.exec(name)?.[1] ?? [])
      .map(Number)
      .toSorted((a, b) => a - b);
  }

  /** The number of the first batch that the ledger still covers. */
  get first(): number | undefined {
    return this.#segments[0];
  }

  /** Reads the ledger. Calls `entry` for each batch, and `lost` for each batch number that was reported as lost. Skips unreadable lines. */
  read(entry: (entry: LedgerEntry) => void, lost: (number: number) => void): LedgerSummary {
    let [last, boot] = [0, ""];
    let isEmpty = true;
    for (const segment of this.#segments) {
      for (const line of readFileSync(this.#path(segment), "latin1").split("\n")) {
        const space = line.indexOf(" ");
        const text = line.slice(space + 1);
        if (space !== 8 || crc32(text).toString(16).padStart(8, "0") !== line.slice(0, 8)) continue;
        isEmpty = false;
        const [kind, digits = "", ...touches] = text.split(" ");
        const number = Number(digits);
        if (kind === "open") boot = touches[0] ?? "";
        else if (kind === "lost") lost(number);
        else entry({ number, synced: kind === "synced", touches });
        if (kind !== "open") last = Math.max(last, number);
      }
    }
    return { first: this.first, last, boot, isEmpty };
  }

  /**
   * Opens the ledger for writing. `next`: the number of the next batch. `lost`: the numbers of missing batches that have been reported.
   * They are recorded, so that a later start does not report them again.
   */
  open(next: number, boot: string, lost: readonly number[]): void {
    const latest = this.#segments.at(-1);
    // A new file is started if there is none, or if the last file is large. The oldest files can then be dropped: when LevelDB opened the
    // database, it wrote all earlier batches to tables, and the ledger does not have to cover these batches.
    if (latest === undefined || (latest < next && statSync(this.#path(latest)).size > LARGE_SEGMENT_BYTES)) {
      this.#segments.push(next);
      while (this.#segments.length > MAX_SEGMENTS) this.#drop();
    }
    const fd = openSync(this.#path(this.#segments.at(-1) as number), "a");
    this.#fd = fd;
    const lines = [...lost.map((number) => lineOf("lost", number, [])), lineOf("open", next, [boot])];
    // Begins with a line break, because the last line may be incomplete after a power cut.
    writeSync(fd, `\n${lines.join("")}`);
    fdatasyncSync(fd);
  }

  /** Records a batch that was stored. `bytes`: its size. Returns true when {@link first} has changed. */
  add({ number, synced, touches }: LedgerEntry, bytes: number): boolean {
    if (this.#fd === undefined) return false;
    this.#lines += lineOf(synced ? "synced" : "streamed", number, touches);
    this.#cancel ??= this.#scheduler.after(COLLECT_MS, this.#flush);
    this.#bytes += bytes;
    if (this.#bytes < SEGMENT_BYTES || this.#isWriting) return false;
    this.#bytes = 0;
    return this.#begin(number + 1);
  }

  readonly #flush = (): void => {
    this.#cancel = undefined;
    const fd = this.#fd;
    if (fd === undefined || this.#isWriting) return;
    const lines = this.#takeLines();
    this.#isWriting = true;
    write(fd, lines, 0, lines.length, null, this.#written);
  };

  #takeLines(): Buffer {
    const lines = Buffer.from(this.#lines, "latin1");
    this.#lines = "";
    return lines;
  }

  async close(): Promise<void> {
    const fd = this.#fd;
    if (fd === undefined) return;
    this.#fd = undefined;
    this.#cancel?.();
    if (this.#isWriting) await new Promise<void>((resolve) => (this.#idle = resolve));
    try {
      writeSync(fd, this.#takeLines());
      fdatasyncSync(fd);
    } finally {
      closeSync(fd);
    }
  }

  /**
   * Starts a new file, for the batches from `next` on. If it cannot be opened, the error is only logged and the old file is continued,
   * because the batch is already stored. Returns true if the oldest file was deleted.
   */
  #begin(next: number): boolean {
    const old = this.#fd as number;
    try {
      this.#fd = openSync(this.#path(next), "a");
    } catch (error) {
      this.#warn(error as Error);
      return false;
    }
    try {
      writeSync(old, this.#takeLines());
    } catch (error) {
      this.#warn(error as Error);
    }
    closeSync(old);
    this.#segments.push(next);
    if (this.#segments.length <= MAX_SEGMENTS) return false;
    this.#drop();
    return true;
  }

  #drop(): void {
    rmSync(this.#path(this.#segments.shift() as number), { force: true });
  }

  readonly #written = (error: Error | null): void => {
    this.#isWriting = false;
    if (error !== null) this.#warn(error);
    this.#idle?.();
    if (this.#lines !== "" && this.#fd !== undefined)
      this.#cancel ??= this.#scheduler.after(COLLECT_MS, this.#flush);
  };

  #warn({ message }: Error): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.#logger.warn(
      "the ledger of batches cannot be written; damage to the end of the log may not be noticed",
      { error: message },
    );
  }

  #path(first: number): string {
    return join(this.#directory, `${String(first).padStart(16, "0")}.log`);
  }
}

function lineOf(
  kind: "synced" | "streamed" | "lost" | "open",
  number: number,
  rest: readonly string[],
): string {
  const text = rest.length === 0 ? `${kind} ${number}` : `${kind} ${number} ${rest.join(" ")}`;
  return `${crc32(text).toString(16).padStart(8, "0")} ${text}\n`;
}
