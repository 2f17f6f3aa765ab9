/** Thrown when bytes are not in LevelDB's format. */
export class FormatError extends Error {}

/** Reads consecutive numbers and byte strings in LevelDB's encoding. */
export class ByteReader {
  readonly bytes: Buffer;
  at: number;
  readonly #end: number;

  constructor(bytes: Buffer, from = 0, end = bytes.length) {
    this.bytes = bytes;
    this.at = from;
    this.#end = end;
  }

  get isAtEnd(): boolean {
    return this.at >= this.#end;
  }

  /** Reads a number that is stored in groups of seven bits, the lowest group first. Exact up to 2^53. */
  varint(): number {
    let value = 0;
    for (let factor = 1; factor <= 2 ** 63; factor *= 128) {
      if (this.isAtEnd) break;
      const byte = this.bytes[this.at++] as number;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
    throw new FormatError("a number has no end");
  }

  take(length: number): Buffer {
    if (this.at + length > this.#end) throw new FormatError("it is cut short");
    return this.bytes.subarray(this.at, (this.at += length));
  }

  /** Reads a byte string: its length, then its bytes. */
  text(): Buffer {
    return this.take(this.varint());
  }
}

/**
 * Returns Heddle's key from a key of a table. LevelDB appends eight bytes to each key: a sequence number and a type. Heddle's keys are
 * ASCII.
 */
export function userKey(internal: Buffer): string {
  if (internal.length < 8) throw new FormatError("a key is too short");
  return internal.toString("latin1", 0, internal.length - 8);
}
