import { FormatError, ByteReader } from "./byte-reader.ts";
import { crc32c, unmaskChecksum } from "./crc32c.ts";
import { unsnappy } from "./snappy.ts";

/** The position of a block in a table. */
export interface BlockHandle {
  readonly offset: number;
  readonly size: number;
}

/** Bytes after each block: its type and its checksum. */
export const TRAILER = 5;
/** The last bytes of a table. */
export const MAGIC = Buffer.from([0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb]);

export function handleOf(reader: ByteReader): BlockHandle {
  return { offset: reader.varint(), size: reader.varint() };
}

export function isWhole(bytes: Buffer, { offset, size }: BlockHandle): boolean {
  const end = offset + size;
  if (end + TRAILER > bytes.length) return false;
  return unmaskChecksum(bytes.readUInt32LE(end + 1)) === crc32c(bytes, offset, end + 1);
}

export function readBlock(bytes: Buffer, handle: BlockHandle): Buffer {
  if (!isWhole(bytes, handle)) throw new FormatError("its index has a wrong checksum");
  const end = handle.offset + handle.size;
  const content = bytes.subarray(handle.offset, end);
  return bytes[end] === 0 ? content : unsnappy(content);
}

/** The keys and values of a block. Each key is stored as its difference from the previous one. */
export function entriesOf(block: Buffer): (readonly [key: Buffer, value: Buffer])[] {
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
