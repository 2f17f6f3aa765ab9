import { ASCII_TEXT_TYPE, LONG_ASCII_TEXT } from "./msgpack-ascii-text.ts";
import { structureNumber } from "./msgpack-structures.ts";
import { MAX_TEXT_BYTES } from "../model/json.ts";
import { MAX_ENCODED_BYTES, throwValueTooLarge, throwTextTooLong } from "./size-limits.ts";
import { UUID_BYTES, UUID_CHARACTERS, UUID_TYPE, writeUuid } from "./uuid-bytes.ts";

/** Bytes of a buffer. Many values share a buffer, because it would be slow to allocate one for each value. */
const BUFFER_BYTES = 64 * 1024;
/** The largest number of bytes of a MessagePack number, or of the type and length in front of a string, array or object. */
const MAX_HEADER_BYTES = 9;
/** From this number of characters on, a string is written by `Buffer.write`; for shorter ones a loop is faster. */
const LONG_STRING_CHARACTERS = 64;
/**
 * The encoder remembers the bytes of the last object with at least this many members. When the same object is encoded again, and is frozen,
 * its bytes are copied.
 */
const LARGE_OBJECT_MEMBERS = 4;
/** For an array of at least this many items, the buffer grows once, in advance. Repeated doubling would copy it many times. */
const LARGE_ARRAY_ITEMS = 4096;
const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * The first byte value that stands for a structure (see {@link MSGPACK_STRUCTURES}). For this reason, an integer from 0x40 to 0x7f is
 * written as two bytes, although MessagePack needs only one.
 */
const FIRST_STRUCTURE = 0x40;

/**
 * A MessagePack encoder for plain JSON data; msgpackr decodes the result. It takes three quarters of the time of msgpackr's encoder. (With
 * msgpackr's, encoding took an eighth of the time of a run of one node.)
 *
 * Objects of a known structure (msgpackr records, see `msgpack-structures.ts`) and UUIDs have a shorter form than in MessagePack. Long
 * ASCII texts have a form that is decoded faster.
 */
export class FastMsgpackEncoder {
  #bytes = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  #view = viewOf(this.#bytes);
  #start = 0;
  #at = 0;
  /**
   * The last large object (see {@link LARGE_OBJECT_MEMBERS}), and the range of its bytes in the buffer. The steps of a run share one
   * metadata object, which is therefore encoded again and again.
   */
  #last: object | null = null;
  #from = 0;
  #to = 0;
  readonly #maxBytes: number;

