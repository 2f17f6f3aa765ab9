const DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz";
/** The texts of all base-36 numbers with one or two digits. V8's own conversion to another base is several times slower. */
const ONE_OR_TWO: readonly string[] = Array.from({ length: 36 * 36 }, (_, n) => n.toString(36));
const TWO: readonly string[] = ONE_OR_TWO.map((digits) => digits.padStart(2, "0"));

const MAX_NUMBER = 2 ** 53;

/**
 * Encodes a whole number from 0 to 2^53 so that the texts sort in the order of the numbers: first the count of base-36 digits (itself one
 * such digit), then the digits.
 * @throws RangeError for any other number
 */
export function encodeOrdinal(n: number): string {
  if (!(n >= 0 && n <= MAX_NUMBER && Number.isInteger(n)))
    throw new RangeError(`${n} is no whole number from 0 to 2^53`);
  let digits = "";
  let left = n;
  while (left >= TWO.length) {
    const next = Math.floor(left / TWO.length);
    digits = (TWO[left - next * TWO.length] as string) + digits;
    left = next;
  }
  digits = (ONE_OR_TWO[left] as string) + digits;
  return (DIGITS[digits.length] as string) + digits;
}

export function parseOrdinal(text: string): number {
  return Number.parseInt(text.slice(1), 36);
}
