/** Matches each string and each number of a JSON text. */
const STRING_OR_NUMBER = /"(?:[^"\\]+|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/**
 * Returns a text about the first number of a valid JSON text that JavaScript cannot represent, such as an integer
 * beyond 2^53; null if there is none. The rounding of a number with a decimal point or an exponent is not reported.
 */
export function findInexactNumber(json: string): string | null {
  for (const [text] of json.matchAll(STRING_OR_NUMBER)) {
    const fault = text.startsWith('"') ? null : inexactNumberFault(text);
    if (fault !== null) return fault;
  }
  return null;
}

/**
 * Returns a text that says how JavaScript would change a number; null if the number stays the same, or if only a
 * decimal fraction is rounded.
 */
export function inexactNumberFault(text: string): string | null {
  const value = Number(text);
  if (!Number.isFinite(value)) return `${text} is too large for a number`;
  if (!/^-?\d+$/.test(text) || BigInt(text) === BigInt(value)) return null;
  return `${text} cannot be represented exactly: it would be sent as ${BigInt(value)}`;
}
