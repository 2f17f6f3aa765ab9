import { FormatError, ByteReader } from "./byte-reader.ts";

/**
 * Bytes. A block that claims to have more when uncompressed counts as damaged. Index blocks are never that large, and data blocks only if
 * they have a value of that size.
 */
const MAX_BLOCK_BYTES = 64 * 1024 * 1024;

/** Decompresses a Snappy block, or its first `limit` bytes. (For the format, see Snappy's `format_description.txt`.) */
export function unsnappy(bytes: Buffer, limit = MAX_BLOCK_BYTES): Buffer {
  const reader = new ByteReader(bytes);
  const size = reader.varint();
  if (size > MAX_BLOCK_BYTES) throw new FormatError("a block claims to be too large");
  const made = Buffer.alloc(Math.min(size, limit));
  let to = 0;
  while (!reader.isAtEnd && to < made.length) {
    const tag = reader.take(1)[0] as number;
    if ((tag & 3) === 0) {
      let length = tag >>> 2;
      if (length >= 60) length = reader.take(length - 59).readUIntLE(0, length - 59);
      const piece = reader.take(length + 1);
      if (to + piece.length > size) throw new FormatError("a block is longer than it says");
      piece.copy(made, to);
      to += piece.length;
      continue;
    }
    const { length, back } = copyOf(tag, reader);
    if (back === 0 || back > to || to + length > size)
      throw new FormatError("a copy refers to bytes outside of its block");
    // Copies byte by byte, because the source may overlap with the output.
    for (const end = Math.min(to + length, made.length); to < end; to++) made[to] = made[to - back] as number;
  }
  if (to < made.length || !(reader.isAtEnd || size > limit))
    throw new FormatError("a block is shorter than it says");
  return made;
}

function copyOf(tag: number, reader: ByteReader): { readonly length: number; readonly back: number } {
  if ((tag & 3) === 1) {
    return { length: ((tag >>> 2) & 7) + 4, back: ((tag >>> 5) << 8) | (reader.take(1)[0] as number) };
  }
  const width = (tag & 3) === 2 ? 2 : 4;
  return { length: (tag >>> 2) + 1, back: reader.take(width).readUIntLE(0, width) };
}
