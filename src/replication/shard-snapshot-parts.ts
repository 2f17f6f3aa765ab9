import { crc32 } from "node:zlib";
import { ServiceError } from "../model/errors.ts";
import type { KeyValueEntry } from "../ports/key-value-store.ts";

/** The size of each part of a snapshot, in bytes. The last part may be smaller. */
const PART_BYTES = 1024 * 1024;
/** The bytes of the checksum at the beginning of a part. */
const SUM_BYTES = 4;
/** The bytes before an entry: the length of its key in two bytes, and the length of its value in four. */
const HEAD_BYTES = 6;

/**
 * Writes the entries of a database as the parts of a snapshot. All entries, each preceded by the lengths of its key and its value, form one
 * sequence of bytes. A part consists of a checksum and a section of this sequence, so a large entry may extend over several parts.
 */
export async function* writeSnapshotParts(entries: AsyncIterable<KeyValueEntry>): AsyncGenerator<Uint8Array> {
  let part = Buffer.allocUnsafe(PART_BYTES);
  let used = SUM_BYTES;
  for await (const [key, value] of entries) {
    const keyBytes = Buffer.byteLength(key);
    const head = Buffer.allocUnsafe(HEAD_BYTES + keyBytes);
    head.writeUInt16BE(keyBytes, 0);
    head.writeUInt32BE(value.length, 2);
    head.write(key, HEAD_BYTES);
    for (const bytes of [head, value]) {
      for (let at = 0; at < bytes.length;) {
        const copied = bytes.copy(part, used, at);
        at += copied;
        used += copied;
        if (used < PART_BYTES) continue;
        yield sealed(part);
        part = Buffer.allocUnsafe(PART_BYTES);
        used = SUM_BYTES;
      }
    }
  }
  if (used > SUM_BYTES) yield sealed(part.subarray(0, used));
}

/**
 * Reads the entries from the parts of a snapshot. The keys must be strictly ascending, which shows that no part in the middle is missing or
 * occurs twice. Missing parts at the end are not noticed, so the caller MUST check that the last entry is there.
 * @throws ServiceError `journal.damaged`
 */
export async function* readSnapshotParts(parts: AsyncIterable<Uint8Array>): AsyncGenerator<KeyValueEntry> {
  /**
   * `waiting`: bytes that do not form a complete entry yet; `size`: their number; `needed`: the number of bytes of the next entry, as far
   * as it is known.
   */
  let waiting: Buffer[] = [];
  let size = 0;
  let needed = HEAD_BYTES;
  let last = "";
  for await (const part of parts) {
    const bytes = opened(part);
    waiting.push(bytes);
    size += bytes.length;
    if (size < needed) continue;
    const all = waiting.length === 1 ? bytes : Buffer.concat(waiting);
    let at = 0;
    for (;;) {
      needed = HEAD_BYTES;
      if (all.length - at < needed) break;
      const from = at + HEAD_BYTES;
      const to = from + all.readUInt16BE(at);
      needed = to + all.readUInt32BE(at + 2) - at;
      if (all.length - at < needed) break;
      const key = all.toString("utf8", from, to);
      at += needed;
      if (key <= last) throw damaged("its entries are not in order");
      last = key;
      yield [key, all.subarray(to, at)];
    }
    waiting = [all.subarray(at)];
    size = all.length - at;
  }
  if (size > 0) throw damaged("it ends within an entry");
}

function sealed(part: Buffer): Buffer {
  part.writeUInt32BE(crc32(part.subarray(SUM_BYTES)));
  return part;
}

function opened({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  const part = Buffer.from(buffer, byteOffset, byteLength);
  if (byteLength < SUM_BYTES || part.readUInt32BE() !== crc32(part.subarray(SUM_BYTES)))
    throw damaged("a part has a wrong checksum");
  return part.subarray(SUM_BYTES);
}

const damaged = (what: string): ServiceError =>
  new ServiceError("journal.damaged", `The snapshot is damaged: ${what}`);
