/** The size of the buffer in bytes. For a larger text, `stringifyPlainJson` returns undefined. */
const BUFFER_BYTES = 64 * 1024;
/** How many bytes at the end of the buffer stay free for parts that are written without a check: a name, a number, a bracket for each level. */
const SPARE_BYTES = 256;
/** From this number of characters on, a string is written by `Buffer.write`; for shorter ones a loop is faster. */
const MIN_LONG_LENGTH = 24;
/** The most levels of nesting. For deeper data, `stringifyPlainJson` returns undefined. */
const MAX_DEPTH = 64;
/** The most member names whose text is cached. */
const MAX_CACHED_NAMES = 512;
/** The value that writers return, instead of the offset of the end, when they cannot write a value. */
const CANNOT_WRITE = -1;

/**
 * `OTHER`: characters that are escaped in JSON text or do not fit into one byte of Latin-1. `WIDE`: characters that do not fit into one
 * byte of Latin-1.
 */
const OTHER = /[^ !#-[\]-\u00ff]/;
const WIDE = /[\u0100-\uffff]/;

/** The buffer to which all texts are written, one at a time. */
class TextBuffer {
  readonly bytes = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  /** True while a text is being written. */
  isTaken = false;
  readonly #names = new Map<string, string>();

  /** The text of a short member name, with quotes and colon; undefined for a name that is long or needs an escape. */
  name(name: string): string | undefined {
    const known = this.#names.get(name);
    if (known !== undefined || name.length >= MIN_LONG_LENGTH || OTHER.test(name)) return known;
    const text = `"${name}":`;
    if (this.#names.size < MAX_CACHED_NAMES) this.#names.set(name, text);
    return text;
  }
}

const textBuffer = new TextBuffer();
const { bytes } = textBuffer;

/**
 * The JSON text of plain data. Undefined for data that are not plain (a non-finite number, a function, an instance of a class, a `toJSON`,
 * a member named `__proto__`), or are too large or too deep. Also undefined for data with characters beyond Latin-1, or with names that are
 * long or need an escape.
 *
 * The result is one flat string, while `JSON.stringify` makes a tree (rope) of pieces, which must be flattened when it is copied. Making,
 * storing and sending an event takes 0.6 us rather than 0.95 us for a small nested object, 0.7 us rather than 1.03 us for a text of 200
 * characters, and the same for an object with one number.
 */
export function stringifyPlainJson(value: unknown): string | undefined {
  // A getter in the value that is being written may call this function, while the buffer is in use.
  if (textBuffer.isTaken) return undefined;
  textBuffer.isTaken = true;
  try {
    const end = put(value, 0, MAX_DEPTH);
    return end === CANNOT_WRITE ? undefined : bytes.toString("latin1", 0, end);
  } finally {
    textBuffer.isTaken = false;
  }
}

/** Writes `value` at offset `at`. Returns the offset of the end of the text, or `CANNOT_WRITE`. */
function put(value: unknown, at: number, depth: number): number {
  if (at > BUFFER_BYTES - SPARE_BYTES) return CANNOT_WRITE;
  switch (typeof value) {
    case "string":
      return putString(value, at);
    case "number":
      return Number.isFinite(value) ? putText(value === 0 ? "0" : `${value}`, at) : CANNOT_WRITE;
    case "boolean":
      return putText(value ? "true" : "false", at);
    case "object":
      if (value === null) return putText("null", at);
      if (depth === 0 || (value as { toJSON?: unknown }).toJSON !== undefined) return CANNOT_WRITE;
      return Array.isArray(value) ? putArray(value, at, depth - 1) : putObject(value, at, depth - 1);
    default:
      return CANNOT_WRITE;
  }
}

function putArray(items: readonly unknown[], from: number, depth: number): number {
  let at = from;
  bytes[at++] = 0x5b;
  for (let i = 0; i < items.length; i++) {
    if (i > 0) bytes[at++] = 0x2c;
    at = put(items[i], at, depth);
    if (at === CANNOT_WRITE) return CANNOT_WRITE;
  }
  bytes[at++] = 0x5d;
  return at;
}

function putObject(value: object, from: number, depth: number): number {
  const proto: unknown = Object.getPrototypeOf(value);
  if (proto !== Object.prototype && proto !== null) return CANNOT_WRITE;
  let at = from;
  bytes[at++] = 0x7b;
  for (const name of Object.keys(value)) {
    const member = (value as { readonly [name: string]: unknown })[name];
    if (name === "__proto__") return CANNOT_WRITE;
    // Leaves out members that are undefined, as `JSON.stringify` does.
    if (member === undefined) continue;
    const text = textBuffer.name(name);
    if (text === undefined || at > BUFFER_BYTES - SPARE_BYTES) return CANNOT_WRITE;
    if (at > from + 1) bytes[at++] = 0x2c;
    at = put(member, putText(text, at), depth);
    if (at === CANNOT_WRITE) return CANNOT_WRITE;
  }
  bytes[at++] = 0x7d;
  return at;
}

function putString(text: string, from: number): number {
  const { length } = text;
  if (length >= MIN_LONG_LENGTH) {
    if (OTHER.test(text)) return putQuoted(text, from);
    if (from + length > BUFFER_BYTES - SPARE_BYTES) return CANNOT_WRITE;
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

/** Writes a string with characters that need an escape. Gives up ({@link CANNOT_WRITE}) at characters above U+00FF. */
function putQuoted(text: string, at: number): number {
  const quoted = JSON.stringify(text);
  if (at + quoted.length > BUFFER_BYTES - SPARE_BYTES || WIDE.test(quoted)) return CANNOT_WRITE;
  return at + bytes.write(quoted, at, "latin1");
}

/** Writes a text of at most {@link SPARE_BYTES} characters, each one byte. */
function putText(text: string, from: number): number {
  for (let i = 0; i < text.length; i++) bytes[from + i] = text.charCodeAt(i);
  return from + text.length;
}
