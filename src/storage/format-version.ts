import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { ServiceError } from "../model/errors.ts";
import { isObject } from "../model/json.ts";
import { encodeWithChecksum, decodeWithChecksum } from "./checksum-envelope.ts";
import { ALL_KEYS, RUN_ENDS_COMPLETE_KEY, RUN_INDEX_COMPLETE_KEY, FORMAT_KEY } from "./keys.ts";
import type { KeyValueStore, WriteOperation } from "../ports/key-value-store.ts";
import { PRESENT_MARK, RUN_INDEX_MARK } from "./stored-records.ts";

/** The storage format that this version of Heddle writes. The number is raised when older versions could not read the new format. */
const FORMAT = 8;
/**
 * The storage formats that this version of Heddle reads. How the older formats differ: in 3, values are text or plain MessagePack; in 4,
 * all step results of a task are in one row; in 5, the row of a checkpoint contains all its updates; in 6, long texts are MessagePack
 * strings; in 7, no run has facts `tool`.
 */
const READ: readonly unknown[] = [3, 4, 5, 6, 7, FORMAT];

/** The name of the file of {@link FormatMarker}. */
export const MARKER_FILE = "heddle.json";

/**
 * A file outside the database that records the format of the database. It also records that the database exists: without it, a lost
 * database would look like a new one.
 */
export class FormatMarker {
  readonly #path: string;
  /** The format that the marker names; undefined when there is no marker, or it is damaged. */
  readonly format: number | undefined;
  readonly exists: boolean;

  /**
   * @throws ServiceError `storage.version` when the marker names an unsupported format; `config.invalid` when the file is a configuration
   * file
   */
  constructor(directory: string) {
    this.#path = join(directory, MARKER_FILE);
    this.exists = existsSync(this.#path);
    this.format = this.exists ? this.#read() : undefined;
    if (this.format !== undefined) check(this.format, directory);
  }

  get isDamaged(): boolean {
    return this.exists && this.format === undefined;
  }

  /** @throws ServiceError `storage.version` when the marker is damaged */
  checkReadable(): void {
    if (!this.isDamaged) return;
    const damaged = `The file ${this.#path} is damaged; run "heddle repair" to write it anew`;
    throw new ServiceError("storage.version", damaged);
  }

  #read(): number | undefined {
    const content = readJson(this.#path);
    if (!isObject(content)) return undefined;
    const { format } = content;
    if (format === undefined && Object.keys(content).length > 0) throw configurationFileError(this.#path);
    return typeof format === "number" ? format : undefined;
  }

  write(): void {
    if (this.format === FORMAT) return;
    // Written under another name first and then renamed, so that a crash leaves no incomplete marker.
    const made = `${this.#path}.tmp`;
    writeFileSync(made, `{ "format": ${FORMAT} }\n`, { flush: true });
    renameSync(made, this.#path);
  }
}

/** The content of a JSON file; undefined when it cannot be read. */
function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
}

/**
 * The error for a file with the marker's name that is the configuration file of an application. If the file counted as a damaged marker, a
 * repair would overwrite it.
 */
function configurationFileError(path: string): ServiceError {
  return new ServiceError(
    "config.invalid",
    `The data directory ${dirname(path)} holds a configuration file, ${MARKER_FILE}; choose a directory of its own, such as ${join(dirname(path), ".heddle")}`,
  );
}

/**
 * Refuses a store whose format is not supported. Writes the current format into a new store, and into a store of an older format, which
 * older versions of Heddle then cannot read any more. `marked`: true if a marker file names the format.
 * @throws ServiceError `storage.version`
 */
export async function checkFormat(kv: KeyValueStore, where: string, marked: boolean): Promise<void> {
  const bytes = await kv.get(FORMAT_KEY);
  const ops: WriteOperation[] = [{ key: FORMAT_KEY, value: encodeWithChecksum(FORMAT) }];
  if (bytes !== undefined) {
    const format = decodeWithChecksum(bytes, { tenant: "", thread: "" }, "the format");
    check(format, where);
    if (format === FORMAT) return;
  } else if (!marked) {
    // Without a marker, only an empty store may lack the key of the format. With a marker, LevelDB may have lost the key together with
    // others. The store is opened anyway, and `verify` reports the missing data.
    for await (const _ of kv.entries({ ...ALL_KEYS, limit: 1 })) check(null, where);
    // A new store has no runs, so every run has its end and its index entries. These two marks record this, so that later starts do not
    // search for runs without them.
    ops.push({ key: RUN_ENDS_COMPLETE_KEY, value: PRESENT_MARK });
    ops.push({ key: RUN_INDEX_COMPLETE_KEY, value: RUN_INDEX_MARK });
  }
  await kv.batch(ops, { sync: true });
}

/**
 * Checks that the database itself records a supported format.
 * @throws ServiceError `storage.version`
 */
export async function checkStoredFormat(kv: KeyValueStore, where: string): Promise<void> {
  const bytes = await kv.get(FORMAT_KEY);
  check(
    bytes === undefined ? null : decodeWithChecksum(bytes, { tenant: "", thread: "" }, "the format"),
    where,
  );
}

function check(format: unknown, where: string): void {
  if (READ.includes(format)) return;
  const found =
    typeof format === "number"
      ? `has format ${format}, and this version of Heddle reads formats ${READ.join(", ")}; use the version that wrote it`
      : "was not written by Heddle, or its format cannot be told";
  throw new ServiceError("storage.version", `The data in ${where} ${found}`);
}
