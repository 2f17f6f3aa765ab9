import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ServiceError } from "../model/errors.ts";
import { seal, unseal } from "./envelope.ts";
import { ALL, ENDED_KEY, FORMAT_KEY } from "./keys.ts";
import type { Kv, Op } from "./kv.ts";
import { MARK } from "./records.ts";

/** What this version writes. Goes up when an older one could not read it. */
const FORMAT = 4;
/** What it can go on with: in 3 all values were MessagePack without short forms, or text, which are read as ever. */
const READ: readonly unknown[] = [3, FORMAT];

/** Beside the database. */
export const MARKER = "heddle.json";

/** Says, beside the database, that there has been one: without it a lost one would look like a new beginning. */
export class Marker {
  readonly #path: string;
  /** The format it names; undefined where there is no marker. */
  readonly format: unknown;

  constructor(directory: string) {
    this.#path = join(directory, MARKER);
    this.format = existsSync(this.#path) ? this.#read() : undefined;
    if (this.format !== undefined) check(this.format, directory);
  }

  #read(): unknown {
    try {
      return (JSON.parse(readFileSync(this.#path, "utf8")) as { format?: unknown } | null)?.format ?? null;
    } catch {
      return null;
    }
  }

  write(): void {
    if (this.format === FORMAT) return;
    // One that was torn while it was written would be refused.
    const made = `${this.#path}.tmp`;
    writeFileSync(made, `{ "format": ${FORMAT} }\n`, { flush: true });
    renameSync(made, this.#path);
  }
}

/**
 * Refuses a store that another version has written; marks a new one, and one that an older version has written, which could not
 * read it from now on.
 * @throws ServiceError `storage.version`
 */
export async function checkFormat(kv: Kv, where: string, marked: boolean): Promise<void> {
  const bytes = kv.getSync(FORMAT_KEY);
  const ops: Op[] = [{ key: FORMAT_KEY, value: seal(FORMAT) }];
  if (bytes !== undefined) {
    const format = unseal(bytes, { tenant: "", thread: "" }, "the format");
    check(format, where);
    if (format === FORMAT) return;
  } else if (!marked) {
    // LevelDB may have lost the key, with others; then the marker beside it is right, and `verify` says what is missing.
    for await (const _ of kv.entries({ ...ALL, limit: 1 })) check(null, where);
    // Nothing in a new one has to be mended.
    ops.push({ key: ENDED_KEY, value: MARK });
  }
  await kv.batch(ops, { sync: true });
}

function check(format: unknown, where: string): void {
  if (READ.includes(format)) return;
  const found =
    typeof format === "number"
      ? `has format ${format}, and this version of Heddle reads format ${READ.join(" and ")}; use the version that wrote it`
      : "was not written by Heddle, or its format cannot be told";
  throw new ServiceError("storage.version", `The data in ${where} ${found}`);
}
