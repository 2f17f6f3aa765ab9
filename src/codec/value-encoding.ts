import { addExtension, Packr, RESERVE_START_SPACE, Unpackr } from "msgpackr";
import { ASCII_TEXT_TYPE, readAsciiText } from "./msgpack-ascii-text.ts";
import { ClassInstance, NonJsonValue, type NonJsonContent } from "../model/non-json-data.ts";
import type { WriteOperation } from "../ports/key-value-store.ts";
import { isTooLong, MAX_TEXT_BYTES } from "../model/json.ts";
import { fromInstanceText, toInstanceText } from "./class-instance-json.ts";
import { FastMsgpackEncoder } from "./fast-msgpack.ts";
import { throwTextTooLong } from "./size-limits.ts";
import { MSGPACK_STRUCTURES } from "./msgpack-structures.ts";
import { readUuid, UUID_TYPE } from "./uuid-bytes.ts";

// msgpackr registers extensions for the whole process. Heddle uses the types 0x48 to 0x4b.
addExtension({
  Class: ClassInstance,
  type: 0x48,
  write: (kept: ClassInstance) => [ClassInstance.kindOf(kept), { ...kept }],
  read: ([kind, members]: [string, object]) => new ClassInstance(kind, members),
});
addExtension({
  Class: NonJsonValue,
  type: 0x49,
  write: (kept: NonJsonValue) => NonJsonValue.of(kept),
  read: (of: NonJsonContent) => new NonJsonValue(of),
});
addExtension({ type: UUID_TYPE, unpack: readUuid });
addExtension({ type: ASCII_TEXT_TYPE, unpack: readAsciiText });

/** An encoder without records, an extension of msgpackr. Records would have to be stored with their definitions. */
const packr = new Packr({ useRecords: false });
/** Encodes plain JSON data: nearly all values. */
const fastEncoder = new FastMsgpackEncoder();
/** Decodes the bytes of {@link fastEncoder}. */
const plainUnpackr = new Unpackr({
  structures: MSGPACK_STRUCTURES.map((names) => [...names]),
  mapsAsObjects: true,
});

/** The kinds of encoded values. The kind of a value is stored in its first byte. */
const MSGPACK = 1;
const JSON_TEXT = 2;
/** JSON text with a list of class instances, see `class-instance-json.ts`. */
const MARKED_TEXT = 3;
/** MessagePack with structures, UUIDs and ASCII texts, see `fast-msgpack.ts`. */
const PLAIN = 4;

/**
 * The UTF-8 bytes of U+FFFD, which msgpackr writes in place of a lone surrogate. `REPLACED_FIRST` is the first of them: a search for one
 * byte is faster.
 */
const REPLACED = Buffer.from("\uFFFD");
const REPLACED_FIRST = 0xef;
/**
 * The first byte of a lone surrogate that was encoded as it is. Hangul characters may have this first byte too, so if it is found, the
 * strings are checked.
 */
const SURROGATE = 0xed;
const PROTO = Buffer.from("__proto__");
/** Matches a lone surrogate. With the flag `u`, a complete surrogate pair is one character and does not match. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * Encodes JSON data, which may contain {@link ClassInstance} and {@link NonJsonValue} instances. Leaves the first `head` bytes of the
 * result free for the caller. Plain data is decoded exactly as if it had passed through `JSON.stringify` and `JSON.parse`.
 * @throws ServiceError `value.unstorable` for more than 2 GiB, and for a text of more than 512 MiB
 */
export function packValue(value: unknown, head: number): Buffer {
  const plain = fastEncoder.pack(value, head + 1);
  if (plain !== undefined) {
    plain[head] = PLAIN;
    return plain;
  }
  const bytes = packr.pack(value, RESERVE_START_SPACE | (head + 1));
  if (bytes.length > MAX_TEXT_BYTES) checkTexts(value);
  // msgpackr alters lone surrogates and members named `__proto__`, so a value that has any is written as JSON text. Searching the bytes
  // first costs a hundredth of checking each string, and nearly always finds nothing.
  const suspect =
    bytes.indexOf(SURROGATE, head + 1) !== -1 ||
    (bytes.indexOf(REPLACED_FIRST, head + 1) !== -1 && bytes.indexOf(REPLACED, head + 1) !== -1) ||
    bytes.indexOf(PROTO, head + 1) !== -1;
  if (suspect && isAltered(value)) return packText(value, head);
  bytes[head] = MSGPACK;
  return bytes;
}

