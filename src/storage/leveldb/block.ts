import { FormatError, ByteReader } from "./byte-reader.ts";
import { crc32c, unmaskChecksum } from "./crc32c.ts";
import { unsnappy } from "./snappy.ts";

/** The position of a block in a table. */
export interface BlockHandle {
  readonly offset: number;
  readonly size: number;
}

/** The number of bytes after each block: its type and its checksum. */
export const BLOCK_TRAILER_BYTES = 5;
/** The last bytes of the footer, at the end of a table. */
export const TABLE_MAGIC = Buffer.from([0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb]);

export function readBlockHandle(reader: ByteReader): BlockHandle {
  return { offset: reader.varint(), size: reader.varint() };
}

/** True if the checksum of a block matches its content. */
export function hasValidChecksum(bytes: Buffer, handle: BlockHandle): boolean {
  const steps = hasValidChecksumInSteps(bytes, handle);
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** How many bytes of a block are checksummed before other work gets a turn. */
const STEP_BYTES = 1024 * 1024;

/** Like {@link hasValidChecksum}, but yields after each step, because a block with a large value may have megabytes. */
export function* hasValidChecksumInSteps(
  bytes: Buffer,
  { offset, size }: BlockHandle,
): Generator<undefined, boolean> {
  const end = offset + size + 1;
  if (end + BLOCK_TRAILER_BYTES - 1 > bytes.length) return false;
  let sum = 0;
  for (let at = offset; at < end; at += STEP_BYTES) {
    sum = crc32c(bytes, at, Math.min(at + STEP_BYTES, end), sum);
    yield undefined;
  }
  return unmaskChecksum(bytes.readUInt32LE(end)) === sum;
}

/**
 * All keys of a block are within this many bytes of its start: LevelDB ends a block after the entry that exceeds the block size, here 8
 * KiB.
 */
const KEYS_WITHIN = 64 * 1024;
/** If an entry ends after this many bytes of a block, it is the last entry of the block. */
const LAST_ENDS_BEHIND = KEYS_WITHIN / 2;

/**
 * The first and the last key of a block whose checksum is right. Decompresses only the start of a large block.
 * @throws FormatError if the keys are not found in that part
 */
export function firstAndLastKeyOf(
  bytes: Buffer,
  { offset, size }: BlockHandle,
): readonly [first: Buffer, last: Buffer] {
  const end = offset + size;
  const content = bytes.subarray(offset, end);
  const start = bytes[end] === 0 ? content.subarray(0, KEYS_WITHIN) : unsnappy(content, KEYS_WITHIN);
  if (start.length < KEYS_WITHIN) {
    const entries = readBlockEntries(start);
    const [first, last] = [entries[0], entries.at(-1)];
    if (first === undefined || last === undefined) throw new FormatError("a block has no entries");
    return [first[0], last[0]];
  }
  const reader = new ByteReader(start);
  let first: Buffer | undefined;
  let key = Buffer.alloc(0);
  for (;;) {
    const [shared, own, length] = [reader.varint(), reader.varint(), reader.varint()];
    key = Buffer.concat([key.subarray(0, shared), reader.take(own)]);
    first ??= key;
    if (reader.at + length > LAST_ENDS_BEHIND) return [first, key];
    reader.take(length);
  }
}

export function readBlock(bytes: Buffer, handle: BlockHandle): Buffer {
  if (!hasValidChecksum(bytes, handle)) throw new FormatError("its index has a wrong checksum");
  const end = handle.offset + handle.size;
  const content = bytes.subarray(handle.offset, end);
  return bytes[end] === 0 ? content : unsnappy(content);
}

/** The keys and values of a block. Each key is stored without the bytes at its start that it shares with the previous key. */
export function readBlockEntries(block: Buffer): (readonly [key: Buffer, value: Buffer])[] {
  if (block.length < 4) throw new FormatError("a block is too short");
  const restarts = block.readUInt32LE(block.length - 4);
  const end = block.length - 4 * (restarts + 1);
  if (end < 0) throw new FormatError("a block is too short");
  const reader = new ByteReader(block, 0, end);
  const entries: (readonly [Buffer, Buffer])[] = [];
  let key = Buffer.alloc(0);
  while (!reader.isAtEnd) {
    const [shared, own, length] = [reader.varint(), reader.varint(), reader.varint()];
    key = Buffer.concat([key.subarray(0, shared), reader.take(own)]);
    entries.push([key, reader.take(length)]);
  }
  return entries;
}
