import { crc32c, findChecksum, maskChecksum } from "./crc32c.ts";
import { FormatError, userKey } from "./byte-reader.ts";
import { readBlockEntries, TABLE_MAGIC, readBlock, BLOCK_TRAILER_BYTES } from "./block.ts";

/** A data block with a correct checksum. Its keys are in LevelDB's form, with a sequence number and a type. */
export interface DataBlock {
  readonly offset: number;
  readonly size: number;
  readonly first: Buffer;
  readonly last: Buffer;
}

/** A table's key range according to the manifest: its first and last key, and the first key in LevelDB's form. */
export interface TableBounds {
  readonly from: string;
  readonly to: string;
  readonly first: Buffer;
}

/**
 * After a damaged block, only blocks with at most this many bytes are searched for. Larger blocks, each with one large
 * value, are lost.
 */
const MAX_FOUND_BLOCK_BYTES = 64 * 1024;
/** The maximum number of bytes that one search reads in total. Reading them takes about a second. */
const MAX_SEARCH_BYTES = 512 * 1024 * 1024;
/** How many bytes are read between two yields. */
const TURN_BYTES = 4 * 1024 * 1024;

/**
 * Finds the data blocks of a table that has lost its index. Blocks follow each other from the start of the file, and each block's checksum
 * shows where the block ends. After a damaged block, the next intact block is searched for byte by byte. Yields undefined between blocks,
 * so that the caller can let other work run.
 */
export function* findBlocks(bytes: Buffer, bounds: TableBounds): Generator<undefined, readonly DataBlock[]> {
  const blocks: DataBlock[] = [];
  let read = 0;
  let turn = 0;
  /** True if `at` is where a block is expected: at the start of the file, or after the end of a block that was found. */
  let isBlockStart = true;
  for (let at = 0; at + BLOCK_TRAILER_BYTES < bytes.length && read < MAX_SEARCH_BYTES;) {
    const most = isBlockStart ? bytes.length : Math.min(bytes.length, at + MAX_FOUND_BLOCK_BYTES);
    const end = isBlockStart || looksLikeBlock(bytes, at) ? findChecksum(bytes, at, most) : undefined;
    if (isBlockStart || end !== undefined) read += (end ?? most) - at;
    if (read - turn > TURN_BYTES) {
      turn = read;
      yield undefined;
    }
    if (end === undefined) {
      isBlockStart = false;
      at++;
      continue;
    }
    const block = dataOf(bytes, at, end - at, blocks.at(-1)?.last, bounds);
    // The filter block and the index block follow the data blocks. They are left out, because their keys do not sort after the last data
    // key.
    if (block !== undefined) blocks.push(block);
    isBlockStart = true;
    at = end + BLOCK_TRAILER_BYTES;
  }
  // A block at the start of the file has to begin with the table's first key, whose sequence number occurs in no other table. If it does
  // not, the file has the content of another table, and none of its blocks are used. If the block at the start is damaged, this cannot be
  // checked.
  const [first] = blocks;
  return first === undefined || (first.offset === 0 && !first.first.equals(bounds.first)) ? [] : blocks;
}

/** The ranges of keys in which entries are lost: before, between and after the found blocks. */
export function lostKeyRanges(
  blocks: readonly DataBlock[],
  { from, to }: Pick<TableBounds, "from" | "to">,
): { readonly from: string; readonly to: string }[] {
  const gaps: { from: string; to: string }[] = [];
  let [end, last] = [0, from];
  for (const { offset, size, first, last: own } of blocks) {
    if (offset !== end) gaps.push({ from: last, to: userKey(first) });
    end = offset + size + BLOCK_TRAILER_BYTES;
    last = userKey(own);
  }
  if (blocks.length === 0 || last !== to) gaps.push({ from: last, to });
  return gaps;
}

/**
 * Builds a table from blocks of another table, in the format of LevelDB's `table_format.md`. The table has no filter, which would only save
 * reads.
 */