/** Encodes calls between the processes of one server. Unlike stored values, they may contain maps and typed arrays. */
const callPackr = new Packr({ structuredClone: true });

export const packCall = (value: unknown): Uint8Array => callPackr.pack(value);

export const unpackCall = (bytes: Uint8Array): unknown => callPackr.unpack(bytes);

/** Encodes JSON data as standard MessagePack, which any reader understands. */
export function packForClients(value: unknown): Uint8Array {
  return packr.pack(value);
}

export const packWriteBatch = (ops: readonly WriteOperation[]): Buffer =>
  packr.pack(ops.flatMap(({ key, value }) => [key, value]));

/** Decodes the batch that {@link packWriteBatch} wrote. The values are views of `bytes`. @throws Error if the bytes are not such a batch */
export function unpackWriteBatch(bytes: Uint8Array): WriteOperation[] {
  const flat = packr.unpack(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)) as unknown[];
  if (!Array.isArray(flat) || flat.length % 2 !== 0) throw new TypeError("no batch of a key-value store");
  return Array.from({ length: flat.length / 2 }, (_, i) => ({
    key: flat[2 * i] as string,
    value: flat[2 * i + 1] as Buffer | null,
  }));
}

function packText(value: unknown, head: number): Buffer {
  const marked = toInstanceText(value);
  const text = marked ?? JSON.stringify(value);
  const length = Buffer.byteLength(text);
  if (length > MAX_TEXT_BYTES) throwTextTooLong();
  const bytes = Buffer.allocUnsafe(head + 1 + length);
  bytes[head] = marked === undefined ? JSON_TEXT : MARKED_TEXT;
  bytes.write(text, head + 1);
  return bytes;
}

/** Refuses a value with a text that is too long to be decoded. @throws ServiceError `value.unstorable` */
function checkTexts(value: unknown): void {
  if (typeof value === "string") {
    if (isTooLong(value)) throwTextTooLong();
  } else if (value instanceof NonJsonValue) checkTexts(NonJsonValue.of(value).data);
  else if (typeof value === "object" && value !== null && !ArrayBuffer.isView(value))
    Object.values(value).forEach(checkTexts);
}

/** True if the value has a string or a name that msgpackr would alter. */
function isAltered(value: unknown): boolean {
  if (typeof value === "string") return LONE_SURROGATE.test(value);
  if (typeof value !== "object" || value === null) return false;
  // msgpackr does not alter byte arrays.
  if (ArrayBuffer.isView(value)) return false;
  if (Array.isArray(value)) return value.some(isAltered);
  if (value instanceof NonJsonValue) return isAltered(NonJsonValue.of(value).data);
  for (const [name, member] of Object.entries(value)) {
    if (name === "__proto__" || LONE_SURROGATE.test(name) || isAltered(member)) return true;
  }
  return false;
}

/** Decodes the value that {@link packValue} wrote, from `start` on. @throws Error if the bytes are not such a value */
export function unpackValue(bytes: Buffer, start: number): unknown {
  switch (bytes[start]) {
    case PLAIN:
      return plainUnpackr.unpack(bytes, { start: start + 1, end: bytes.length });
    case MSGPACK:
      return packr.unpack(bytes, { start: start + 1, end: bytes.length });
    case JSON_TEXT:
      return JSON.parse(bytes.toString("utf8", start + 1));
    case MARKED_TEXT:
      return fromInstanceText(bytes.toString("utf8", start + 1));
    default:
      throw new TypeError("unknown kind of payload");
  }
}
