import { hash } from "node:crypto";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** The UUID in its canonical lower case, or undefined when `text` is not a UUID. */
export function parseUuid(text: unknown): string | undefined {
  if (typeof text !== "string" || text.length !== 36) return undefined;
  const lower = text.toLowerCase();
  return UUID.test(lower) ? lower : undefined;
}

/**
 * The id that differs from `id` in the last bit, so `pairedId(pairedId(id))` is `id`. A stateless run and the temporary thread made for it
 * have such a pair of ids: each id leads to the other.
 */
export function pairedId(id: string): string {
  return id.slice(0, -1) + (Number.parseInt(id.slice(-1), 16) ^ 1).toString(16);
}

/** For each byte, the character codes of its first hex digit (`UPPER`) and of its second hex digit (`LOWER`). */
const UPPER = new Uint8Array(256);
const LOWER = new Uint8Array(256);
for (let byte = 0; byte < 256; byte++) {
  const text = byte.toString(16).padStart(2, "0");
  UPPER[byte] = text.charCodeAt(0);
  LOWER[byte] = text.charCodeAt(1);
}

/**
 * The buffer in which the text of an id is written, to be read as one flat string. A concatenated string is a tree of its parts
 * in V8: it is ten times as large, and is copied when it is first used as a key. All code here is synchronous, so one buffer is
 * enough.
 */
const spelled = Buffer.alloc(36, "-");

function put(at: number, byte: number): void {
  spelled[at] = UPPER[byte & 255] as number;
  spelled[at + 1] = LOWER[byte & 255] as number;
}

function put16(at: number, n: number): void {
  put(at, n >>> 8);
  put(at + 2, n);
}

function put32(at: number, n: number): void {
  put16(at, n >>> 16);
  put16(at + 4, n);
}

const text = (): string => spelled.toString("latin1");

/** Writes six bytes: the last group of a UUID. */
function putNode(bytes: Uint8Array, from: number): void {
  for (let i = 0; i < 6; i++) put(24 + 2 * i, bytes[from + i] as number);
}

/**
 * A UUID version 7 (RFC 9562 §5.7): 48 bits of epoch milliseconds, a counter of 12 bits, then eight random bytes. As text it
 * sorts by time, then by counter.
 */
export function uuid7(ms: number, counter: number, random: Uint8Array): string {
  put32(0, Math.floor(ms / 0x1_0000));
  put16(9, ms);
  put16(14, (counter & 0xfff) | 0x7000);
  put(19, ((random[0] as number) & 0x3f) | 0x80);
  put(21, random[1] as number);
  putNode(random, 2);
  return text();
}

/**
 * Makes UUIDs of version 7, each above all earlier ones (RFC 9562 §6.2, methods 1 and 3). If the clock has not advanced since the last id,
 * the counter is incremented; when it overflows, the time in the id is advanced by one millisecond.
 *
 * With `isWanted`, the random part is changed until `isWanted` returns true for the id. `isWanted` MUST accept a share of all ids;
 * otherwise the search does not end.
 */
export function createMonotonicIds(
  now: () => number,
  bytes: (count: number) => Uint8Array,
): (isWanted?: (id: string) => boolean) => string {
  let ms = 0;
  let counter = 0;
  return (isWanted) => {
    const at = now();
    const random = bytes(10);
    if (at > ms || counter === 0xfff) {
      ms = Math.max(at, ms + 1);
      // Starts at random in the lower half, so that there is room to increment.
      counter = (((random[0] as number) << 8) | (random[1] as number)) & 0x7ff;
    } else counter++;
    const tail = random.subarray(2);
    for (let id = uuid7(ms, counter, tail); ; id = uuid7(ms, counter, tail)) {
      if (isWanted === undefined || isWanted(id)) return id;
      // Changes the bytes before the last one: `isWanted` may ignore the last digit, as the choice of a shard does.
      tail[6] = ((tail[6] as number) + 1) & 255;
      if (tail[6] === 0) tail[5] = ((tail[5] as number) + 1) & 255;
    }
  };
}

/** Milliseconds from 1582-10-15, the start of the Gregorian calendar (RFC 9562 §5.1), to the Unix epoch. */
const GREGORIAN = 12_219_292_800_000;
/** Ticks of 100 ns in a millisecond. */
const TICKS_PER_MS = 10_000;
/**
 * 2^24. A count of ticks has 60 bits, more than a JavaScript number can represent. So the count is split into two
 * numbers: its upper 36 bits and its lower 24 bits.
 */