  /** `maxBytes`: the largest number of bytes of an encoded value. */
  constructor(maxBytes = MAX_ENCODED_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /**
   * Encodes `value`, and leaves the first `head` bytes of the result free for the caller. Returns undefined if the value contains a member
   * named `__proto__`, or anything but null, booleans, numbers, well-formed strings, arrays and plain objects.
   * @throws ServiceError `value.unstorable` if the value or one of its texts is too large
   */
  pack(value: unknown, head: number): Buffer | undefined {
    if (this.#bytes.length - this.#at < BUFFER_BYTES / 16) this.#replaceBuffer(BUFFER_BYTES, 0);
    const start = this.#at;
    this.#start = start;
    this.#at = start + head;
    let made: Buffer | undefined;
    try {
      if (this.#value(value)) made = this.#bytes.subarray(this.#start, this.#at);
      return made;
    } finally {
      // The bytes of `#last` may be part of the failed value. They are forgotten, because the next value overwrites them.
      if (made === undefined) {
        this.#at = this.#start;
        this.#last = null;
      }
      // A larger buffer is not shared with other values.
      if (this.#bytes.length > BUFFER_BYTES) this.#replaceBuffer(BUFFER_BYTES, 0);
    }
  }

  #value(value: unknown): boolean {
    if (this.#at + MAX_HEADER_BYTES > this.#bytes.length) this.#grow(MAX_HEADER_BYTES);
    switch (typeof value) {
      case "string":
        return this.#string(value);
      case "number":
        this.#number(value);
        return true;
      case "boolean":
        this.#bytes[this.#at++] = value ? 0xc3 : 0xc2;
        return true;
      case "object":
        if (value === null) {
          this.#bytes[this.#at++] = 0xc0;
          return true;
        }
        return Array.isArray(value) ? this.#array(value) : this.#object(value);
      default:
        return false;
    }
  }

  #number(n: number): void {
    const bytes = this.#bytes;
    if (n >>> 0 === n) {
      if (n < FIRST_STRUCTURE) bytes[this.#at++] = n;
      else if (n < 0x1_00) this.#sized(0xcc, n, 1);
      else if (n < 0x1_0000) this.#sized(0xcd, n, 2);
      else this.#sized(0xce, n, 4);
    } else if (n < 0 && n >= -0x20 && Number.isInteger(n)) {
      bytes[this.#at++] = n + 0x100;
    } else {
      bytes[this.#at] = 0xcb;
      this.#view.setFloat64(this.#at + 1, n);
      this.#at += 9;
    }
  }

  /** Writes a type byte and an integer of `width` bytes. */
  #sized(type: number, n: number, width: 1 | 2 | 4): void {
    const bytes = this.#bytes;
    bytes[this.#at++] = type;
    for (let shift = (width - 1) * 8; shift >= 0; shift -= 8) bytes[this.#at++] = n >>> shift;
  }

  #count(n: number, shortCode: number, two: number): void {
    if (n < 16) this.#bytes[this.#at++] = shortCode | n;
    else if (n < 0x1_0000) this.#sized(two, n, 2);
    else this.#sized(two + 1, n, 4);
  }

  #string(text: string): boolean {
    const { length } = text;
    // A UTF-16 unit takes at most three bytes of UTF-8. The bytes of a long text are counted, so that its buffer is not up to three times
    // too large.
    const size = length < BUFFER_BYTES ? length * 3 : Buffer.byteLength(text);
    const most = MAX_HEADER_BYTES + size;
    if (this.#at + most > this.#bytes.length) this.#grow(most);
    if (length >= LONG_ASCII_TEXT && size === length) return this.#longAscii(text);
    if (length >= LONG_STRING_CHARACTERS) return this.#long(text);
    const bytes = this.#bytes;
    let at = this.#at;
    if (length === UUID_CHARACTERS && writeUuid(text, bytes, at + 2)) {
      bytes[at] = 0xd8;
      bytes[at + 1] = UUID_TYPE;
      this.#at = at + 2 + UUID_BYTES;
      return true;
    }
    if (length < 0x20) bytes[at++] = 0xa0 | length;
    else {
      bytes[at++] = 0xd9;
      bytes[at++] = length;
    }
    for (let i = 0; i < length; i++) {
      const unit = text.charCodeAt(i);
      if (unit >= 0x80) return this.#long(text);
      bytes[at++] = unit;
    }
    this.#at = at;
    return true;
  }

  #longAscii(text: string): boolean {
    if (text.length > MAX_TEXT_BYTES) throwTextTooLong();
    this.#sized(0xc9, text.length, 4);
    this.#bytes[this.#at++] = ASCII_TEXT_TYPE;
    this.#at += this.#bytes.write(text, this.#at, "latin1");
    return true;
  }

  #long(text: string): boolean {
    const isWide = text.length >= 0x1_0000 / 3;
    const from = this.#at + (isWide ? 5 : 3);
    const count = this.#bytes.write(text, from);
    // `Buffer.write` replaces lone surrogates by U+FFFD, so the value cannot be encoded here.
    if (count !== text.length && LONE_SURROGATE.test(text)) return false;
    if (count > MAX_TEXT_BYTES) throwTextTooLong();
    if (isWide) this.#sized(0xdb, count, 4);
    else this.#sized(0xda, count, 2);
    this.#at = from + count;
    return true;
  }

  #array(items: readonly unknown[]): boolean {
    const { length } = items;
    this.#count(length, 0x90, 0xdc);
    const most = length * MAX_HEADER_BYTES;
    if (length >= LARGE_ARRAY_ITEMS && this.#at + most > this.#bytes.length) this.#grow(most);
    for (let i = 0; i < length; i++) if (!this.#value(items[i])) return false;
    return true;
  }

  #object(value: object): boolean {
    const proto: unknown = Object.getPrototypeOf(value);
    if (proto !== Object.prototype && proto !== null) return false;
    if (value === this.#last && Object.isFrozen(value)) return this.#copyLast();
    const names = Object.keys(value);
    const { length } = names;
    const bytes = this.#bytes;
    const from = this.#at;
    const structure = structureNumber(names);
    if (structure === -1) this.#count(length, 0x80, 0xde);
    else bytes[this.#at++] = FIRST_STRUCTURE | structure;
    for (let i = 0; i < length; i++) {
      const name = names[i] as string;
      if (structure === -1 && (name === "__proto__" || !this.#string(name))) return false;
      if (!this.#value((value as { readonly [name: string]: unknown })[name])) return false;
    }
    if (length >= LARGE_OBJECT_MEMBERS && bytes === this.#bytes) {
      this.#last = value;
      this.#from = from;
      this.#to = this.#at;
    }
    return true;
  }

  #copyLast(): boolean {
    const length = this.#to - this.#from;
    if (this.#at + length > this.#bytes.length) this.#grow(length);
    // Growing has switched to a buffer without the object's bytes. The caller then encodes the whole value in another way.
    if (this.#last === null) return false;
    this.#bytes.copyWithin(this.#at, this.#from, this.#to);
    this.#at += length;
    return true;
  }

  #grow(more: number): void {
    const written = this.#at - this.#start;
    const needed = written + more;
    if (needed > this.#maxBytes) throwValueTooLarge();
    if (2 * needed <= BUFFER_BYTES) return this.#replaceBuffer(BUFFER_BYTES, written);
    // The new buffer is at least twice as large as the bytes written so far, so that a value of many small parts is not copied many times.
    // The `more` bytes of the next part are not doubled: if the part is large, it may be the last one.
    const size = Math.max(2 * written, needed + BUFFER_BYTES);
    this.#replaceBuffer(Math.min(this.#maxBytes, size), written);
  }

  /** Switches to a new buffer, and copies the bytes of the value that are written so far. */
  #replaceBuffer(size: number, written: number): void {
    const bytes = Buffer.allocUnsafeSlow(size);
    this.#bytes.copy(bytes, 0, this.#start, this.#start + written);
    this.#bytes = bytes;
    this.#view = viewOf(bytes);
    this.#start = 0;
    this.#at = written;
    this.#last = null;
  }
}

function viewOf({ buffer, byteOffset, byteLength }: Buffer): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}