export function buildTableFromBlocks(bytes: Buffer, blocks: readonly DataBlock[]): Buffer {
  const parts: Buffer[] = [];
  let at = 0;
  const append = (part: Buffer): Buffer => {
    const handle = Buffer.concat([varint(at), varint(part.length - BLOCK_TRAILER_BYTES)]);
    parts.push(part);
    at += part.length;
    return handle;
  };
  const entries = blocks.map(({ offset, size, last }) => ({
    key: last,
    value: append(bytes.subarray(offset, offset + size + BLOCK_TRAILER_BYTES)),
  }));
  const meta = append(blockOf([]));
  const index = append(blockOf(entries));
  const handles = Buffer.concat([meta, index]);
  return Buffer.concat([...parts, handles, Buffer.alloc(40 - handles.length), TABLE_MAGIC]);
}

/** A block of entries, each with its full key. */
function blockOf(entries: readonly { readonly key: Buffer; readonly value: Buffer }[]): Buffer {
  const parts: Buffer[] = [];
  const restarts: number[] = entries.length === 0 ? [0] : [];
  let at = 0;
  for (const { key, value } of entries) {
    restarts.push(at);
    const entry = Buffer.concat([varint(0), varint(key.length), varint(value.length), key, value]);
    parts.push(entry);
    at += entry.length;
  }
  const end = Buffer.alloc(4 * (restarts.length + 1) + BLOCK_TRAILER_BYTES);
  for (const [i, restart] of [...restarts, restarts.length].entries()) end.writeUInt32LE(restart, 4 * i);
  const block = Buffer.concat([...parts, end]);
  const size = block.length - BLOCK_TRAILER_BYTES;
  block.writeUInt32LE(maskChecksum(crc32c(block, 0, size + 1)), size + 1);
  return block;
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let left = value;
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) | 128);
  return Buffer.from([...bytes, left]);
}

/**
 * True if a data block may begin here, compressed or not. The first key of a block shares no bytes with a previous key. So a block begins
 * with 0, the length of the key, the length of its value, and a printable character.
 */
function looksLikeBlock(bytes: Buffer, at: number): boolean {
  if (bytes[at] === 0) return looksLikeEntry(bytes, at);
  let next = at;
  while (next < at + 4 && (bytes[next] as number) >= 128) next++;
  const tag = bytes[++next];
  // Data that Snappy has compressed always begins with a literal.
  if (tag === undefined || (tag & 3) !== 0) return false;
  return looksLikeEntry(bytes, next + 1 + Math.max(0, (tag >>> 2) - 59));
}

function looksLikeEntry(bytes: Buffer, at: number): boolean {
  let next = at;
  if (bytes[next++] !== 0) return false;
  for (let numbers = 0; numbers < 2; numbers++) {
    for (let length = 0; (bytes[next] ?? 0) >= 128; length++, next++) if (length === 4) return false;
    next++;
  }
  const character = bytes[next] ?? 0;
  return character >= 0x21 && character <= 0x7e;
}

/** Decodes a data block whose keys come after the key `last`; undefined when the bytes are not such a block. */
function dataOf(
  bytes: Buffer,
  offset: number,
  size: number,
  last: Buffer | undefined,
  { from, to }: TableBounds,
): DataBlock | undefined {
  try {
    const keys = readBlockEntries(readBlock(bytes, { offset, size })).map(([key]) => key);
    let before = last;
    for (const key of keys) {
      const text = userKey(key);
      const isKey = (key[key.length - 8] as number) <= 1 && text >= from && text <= to;
      if (!isKey || (before !== undefined && compareKeys(before, key) >= 0)) return undefined;
      before = key;
    }
    const first = keys[0];
    return first === undefined || before === undefined ? undefined : { offset, size, first, last: before };
  } catch (error) {
    if (error instanceof FormatError) return undefined;
    throw error;
  }
}

/** Compares keys in LevelDB's order: by key; of equal keys, the newest comes first. */
function compareKeys(a: Buffer, b: Buffer): number {
  const [x, y] = [a.subarray(0, -8), b.subarray(0, -8)];
  const order = Buffer.compare(x, y);
  if (order !== 0) return order;
  const [m, n] = [a.readBigUInt64LE(x.length), b.readBigUInt64LE(y.length)];
  if (m === n) return 0;
  return m > n ? -1 : 1;
}
