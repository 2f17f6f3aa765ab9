/** The size of the buffer in bytes. For a larger text, `stringifyPlainJson` returns undefined. */
const SIZE = 64 * 1024;
/** How many bytes at the end of the buffer stay free for parts that are written without a check: a name, a number, a bracket for each level. */
const SPARE = 256;
/** From this number of characters on, a string is written by `Buffer.write`; for shorter ones a loop is faster. */
const LONG = 24;
/** The most levels of nesting. For deeper data, `stringifyPlainJson` returns undefined. */
const DEPTH = 64;
/** The most names whose text is cached. */
const NAMES = 512;
/** The value that writers return instead of an offset when they cannot write a value. */
const NOT = -1;

/** Characters that are escaped in JSON text, or that do not fit into one byte. */
const OTHER = /[^ !#-[\]-\u00ff]/;
const WIDE = /[\u0100-\uffff]/;

/** The buffer to which all texts are written, one at a time. */
class TextBuffer {
  readonly bytes = Buffer.allocUnsafeSlow(SIZE);
  /** True while a text is being written. */
  isTaken = false;
  readonly #names = new Map<string, string>();

  /** The text of a short member name, with quotes and colon; undefined for a name that is long or needs an escape. */
  name(name: string): string | undefined {
    const known = this.#names.get(name);
    if (known !== undefined || name.length >= LONG || OTHER.test(name)) return known;
    const text = `"${name}":`;
    if (this.#names.size < NAMES) this.#names.set(name, text);
    return text;
  }
}

const textBuffer = new TextBuffer();
const { bytes } = textBuffer;

/**
 * The JSON text of plain data. Undefined for data that are not plain (a non-finite number, a function, an instance of a
 * class, a `toJSON`, a member named `__proto__`), or are too large or too deep. Also undefined for data with characters
 * beyond Latin-1, and with names that are long or need an escape.
 *
 * The result is one flat string, while `JSON.stringify` makes a tree (rope) of pieces, which must be flattened when it
 * is copied. Making, storing and sending an event takes 0.6 us rather than 0.95 us for a small nested object, 0.7 us
 * rather than 1.03 us for a text of 200 characters, and the same for an object with one number.
 */
export function stringifyPlainJson(value: unknown): string | undefined {
  // True if a getter in the value has called this function, while the buffer is in use.
  if (textBuffer.isTaken) return undefined;
  textBuffer.isTaken = true;
  try {
    const end = put(value, 0, DEPTH);
    return end === NOT ? undefined : bytes.toString("latin1", 0, end);
  } finally {
    textBuffer.isTaken = false;
  }
}

/** Writes `value` at offset `at`. Returns the offset of its end, or `NOT`. */
function put(value: unknown, at: number, depth: number): number {
  if (at > SIZE - SPARE) return NOT;
  switch (typeof value) {
    case "string":
      return putString(value, at);
    case "number":
      return Number.isFinite(value) ? putText(value === 0 ? "0" : `${value}`, at) : NOT;
    case "boolean":
      return putText(value ? "true" : "false", at);
    case "object":
      if (value === null) return putText("null", at);
      if (depth === 0 || (value as { toJSON?: unknown }).toJSON !== undefined) return NOT;
      return Array.isArray(value) ? putArray(value, at, depth - 1) : putObject(value, at, depth - 1);
    default:
      return NOT;
  }
}

function putArray(items: readonly unknown[], from: number, depth: number): number {
  let at = from;
  bytes[at++] = 0x5b;
  for (let i = 0; i < items.length; i++) {
    if (i > 0) bytes[at++] = 0x2c;
    at = put(items[i], at, depth);
    if (at === NOT) return NOT;
  }
  bytes[at++] = 0x5d;
  return at;
}

function putObject(value: object, from: number, depth: number): number {
  const proto: unknown = Object.getPrototypeOf(value);
  if (proto !== Object.prototype && proto !== null) return NOT;
  let at = from;
  bytes[at++] = 0x7b;
  for (const name of Object.keys(value)) {
    const member = (value as { readonly [name: string]: unknown })[name];
    if (name === "__proto__") return NOT;
    // Members that are undefined are left out.
    if (member === undefined) continue;
    const text = textBuffer.name(name);
    if (text === undefined || at > SIZE - SPARE) return NOT;
    if (at > from + 1) bytes[at++] = 0x2c;
    at = put(member, putText(text, at), depth);
    if (at === NOT) return NOT;
  }
  bytes[at++] = 0x7d;
  return at;
}

function putString(text: string, from: number): number {
  const { length } = text;
  if (length >= LONG) {
    if (OTHER.test(text)) return putQuoted(text, from);
    if (from + length > SIZE - SPARE) return NOT;
    bytes[from] = 0x22;
    const end = from + 1 + bytes.write(text, from + 1, "latin1");
    bytes[end] = 0x22;
    return end + 1;
  }
  let at = from;
  bytes[at++] = 0x22;
  for (let i = 0; i < length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x20 || unit === 0x22 || unit === 0x5c || unit > 0xff) return putQuoted(text, from);
    bytes[at++] = unit;
  }
  bytes[at++] = 0x22;
  return at;
}

/** Writes a string with characters that need an escape. */
function putQuoted(text: string, at: number): number {
  const quoted = JSON.stringify(text);
  if (at + quoted.length > SIZE - SPARE || WIDE.test(quoted)) return NOT;
  return at + bytes.write(quoted, at, "latin1");
}

/** Writes a text of at most {@link SPARE} characters, each one byte. */
function putText(text: string, from: number): number {
  for (let i = 0; i < text.length; i++) bytes[from + i] = text.charCodeAt(i);
  return from + text.length;
}
