import { crc32c, unmaskChecksum } from "./crc32c.ts";
import { FormatError, ByteReader, userKey } from "./byte-reader.ts";

/** A table as listed in the manifest. */
export interface TableEntry {
  readonly number: number;
  /** The bytes of the table's file. */
  readonly size: number;
  /** The first and the last key. */
  readonly smallest: string;
  readonly largest: string;
  /** The first key in LevelDB's form, with its sequence number. */
  readonly first: Buffer;
}

const BLOCK = 32 * 1024;
const HEADER = 7;
const [FULL, FIRST, MIDDLE, LAST] = [1, 2, 3, 4];

/**
 * The tables of a database, as its manifest lists them. (For the format, see LevelDB's `log_format.md` and `version_edit.cc`.) Like
 * LevelDB, this skips a record at the end that a crash has cut off.
 * @throws FormatError when the manifest is damaged
 */
export function parseManifest(bytes: Buffer): readonly TableEntry[] {
  const tables = new Map<number, TableEntry>();
  for (const record of recordsOf(bytes)) applyEdit(tables, new ByteReader(record));
  return [...tables.values()];
}

function* recordsOf(bytes: Buffer): Generator<Buffer> {
  let parts: Buffer[] = [];
  for (let at = 0; at + HEADER <= bytes.length;) {
    const left = BLOCK - (at % BLOCK);
    if (left < HEADER) {
      at += left;
      continue;
    }
    const length = bytes.readUInt16LE(at + 4);
    const kind = bytes[at + 6] as number;
    const end = at + HEADER + length;
    if (end > bytes.length) return;
    if (HEADER + length > left || unmaskChecksum(bytes.readUInt32LE(at)) !== crc32c(bytes, at + 6, end)) {
      throw new FormatError("a checksum is wrong");
    }
    if (kind === FULL || kind === FIRST) parts = [];
    else if ((kind !== MIDDLE && kind !== LAST) || parts.length === 0)
      throw new FormatError("a record has no beginning");
    parts.push(bytes.subarray(at + HEADER, end));
    if (kind === FULL || kind === LAST) {
      yield Buffer.concat(parts);
      parts = [];
    }
    at = end;
  }
}

function applyEdit(tables: Map<number, TableEntry>, edit: ByteReader): void {
  while (!edit.isAtEnd) {
    const tag = edit.varint();
    switch (tag) {
      case 1: // the comparator's name
        edit.text();
        break;
      case 2: // the log's number
      case 3: // the next file's number
      case 4: // the last sequence number
      case 9: // the previous log's number
        edit.varint();
        break;
      case 5: // where a level is to be compacted next
        edit.varint();
        edit.text();
        break;
      case 6:
        edit.varint();
        tables.delete(edit.varint());
        break;
      case 7: {
        edit.varint();
        const [number, size] = [edit.varint(), edit.varint()];
        const [first, last] = [edit.text(), edit.text()];
        tables.set(number, { number, size, smallest: userKey(first), largest: userKey(last), first });
        break;
      }
      default:
        throw new FormatError(`an edit has the unknown tag ${tag}`);
    }
  }
}