const LOW = 0x100_0000;

/**
 * A UUID version 6 (RFC 9562 §5.6) for a checkpoint: time first, then the step, so that the ids of one writer sort as text in
 * the order in which they were made. `tick` is a count within a millisecond (0 to 9,999) that keeps ids distinct.
 */
export function uuid6(now: number, tick: number, step: number, random: Uint8Array): string {
  const ms = now + GREGORIAN;
  const below = (ms % LOW) * TICKS_PER_MS + tick;
  const above = Math.floor(ms / LOW) * TICKS_PER_MS + Math.floor(below / LOW);
  // The 60 bits are written as groups of 32, 16 and 12 bits.
  const high = Math.floor(above / 16);
  const low = (above % 16) * LOW + (below % LOW);
  put32(0, high);
  put16(9, low >>> 12);
  put16(14, (low & 0xfff) | 0x6000);
  put16(19, (step & 0x3fff) | 0x8000);
  putNode(random, 0);
  return text();
}

/** The time and tick in a UUID version 6 that {@link uuid6} made. */
export function uuid6Time(id: string): { readonly ms: number; readonly tick: number } {
  const hex = id.slice(0, 8) + id.slice(9, 13) + id.slice(15, 18);
  const above = Number.parseInt(hex.slice(0, 9), 16);
  const rest = (above % TICKS_PER_MS) * LOW + Number.parseInt(hex.slice(9), 16);
  const ms = Math.floor(above / TICKS_PER_MS) * LOW + Math.floor(rest / TICKS_PER_MS) - GREGORIAN;
  return { ms, tick: rest % TICKS_PER_MS };
}

/** Offsets, in characters, of the bytes of a UUID in its text. */
const BYTE_OFFSETS: readonly number[] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

/** The value of a hex digit, given its character code. */
const digit = (character: number): number => (character < 58 ? character - 48 : (character | 32) - 87);

/** The most bytes of a hash input that uses the shared buffer. Most names are short. */
const MAX_SHARED_BYTES = 256;
const shortBuffer = Buffer.alloc(MAX_SHARED_BYTES);
const hashed: readonly Buffer[] = Array.from({ length: MAX_SHARED_BYTES + 1 }, (_, length) =>
  shortBuffer.subarray(0, length),
);

/** A UUID of version 5 (RFC 9562 §5.5): the SHA-1 of the UUID `namespace` and `name`. The same input gives the same id. */
export function uuid5(name: string, namespace: string): string {
  const length = 16 + Buffer.byteLength(name);
  const bytes = hashed[length] ?? Buffer.allocUnsafe(length);
  for (let i = 0; i < 16; i++) {
    const at = BYTE_OFFSETS[i] as number;
    bytes[i] = (digit(namespace.charCodeAt(at)) << 4) | digit(namespace.charCodeAt(at + 1));
  }
  bytes.write(name, 16);
  // Uses the function `hash`, which takes half the time of a hash object; each task needs an id.
  const hex = hash("sha1", bytes, "hex");
  for (let i = 0; i < 16; i++) {
    const at = BYTE_OFFSETS[i] as number;
    spelled[at] = hex.charCodeAt(2 * i);
    spelled[at + 1] = hex.charCodeAt(2 * i + 1);
  }
  spelled[14] = 0x35;
  const variant = (digit(hex.charCodeAt(16)) << 4) | digit(hex.charCodeAt(17));
  put(19, (variant & 0x3f) | 0x80);
  return text();
}

/** The MD5 of a text as 32 lower-case hex digits: the form of an interrupt's id. */
export function md5Hex(text: string): string {
  return hash("md5", text, "hex");
}

/** The SHA-256 of a text, in hex. It is resistant to collisions. */
export function sha256Hex(text: string): string {
  return hash("sha256", text, "hex");
}

/** The UUID namespace in which LangGraph Platform derives the id of a graph's default assistant. */
const ASSISTANTS = "6ba7b821-9dad-11d1-80b4-00c04fd430c8";

export function defaultAssistantId(graph: string): string {
  return uuid5(graph, ASSISTANTS);
}
