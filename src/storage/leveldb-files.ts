import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  type Stats,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import type { Clock } from "../ports/clock.ts";
import type { OnProgress } from "../ports/work-progress.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import { parseManifest, type TableEntry } from "./leveldb/manifest.ts";
import { buildTableFromBlocks, type DataBlock, type TableBounds } from "./leveldb/salvage.ts";
import { checkTable, WHOLE_KEY_RANGE, type TableDamage } from "./leveldb/table-check.ts";
import type { VerifiedTables } from "./verified-tables.ts";

/** The state of a manifest at one time. A manifest is append-only, so later its first `size` bytes must still have this checksum. */
export interface ManifestMark {
  readonly name: string;
  readonly size: number;
  readonly crc: number;
}

export interface FoundDamage extends TableDamage {
  /** The name of the table's file. */
  readonly table: string;
}

/** A table as listed in the manifest. */
export interface ManifestTable {
  readonly name: string;
  /** Undefined, like the size, when the manifest cannot be read. */
  readonly bounds: TableBounds | undefined;
  readonly size: number | undefined;
}

/** Limits how much of the event loop the check of a table may take. */
export interface ReadPace {
  /** The most milliseconds of work between two pauses. */
  readonly work: number;
  readonly rest: () => Promise<void>;
  /** Returns true when the result is no longer needed. */
  readonly isCancelled?: () => boolean;
}

interface Deps {
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly onProgress?: OnProgress;
}

/** Reads the files of a LevelDB database without LevelDB: its manifest, and its tables with their checksums. */
export class LevelDbFiles {
  readonly #database: string;
  readonly #deps: Deps;

  constructor(database: string, deps: Deps) {
    this.#database = database;
    this.#deps = deps;
  }

