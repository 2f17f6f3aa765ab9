import { hash } from "node:crypto";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** The UUID in its canonical lower case, or undefined when `text` is none. */
export function parseUuid(text: unknown): string | undefined {
  if (typeof text !== "string" || text.length !== 36) return undefined;
  const lower = text.toLowerCase();
  return UUID.test(lower) ? lower : undefined;
}

/**
 * The id that belongs to this one, and the other way round: they differ in the last bit. So a run that was given no thread
 * and the thread that was made for it are found by one another.
 */
export function twin(id: string): string {
  return id.slice(0, -1) + (Number.parseInt(id.slice(-1), 16) ^ 1).toString(16);
}

const HEX: readonly string[] = Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, "0"));

/** A byte, 16 and 32 bits as hex: numbers are turned into other bases by V8's runtime, ten times slower. */
const hex8 = (n: number): string => HEX[n & 255] as string;
const hex16 = (n: number): string => hex8(n >>> 8) + hex8(n);
const hex32Bits = (n: number): string => hex16(n >>> 16) + hex16(n);

function hexOf(bytes: Uint8Array, from: number, to: number): string {
  let text = "";
  for (let i = from; i < to; i++) text += HEX[bytes[i] as number];
  return text;
}

/** A UUID version 7 (RFC 9562 §5.7): 48 bits of epoch milliseconds, then randomness. Sorts by time as text. */
export function uuid7(now: number, random: Uint8Array): string {
  const version = hex8(((random[6] as number) & 0x0f) | 0x70);
  const variant = hex8(((random[8] as number) & 0x3f) | 0x80);
  return (
    `${hex32Bits(Math.floor(now / 0x1_0000))}-${hex16(now)}-${version}${hexOf(random, 7, 8)}-` +
    `${variant}${hexOf(random, 9, 10)}-${hexOf(random, 10, 16)}`
  );
}

/** Milliseconds from 1582-10-15, the start of the Gregorian calendar (RFC 9562 §5.1), to the Unix epoch. */
const GREGORIAN = 12_219_292_800_000;
/** Ticks of 100 ns in a millisecond. */
const TICKS = 10_000;
/** A count of ticks has 60 bits, more than a number holds: it is kept in two, the lower one of 24. */
const LOW = 0x100_0000;

/**
 * A UUID version 6 (RFC 9562 §5.6) for a checkpoint: time first, then the step, so that ids sort as text in the order
 * in which one writer made them. `tick` is a count within one millisecond (0 to 9,999) that keeps two ids apart.
 */
export function uuid6(now: number, tick: number, step: number, random: Uint8Array): string {
  const ms = now + GREGORIAN;
  const below = (ms % LOW) * TICKS + tick;
  const above = Math.floor(ms / LOW) * TICKS + Math.floor(below / LOW);
  // 60 bits, written as 32, 16 and 12.
  const high = Math.floor(above / 16);
  const low = (above % 16) * LOW + (below % LOW);
  const clock = (step & 0x3fff) | 0x8000;
  const node = hexOf(random, 0, 6);
  return `${hex32Bits(high)}-${hex16(low >>> 12)}-${hex16((low & 0xfff) | 0x6000)}-${hex16(clock)}-${node}`;
}

/** The time and tick within a UUID version 6 that {@link uuid6} made. */
export function uuid6Time(id: string): { readonly ms: number; readonly tick: number } {
  const hex = id.slice(0, 8) + id.slice(9, 13) + id.slice(15, 18);
  const above = Number.parseInt(hex.slice(0, 9), 16);
  const rest = (above % TICKS) * LOW + Number.parseInt(hex.slice(9), 16);
  const ms = Math.floor(above / TICKS) * LOW + Math.floor(rest / TICKS) - GREGORIAN;
  return { ms, tick: rest % TICKS };
}

/** A UUID version 5 (RFC 9562 §5.5): the SHA-1 of `name` within the namespace UUID. The same input, the same id. */
export function uuid5(name: string, namespace: string): string {
  const bytes = Buffer.allocUnsafe(16 + Buffer.byteLength(name));
  bytes.write(namespace.replaceAll("-", ""), "hex");
  bytes.write(name, 16);
  // The one-shot function: half the cost of a hash object, and every task has such an id.
  const hex = hash("sha1", bytes, "hex");
  const variant = HEX[(Number.parseInt(hex.slice(16, 18), 16) & 0x3f) | 0x80] as string;
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-${variant}${hex.slice(18, 20)}-${hex.slice(20, 32)}`;
}

/** 32 lower-case hex digits derived from `text`: the form of an interrupt's id. */
export function hex32(text: string): string {
  return hash("md5", text, "hex");
}

/** A text's SHA-256, in hex: nobody can make two texts with the same. */
export function digest(text: string): string {
  return hash("sha256", text, "hex");
}

/** The namespace in which the platform derives a default assistant's id from its graph's name. */
const ASSISTANTS = "6ba7b821-9dad-11d1-80b4-00c04fd430c8";

export function defaultAssistantId(graph: string): string {
  return uuid5(graph, ASSISTANTS);
}
