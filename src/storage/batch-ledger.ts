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

/** Bytes of batches after which a new file is begun. */
const SEGMENT = 40 * 1024 * 1024;
/**
 * Files kept. LevelDB holds at most two logs of 32 MiB each that are not in tables yet, so the batches of the last two full files
 * and of the current one are more than a log can lose.
 */
const SEGMENTS = 3;

/** Bytes of a file that an earlier process has left, from which on another is begun. */
const LARGE = 4 * 1024 * 1024;

/** Milliseconds for which lines are gathered. */
const PAUSE = 10;

const NAME = /^(\d{16})\.log$/;

/** A batch as the ledger has it. */
export interface LedgerEntry {
  readonly number: number;
  readonly synced: boolean;
  /** What it changed: prefixes of threads, and keys of no thread. */
  readonly touches: readonly string[];
}

export interface LedgerSummary {
  /** Batches from here on are in it; undefined where there is no ledger. */
  readonly first: number | undefined;
  readonly last: number;
  /** Boot of the machine in which the last process wrote to it. */
  readonly boot: string;
}

/**
 * Says beside the database which batches it has taken and what they changed, so that one that is missing is noticed, at the end too,
 * and can be told by what it held. A line a batch, written a few milliseconds later, which nobody waits for: with each batch it would
 * double the time of a synced one. What a kill leaves out can only be lost unnoticed together with a cut in the log at the same moment.
 * Lines may stand in any order, each with a checksum of its own.
 */
export class BatchLedger {
  readonly #directory: string;
  readonly #logger: Logger;
  readonly #scheduler: Scheduler;
  #fd: number | undefined;
  #bytes = 0;
  /** First numbers of the files, oldest first. */
  #segments: number[];
  /** Lines that have not been written yet. */
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

  /** The first batch that it still tells of. */
  get first(): number | undefined {
    return this.#segments[0];
  }

  /** Calls `entry` for each batch, and `lost` for each number that was reported as lost. Unreadable lines are passed over. */
  read(entry: (entry: LedgerEntry) => void, lost: (number: number) => void): LedgerSummary {
    let [last, boot] = [0, ""];
    for (const segment of this.#segments) {
      for (const line of readFileSync(this.#path(segment), "latin1").split("\n")) {
        const space = line.indexOf(" ");
        const text = line.slice(space + 1);
        if (space !== 8 || crc32(text).toString(16).padStart(8, "0") !== line.slice(0, 8)) continue;
        const [kind, digits = "", ...touches] = text.split(" ");
        const number = Number(digits);
        if (kind === "open") boot = touches[0] ?? "";
        else if (kind === "lost") lost(number);
        else entry({ number, synced: kind === "synced", touches });
        if (kind !== "open") last = Math.max(last, number);
      }
    }
    return { first: this.first, last, boot };
  }

  /** To be called before the first batch, with its number. `lost`: batches that are missing and have been reported. */
  open(next: number, boot: string, lost: readonly number[]): void {
    const latest = this.#segments.at(-1);
    // All older batches are in tables by now.
    if (latest === undefined || (latest < next && statSync(this.#path(latest)).size > LARGE)) {
      this.#segments.push(next);
      while (this.#segments.length > SEGMENTS) this.#drop();
    }
    const fd = openSync(this.#path(this.#segments.at(-1) as number), "a");
    this.#fd = fd;
    const lines = [...lost.map((number) => lineOf("lost", number, [])), lineOf("open", next, [boot])];
    // What a power cut has torn ends here.
    writeSync(fd, `\n${lines.join("")}`);
    fdatasyncSync(fd);
  }

  /** A batch of `bytes` is stored. True: batches before {@link first} are not told of any more. */
  add({ number, synced, touches }: LedgerEntry, bytes: number): boolean {
    if (this.#fd === undefined) return false;
    this.#lines += lineOf(synced ? "synced" : "streamed", number, touches);
    this.#cancel ??= this.#scheduler.after(PAUSE, this.#flush);
    this.#bytes += bytes;
    if (this.#bytes < SEGMENT || this.#isWriting) return false;
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

  #begin(next: number): boolean {
    const old = this.#fd as number;
    writeSync(old, this.#takeLines());
    closeSync(old);
    this.#fd = openSync(this.#path(next), "a");
    this.#segments.push(next);
    if (this.#segments.length <= SEGMENTS) return false;
    this.#drop();
    return true;
  }

  #drop(): void {
    rmSync(this.#path(this.#segments.shift() as number), { force: true });
  }

  readonly #written = (error: Error | null): void => {
    this.#isWriting = false;
    if (error !== null && !this.#hasFailed) {
      this.#hasFailed = true;
      this.#logger.warn(
        "the ledger of batches cannot be written; damage to the end of the log may not be noticed",
        {
          error: error.message,
        },
      );
    }
    this.#idle?.();
    if (this.#lines !== "" && this.#fd !== undefined)
      this.#cancel ??= this.#scheduler.after(PAUSE, this.#flush);
  };

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
