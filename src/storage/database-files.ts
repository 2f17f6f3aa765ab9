import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  writeSync,
} from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import type { Clock } from "../ports/clock.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import { readManifest, type TableEntry } from "./leveldb/manifest.ts";
import { checkTable, EVERYTHING, type KeyRange, type TableDamage } from "./leveldb/table.ts";

/** What a manifest was like, which is only ever appended to. */
export interface ManifestMark {
  readonly name: string;
  readonly size: number;
  readonly crc: number;
}

interface FoundDamage extends TableDamage {
  /** Name of its file. */
  readonly table: string;
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

  /** Damage in the tables that belong to the database; of all there are, where the manifest does not say. */
  async damage(mark: ManifestMark | undefined): Promise<readonly FoundDamage[]> {
    const found: FoundDamage[] = [];
    for (const { name, bounds, size } of this.#listTables(mark)) {
      const path = join(this.#database, name);
      const bytes = existsSync(path) ? await readFile(path) : undefined;
      if (bytes === undefined) found.push({ what: `table ${name} is missing`, range: bounds, table: name });
      else if (size !== undefined && bytes.length !== size) {
        found.push({
          what: `table ${name} has ${bytes.length} bytes in place of ${size}`,
          range: bounds,
          table: name,
        });
      } else found.push(...(await this.#checkTable(name, bytes, bounds, size !== undefined)));
    }
    return found;
  }

  async #checkTable(name: string, bytes: Buffer, bounds: KeyRange, isBound: boolean) {
    const found: FoundDamage[] = [];
    let since = this.#deps.clock.mono();
    for (const damage of checkTable(bytes, isBound ? bounds : undefined)) {
      if (damage !== undefined) found.push({ ...damage, what: `table ${name}: ${damage.what}`, table: name });
      if (this.#deps.clock.mono() - since < 10) continue;
      await new Promise<void>((resolve) => this.#deps.scheduler.soon(resolve));
      since = this.#deps.clock.mono();
    }
    return found;
  }

  #listTables(mark: ManifestMark | undefined): readonly {
    readonly name: string;
    readonly bounds: KeyRange;
    readonly size: number | undefined;
  }[] {
    if (!existsSync(this.#database)) return [];
    const files = readdirSync(this.#database);
    const [manifest] = this.manifests();
    if (manifest !== undefined && this.flaw(manifest, mark) === undefined) {
      return readManifest(readFileSync(join(this.#database, manifest))).map((table) => ({
        name: fileOf(table, files),
        bounds: { from: table.smallest, to: table.largest },
        size: table.size,
      }));
    }
    return files
      .filter((name) => /\.(ldb|sst)$/.test(name))
      .map((name) => ({ name, bounds: EVERYTHING, size: undefined }));
  }

  /** Makes a block unreadable, with a copy of its table put aside. */
  disable(table: string, kindAt: number): void {
    const lost = join(this.#database, "lost");
    mkdirSync(lost, { recursive: true });
    const path = join(this.#database, table);
    const copy = join(lost, `${table}.damaged`);
    if (!existsSync(copy)) copyFileSync(path, copy);
    const file = openSync(path, "r+");
    try {
      // No kind of block that there is.
      if (kindAt < statSync(path).size) writeSync(file, Buffer.from([0xff]), 0, 1, kindAt);
    } finally {
      closeSync(file);
    }
  }
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
