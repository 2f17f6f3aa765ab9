import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ClassicLevel } from "classic-level";
import { parseManifest, type TableEntry } from "../../../src/storage/leveldb/manifest.ts";
import { checkTable, type TableDamage } from "../../../src/storage/leveldb/table-check.ts";
import { temporary } from "../support.ts";

/** The n-th key of the database. */
export const keyOf = (n: number): string => `_/t/${String(n).padStart(6, "0")}/h`;
export const valueOf = (n: number): Buffer => Buffer.from(`value ${n} `.repeat(20));

type Db = ClassicLevel<string, Buffer>;

export function openLevel(directory: string): Db {
  return new ClassicLevel<string, Buffer>(directory, {
    keyEncoding: "utf8",
    valueEncoding: "buffer",
    compression: true,
  });
}

export interface LevelDirectory {
  readonly path: string;
  readonly manifest: Buffer;
  readonly table: TableEntry;
  readonly bytes: Buffer;
  remove(): void;
}

/** A directory of LevelDB with `count` keys in a single table. */
export async function levelDirectory(count: number, value = valueOf): Promise<LevelDirectory> {
  const { path, remove } = temporary();
  const db = openLevel(path);
  for (let n = 0; n < count; n++) await db.put(keyOf(n), value(n));
  await db.compactRange("", "~");
  await db.close();
  const name = readdirSync(path).find((file) => file.startsWith("MANIFEST")) ?? "";
  const manifest = readFileSync(join(path, name));
  const [table] = parseManifest(manifest);
  if (table === undefined) throw new Error("there is no table");
  const bytes = readFileSync(join(path, `${String(table.number).padStart(6, "0")}.ldb`));
  return { path, manifest, table, bytes, remove };
}

/** The damage in a table, given its entry in the manifest. */
export function damageIn(
  bytes: Buffer,
  { smallest, largest, first, size }: TableEntry,
): readonly TableDamage[] {
  const bounds = { from: smallest, to: largest, first };
  return [...checkTable(bytes, bounds, size)].filter((damage) => damage !== undefined);
}
