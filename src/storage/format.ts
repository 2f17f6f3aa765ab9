import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ServiceError } from "../model/errors.ts";
import { seal, unseal } from "./envelope.ts";
import { ALL, FORMAT_KEY } from "./keys.ts";
import type { Kv } from "./kv.ts";

/** What this version writes. Goes up when an older one could not read it. */
const FORMAT = 3;

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
    if (this.format === undefined) writeFileSync(this.#path, `{ "format": ${FORMAT} }\n`, { flush: true });
  }
}

/**
 * Refuses a store that another version has written; marks a new one.
 * @throws ServiceError `storage.version`
 */
export async function checkFormat(kv: Kv, where: string, marked: boolean): Promise<void> {
  const bytes = kv.getSync(FORMAT_KEY);
  if (bytes !== undefined) return check(unseal(bytes, { tenant: "", thread: "" }, "the format"), where);
  // LevelDB may have lost the key, with others; then the marker beside it is right, and `verify` says what is missing.
  if (!marked) {
    for await (const _ of kv.entries({ ...ALL, limit: 1 })) check(null, where);
  }
  await kv.batch([{ key: FORMAT_KEY, value: seal(FORMAT) }], { sync: true });
}

function check(format: unknown, where: string): void {
  if (format === FORMAT) return;
  const found =
    typeof format === "number"
      ? `has format ${format}, and this version of Heddle reads format ${FORMAT}; use the version that wrote it`
      : "was not written by Heddle, or its format cannot be told";
  throw new ServiceError("storage.version", `The data in ${where} ${found}`);
}
