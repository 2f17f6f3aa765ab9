import { closeSync, fstatSync, openSync, readdirSync, readSync } from "node:fs";
import { join } from "node:path";

/** Where a block is in a LevelDB table file. `size`: its bytes without the trailing type and checksum. */
interface Handle {
  readonly offset: number;
  readonly size: number;
}

const FOOTER_BYTES = 48;
/** The number that ends each complete LevelDB table file. */
const MAGIC = Buffer.from("57fb808b247547db", "hex");

/**
 * Bytes of the index and the filter of all LevelDB tables in a directory. LevelDB keeps them in memory in addition to
 * its cache, for at most 1,000 open tables.
 */
export function indexBytes(directory: string): number {
  let sum = 0;
  for (const name of readdirSync(directory)) if (name.endsWith(".ldb")) sum += ofTable(join(directory, name));
  return sum;
}

function ofTable(path: string): number {
  let file;
  try {
    file = openSync(path, "r");
  } catch {
    // LevelDB has just deleted the table, after a compaction.
    return 0;
  }
  try {
    const { size } = fstatSync(file);
    if (size < FOOTER_BYTES) return 0;
    const footer = read(file, { offset: size - FOOTER_BYTES, size: FOOTER_BYTES });
    // LevelDB is still writing the table, and has not opened it.
    if (!footer.subarray(-MAGIC.length).equals(MAGIC)) return 0;
    const [meta, index] = handles(footer, 0, 2);
    if (meta === undefined || index === undefined) return 0;
    return unpackedSize(file, index) + filterSize(file, meta);
  } finally {
    closeSync(file);
  }
}

/** The size of a block in memory: the uncompressed size, with which a block that Snappy has compressed begins. */
function unpackedSize(file: number, { offset, size }: Handle): number {
  const SNAPPY = 1;
  const [type] = read(file, { offset: offset + size, size: 1 });
  return type === SNAPPY ? varint(read(file, { offset, size: Math.min(size, 10) }), 0).value : size;
}

/**
 * The size of a table's filter. The metaindex block has one entry: the filter's name, and its position in the file.
 */
function filterSize(file: number, meta: Handle): number {
  const block = read(file, meta);
  const shared = varint(block, 0);
  const key = varint(block, shared.next);
  const value = varint(block, key.next);
  if (value.value === 0 || value.next + key.value > block.length) return 0;
  return handles(block, value.next + key.value, 1)[0]?.size ?? 0;
}

function handles(bytes: Buffer, at: number, count: number): readonly Handle[] {
  const found: Handle[] = [];
  for (let next = at; found.length < count;) {
    const offset = varint(bytes, next);
    const size = varint(bytes, offset.next);
    found.push({ offset: offset.value, size: size.value });
    next = size.next;
  }
  return found;
}

function varint(bytes: Buffer, at: number): { readonly value: number; readonly next: number } {
  let value = 0;
  let scale = 1;
  for (let next = at; next < bytes.length; next++) {
    const byte = bytes[next] as number;
    value += (byte & 0x7f) * scale;
    if (byte < 0x80) return { value, next: next + 1 };
    scale *= 128;
  }
  return { value, next: bytes.length };
}

function read(file: number, { offset, size }: Handle): Buffer {
  const bytes = Buffer.alloc(size);
  readSync(file, bytes, 0, size, offset);
  return bytes;
}