  /** The name of the current manifest, as a list; an empty list if there is no manifest. */
  manifests(): readonly string[] {
    const name = readTextOrEmpty(join(this.#database, "CURRENT")).trim();
    return /^MANIFEST-\d+$/.test(name) && existsSync(join(this.#database, name)) ? [name] : [];
  }

  flaw(name: string, mark: ManifestMark | undefined): string | undefined {
    const bytes = readFileSync(join(this.#database, name));
    const isOlder = mark !== undefined && Number(name.slice(9)) < Number(mark.name.slice(9));
    if (isOlder) return `CURRENT names ${name}, which is older than ${mark.name}`;
    if (
      mark?.name === name &&
      (bytes.length < mark.size || crc32(bytes.subarray(0, mark.size)) !== mark.crc)
    ) {
      return `${name} is not what was written, or an older copy`;
    }
    try {
      parseManifest(bytes);
      return undefined;
    } catch (error) {
      return `${name} cannot be read (${error instanceof Error ? error.message : String(error)})`;
    }
  }

  /** The names of all table files. */
  names(): readonly string[] {
    return existsSync(this.#database)
      ? readdirSync(this.#database).filter((name) => /\.(ldb|sst)$/.test(name))
      : [];
  }

  /**
   * Finds the damage in the tables of the database, or in all table files if the manifest cannot be read.
   * Skips tables that are in `verified` and have not changed since. Calls `read` for each table that was
   * read.
   */
  async damage(
    mark: ManifestMark | undefined,
    verified?: VerifiedTables,
    read?: (name: string) => void,
  ): Promise<readonly FoundDamage[]> {
    const found: FoundDamage[] = [];
    const names = new Set<string>();
    const pace = {
      work: 10,
      rest: () => new Promise<void>((resolve) => this.#deps.scheduler.soon(resolve)),
    };
    const unread: { readonly table: ManifestTable; readonly stats: Stats | undefined }[] = [];
    for (const table of this.tables(mark)) {
      names.add(table.name);
      const stats = statSync(join(this.#database, table.name), { throwIfNoEntry: false });
      if (stats !== undefined && stats.size === table.size && verified?.has(table.name, stats) === true)
        continue;
      unread.push({ table, stats });
    }
    const total = unread.reduce((sum, { stats }) => sum + (stats?.size ?? 0), 0);
    let done = 0;
    for (const { table, stats } of unread) {
      this.#deps.onProgress?.({ work: "reading the tables", done, total, unit: "bytes" });
      const checked = stats && (await this.#check(table, pace));
      done += stats?.size ?? 0;
      if (checked === undefined) {
        found.push({
          what: `table ${table.name} is missing`,
          range: table.bounds ?? WHOLE_KEY_RANGE,
          table: table.name,
        });
        continue;
      }
      read?.(table.name);
      found.push(...checked.found);
      if (checked.found.length === 0) verified?.add(table.name, checked.stats);
    }
    verified?.store(names);
    return found;
  }

  /** Finds the damage in one table; undefined if the table is no longer part of the database, or the read was cancelled. */
  async check(
    table: ManifestTable,
    pace: ReadPace,
  ): Promise<{ readonly found: readonly FoundDamage[]; readonly stats: Stats } | undefined> {
    const checked = await this.#check(table, pace);
    // If LevelDB has deleted the table during the check, damage does not matter: no data is read from the table any more.
    if (checked === undefined || checked.found.length === 0) return checked;
    return this.tables().some(({ name }) => name === table.name) ? checked : undefined;
  }

  async #check({ name, bounds, size }: ManifestTable, { work, rest, isCancelled }: ReadPace) {
    const path = join(this.#database, name);
    const stats = statSync(path, { throwIfNoEntry: false });
    const bytes = stats && (await readFile(path).catch(noneWhereMissing));
    if (stats === undefined || bytes === undefined) return undefined;
    const found: FoundDamage[] = [];
    let since = this.#deps.clock.mono();
    for (const damage of checkTable(bytes, bounds, size)) {
      if (damage !== undefined) found.push({ ...damage, what: `table ${name}: ${damage.what}`, table: name });
      if (this.#deps.clock.mono() - since < work) continue;
      await rest();
      if (isCancelled?.() === true) return undefined;
      since = this.#deps.clock.mono();
    }
    return { found, stats };
  }

  /** The tables of the database; all table files if the manifest cannot be read. */
  tables(mark?: ManifestMark): readonly ManifestTable[] {
    if (!existsSync(this.#database)) return [];
    const files = readdirSync(this.#database);
    const [manifest] = this.manifests();
    if (manifest !== undefined && this.flaw(manifest, mark) === undefined) {
      return parseManifest(readFileSync(join(this.#database, manifest))).map((table) => ({
        name: fileOf(table, files),
        bounds: { from: table.smallest, to: table.largest, first: table.first },
        size: table.size,
      }));
    }
    return this.names().map((name) => ({ name, bounds: undefined, size: undefined }));
  }

  /** Makes a damaged block unreadable for LevelDB. The table is first copied to the directory of lost files. */
  disable(table: string, kindAt: number): void {
    const path = this.#putAside(table);
    const file = openSync(path, "r+");
    try {
      // Overwrites the type of the block with a type that does not exist.
      if (kindAt < statSync(path).size) writeSync(file, Buffer.from([0xff]), 0, 1, kindAt);
    } finally {
      closeSync(file);
    }
  }

  /**
   * Rebuilds a table whose index is damaged from the blocks that can still be read. LevelDB could read nothing of a table without an index.
   * The table is first copied to the directory of lost files.
   */
  rebuild(table: string, blocks: readonly DataBlock[]): void {
    const path = this.#putAside(table);
    const made = `${path}.tmp`;
    writeFileSync(made, buildTableFromBlocks(readFileSync(path), blocks), { flush: true });
    renameSync(made, path);
  }

  /** Copies a table to the directory of lost files. Returns the path of the table itself. */
  #putAside(table: string): string {
    const lost = join(this.#database, "lost");
    mkdirSync(lost, { recursive: true });
    const path = join(this.#database, table);
    const copy = join(lost, `${table}.damaged`);
    if (!existsSync(copy)) copyFileSync(path, copy);
    return path;
  }
}

function noneWhereMissing(cause: NodeJS.ErrnoException): undefined {
  if (cause.code !== "ENOENT") throw cause;
}

function fileOf({ number }: TableEntry, files: readonly string[]): string {
  const digits = String(number).padStart(6, "0");
  return files.includes(`${digits}.sst`) ? `${digits}.sst` : `${digits}.ldb`;
}

/** The text of a file; empty if the file does not exist or cannot be read. */
export function readTextOrEmpty(path: string): string {
  try {
    return statSync(path).isFile() ? readFileSync(path, "latin1") : "";
  } catch {
    return "";
  }
}
