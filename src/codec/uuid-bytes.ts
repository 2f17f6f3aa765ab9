/** The positions of the pairs of hexadecimal digits in the text of a UUID. */
const PAIRS = Uint8Array.of(0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34);
const DASH = 0x2d;
/** The value of a character that is no hexadecimal digit. */
const NONE = 0x80;
/** The values of lower-case hexadecimal digits, by character code; {@link NONE} for other characters. */
const DIGITS = new Uint8Array(0x80).fill(NONE);
const CODES = Buffer.from("0123456789abcdef");
for (const [digit, code] of CODES.entries()) DIGITS[code] = digit;

/** The MessagePack extension type of a UUID. */
export const UUID_TYPE = 0x4a;

/** The number of characters of a UUID as text. */
export const UUID_CHARACTERS = 36;
/** The number of bytes of a UUID in binary form. */
export const UUID_BYTES = 16;

/**
 * The number of UUIDs in the cache. A run writes the same UUIDs again and again. The slot of a UUID is computed from its last two digits.
 */
const CACHE_SIZE = 64;
const cachedTexts: string[] = Array.from({ length: CACHE_SIZE }, () => "");
const cachedBytes = new Uint8Array(CACHE_SIZE * UUID_BYTES);

/** Writes a UUID, a text of 36 characters, as 16 bytes. Returns false if {@link readUuid} would not give back exactly this text. */
export function writeUuid(text: string, bytes: Uint8Array, at: number): boolean {
  const slot = (text.charCodeAt(34) * 7 + text.charCodeAt(35)) & (CACHE_SIZE - 1);
  const from = slot * UUID_BYTES;
  if (cachedTexts[slot] !== text) {
    if (!parse(text, from)) {
      cachedTexts[slot] = "";
      return false;
    }
    cachedTexts[slot] = text;
  }
  for (let i = 0; i < UUID_BYTES; i++) bytes[at + i] = cachedBytes[from + i] as number;
  return true;
}

function parse(text: string, to: number): boolean {
  if (text.charCodeAt(8) !== DASH || text.charCodeAt(13) !== DASH) return false;
  if (text.charCodeAt(18) !== DASH || text.charCodeAt(23) !== DASH) return false;
  let units = 0;
  let digits = 0;
  for (let i = 0; i < UUID_BYTES; i++) {
    const from = PAIRS[i] as number;
    const high = text.charCodeAt(from);
    const low = text.charCodeAt(from + 1);
    const one = DIGITS[high & 0x7f] as number;
    const other = DIGITS[low & 0x7f] as number;
    units |= high | low;
    digits |= one | other;
    cachedBytes[to + i] = (one << 4) | other;
  }
  return units < 0x80 && digits < NONE;
}

const spelled = Buffer.alloc(UUID_CHARACTERS, "-");

/** Converts 16 bytes to the text of a UUID, with lower-case digits. */
export function readUuid(bytes: Uint8Array): string {
  for (let i = 0; i < UUID_BYTES; i++) {
    const byte = bytes[i] as number;
    const at = PAIRS[i] as number;
    spelled[at] = CODES[byte >>> 4] as number;
    spelled[at + 1] = CODES[byte & 15] as number;
  }
  return spelled.toString("latin1");
}
