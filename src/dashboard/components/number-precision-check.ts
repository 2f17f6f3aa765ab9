/** The strings and the numbers of a JSON text. */
const STRING_OR_NUMBER = /"(?:[^"\\]+|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/**
 * Says which number of a valid JSON text JavaScript would change, such as an integer beyond 2^53; null: none.
 * Rounding of a number with a decimal point or an exponent is not reported.
 */
export function findInexactNumber(json: string): string | null {
  for (const [text] of json.matchAll(STRING_OR_NUMBER)) {
    const fault = text.startsWith('"') ? null : inexactNumberFault(text);
    if (fault !== null) return fault;
  }
  return null;
}

/** Says how JavaScript would change a number; null if it would not, or would only round a fraction. */
export function inexactNumberFault(text: string): string | null {
  const value = Number(text);
  if (!Number.isFinite(value)) return `${text} is too large for a number`;
  if (!/^-?\d+$/.test(text) || BigInt(text) === BigInt(value)) return null;
  return `${text} cannot be represented exactly: it would be sent as ${BigInt(value)}`;
}
