import { addExtension, Packr, RESERVE_START_SPACE, Unpackr } from "msgpackr";
import { Kept, KeptValue, type KeptValueOf } from "../model/class-instance.ts";
import { fromMarkedText, toMarkedText } from "./class-instance-json.ts";
import { PlainPacker } from "./fast-msgpack.ts";
import { SHAPES } from "./stored-shapes.ts";
import { readUuid, UUID_TYPE } from "./uuid.ts";

// msgpackr knows extensions for the whole process alone. The types are ours from here on: 0x48 to 0x4a.
addExtension({
  Class: Kept,
  type: 0x48,
  write: (kept: Kept) => [Kept.kindOf(kept), { ...kept }],
  read: ([kind, members]: [string, object]) => new Kept(kind, members),
});
addExtension({
  Class: KeptValue,
  type: 0x49,
  write: (kept: KeptValue) => KeptValue.of(kept),
  read: (of: KeptValueOf) => new KeptValue(of),
});
addExtension({ type: UUID_TYPE, unpack: readUuid });

/** One shape of bytes for one value: records (msgpackr's own extension) would need their definitions beside them. */
const packr = new Packr({ useRecords: false });
/** For what is JSON data through and through: nearly all. */
const packer = new PlainPacker();
/** Reads what it has written. */
const unpackr = new Unpackr({ structures: SHAPES.map((names) => [...names]), mapsAsObjects: true });

/** The kinds of payload: the first byte says which one follows. */
const MSGPACK = 1;
const JSON_TEXT = 2;
/** JSON text with what it cannot say beside it. */
const MARKED_TEXT = 3;
/** MessagePack with shapes and UUIDs, see `plain.ts`. */
const SHORT = 4;

/** UTF-8 of U+FFFD: what an encoder writes in the place of half a surrogate pair; and its first byte, sooner looked for. */
const REPLACED = Buffer.from("\uFFFD");
const REPLACED_FIRST = 0xef;
/** First byte of a lone surrogate that was encoded as it is; also of Hangul, so it proves nothing. */
const SURROGATE = 0xed;
const PROTO = Buffer.from("__proto__");
/** Half of a surrogate pair: in a Unicode pattern whole pairs are no surrogates. */
const HALF = /\p{Surrogate}/u;

/**
 * JSON data (and {@link Kept} values in it, as they are) as bytes, with `head` bytes left free in front. What comes back is
 * what `JSON.stringify` and `JSON.parse` would give, exactly: msgpackr alters half surrogate pairs and members named
 * `__proto__`, so a value that holds one is written as JSON text.
 */
export function packValue(value: unknown, head: number): Buffer {
  const plain = packer.pack(value, head + 1);
  if (plain !== undefined) {
    plain[head] = SHORT;
    return plain;
  }
  const bytes = packr.pack(value, RESERVE_START_SPACE | (head + 1));
  // Searching bytes is a hundredth of the cost of looking at each string, and nearly always finds nothing.
  const suspect =
    bytes.indexOf(SURROGATE, head + 1) !== -1 ||
    (bytes.indexOf(REPLACED_FIRST, head + 1) !== -1 && bytes.indexOf(REPLACED, head + 1) !== -1) ||
    bytes.indexOf(PROTO, head + 1) !== -1;
  if (suspect && isAltered(value)) return packText(value, head);
  bytes[head] = MSGPACK;
  return bytes;
}

/** JSON data as a message that any reader of MessagePack takes. */
export function packMessage(value: unknown): Uint8Array {
  return packr.pack(value);
}

function packText(value: unknown, head: number): Buffer {
  const marked = toMarkedText(value);
  const text = marked ?? JSON.stringify(value);
  const bytes = Buffer.allocUnsafe(head + 1 + Buffer.byteLength(text));
  bytes[head] = marked === undefined ? JSON_TEXT : MARKED_TEXT;
  bytes.write(text, head + 1);
  return bytes;
}

/** Does it hold a string or a name that msgpackr would not give back? */
function isAltered(value: unknown): boolean {
  if (typeof value === "string") return HALF.test(value);
  if (typeof value !== "object" || value === null) return false;
  // Bytes are given back as they are.
  if (ArrayBuffer.isView(value)) return false;
  if (Array.isArray(value)) return value.some(isAltered);
  if (value instanceof KeptValue) return isAltered(KeptValue.of(value).data);
  for (const [name, member] of Object.entries(value)) {
    if (name === "__proto__" || HALF.test(name) || isAltered(member)) return true;
  }
  return false;
}

/** The value that {@link packValue} wrote, from `start` on. @throws Error when these bytes are none */
export function unpackValue(bytes: Buffer, start: number): unknown {
  switch (bytes[start]) {
    case SHORT:
      return unpackr.unpack(bytes, { start: start + 1, end: bytes.length });
    case MSGPACK:
      return packr.unpack(bytes, { start: start + 1, end: bytes.length });
    case JSON_TEXT:
      return JSON.parse(bytes.toString("utf8", start + 1));
    case MARKED_TEXT:
      return fromMarkedText(bytes.toString("utf8", start + 1));
    default:
      throw new TypeError("unknown kind of payload");
  }
}
