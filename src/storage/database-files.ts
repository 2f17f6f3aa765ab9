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
import type { Scheduler } from "../ports/scheduler.ts";
import { readManifest, type TableEntry } from "./leveldb/manifest.ts";
import { buildTable, type DataBlock, type TableBounds } from "./leveldb/salvage.ts";
import { checkTable, EVERYTHING, type TableDamage } from "./leveldb/table.ts";
import type { VerifiedTables } from "./verified-tables.ts";

/** What a manifest was like, which is only ever appended to. */
export interface ManifestMark {
  readonly name: string;
  readonly size: number;
  readonly crc: number;
}

export interface FoundDamage extends TableDamage {
  /** Name of its file. */
  readonly table: string;
}

/** A table as the manifest tells of it. */
export interface Table {
  readonly name: string;
  /** Undefined where the manifest does not say. */
  readonly bounds: TableBounds | undefined;
  readonly size: number | undefined;
}

/** How the event loop is shared while a table is read. */
export interface Pace {
  /** Milliseconds of work before a rest. */
  readonly work: number;
  readonly rest: () => Promise<void>;
  /** Nobody waits for it any more. */
  readonly isCancelled?: () => boolean;
}

/** The files of a LevelDB that is not open: its manifest, and the checksums of its tables. */
export class DatabaseFiles {
  readonly #database: string;
  readonly #deps: { readonly clock: Clock; readonly scheduler: Scheduler };

  constructor(database: string, deps: { readonly clock: Clock; readonly scheduler: Scheduler }) {
    this.#database = database;
    this.#deps = deps;
  }

  /** The manifest that is current, if there is one. */
  manifests(): readonly string[] {
    const name = textOf(join(this.#database, "CURRENT")).trim();
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
      readManifest(bytes);
      return undefined;
    } catch (error) {
      return `${name} cannot be read (${error instanceof Error ? error.message : String(error)})`;
    }
  }

  /** Names of all tables that there are. */
  names(): readonly string[] {
    return existsSync(this.#database)
      ? readdirSync(this.#database).filter((name) => /\.(ldb|sst)$/.test(name))
      : [];
  }

  /**
   * Damage in the tables that belong to the database; of all there are, where the manifest does not say. Those that `verified` knows are
   * not read. `read` is called with those that were.
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
    for (const table of this.tables(mark)) {
      names.add(table.name);
      const stats = statSync(join(this.#database, table.name), { throwIfNoEntry: false });
      if (stats !== undefined && stats.size === table.size && verified?.has(table.name, stats) === true)
        continue;
      const checked = stats && (await this.#check(table, pace));
      if (checked === undefined) {
        found.push({
          what: `table ${table.name} is missing`,
          range: table.bounds ?? EVERYTHING,
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

  /** Damage in a table of the database; undefined where it does not belong to it any more, or the reading was cancelled. */
  async check(
    table: Table,
    pace: Pace,
  ): Promise<{ readonly found: readonly FoundDamage[]; readonly stats: Stats } | undefined> {
    const checked = await this.#check(table, pace);
    // LevelDB may have deleted it meanwhile.
    if (checked === undefined || checked.found.length === 0) return checked;
    return this.tables().some(({ name }) => name === table.name) ? checked : undefined;
  }

  async #check({ name, bounds, size }: Table, { work, rest, isCancelled }: Pace) {
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

  /** Those that belong to the database; all that there are, where the manifest does not say. */
  tables(mark?: ManifestMark): readonly Table[] {
    if (!existsSync(this.#database)) return [];
    const files = readdirSync(this.#database);
    const [manifest] = this.manifests();
    if (manifest !== undefined && this.flaw(manifest, mark) === undefined) {
      return readManifest(readFileSync(join(this.#database, manifest))).map((table) => ({
        name: fileOf(table, files),
        bounds: { from: table.smallest, to: table.largest, first: table.first },
        size: table.size,
      }));
    }
    return this.names().map((name) => ({ name, bounds: undefined, size: undefined }));
  }

  /** Makes a block unreadable, with a copy of its table put aside. */
  disable(table: string, kindAt: number): void {
    const path = this.#putAside(table);
    const file = openSync(path, "r+");
    try {
      // No kind of block that there is.
      if (kindAt < statSync(path).size) writeSync(file, Buffer.from([0xff]), 0, 1, kindAt);
    } finally {
      closeSync(file);
    }
  }

  /** Makes a table of what is left of it anew, with a copy put aside: LevelDB can read none of one without an index. */
  rebuild(table: string, blocks: readonly DataBlock[]): void {
    const path = this.#putAside(table);
    const made = `${path}.tmp`;
    writeFileSync(made, buildTable(readFileSync(path), blocks), { flush: true });
    renameSync(made, path);
  }

  /** Keeps a copy of a table; returns the path of the table itself. */
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

/** Empty where there is no such file. */
export function textOf(path: string): string {
  try {
    return statSync(path).isFile() ? readFileSync(path, "latin1") : "";
  } catch {
    return "";
  }
}
