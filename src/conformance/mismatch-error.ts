/** Thrown if a response of the server differs from what a check expects. */
export class MismatchError extends Error {
  override readonly name = "MismatchError";
  /** The expected value or pattern. In its JSON form, each condition of a pattern is described in words. */
  readonly expected: unknown;
  readonly actual: unknown;

  constructor(message: string, expected: unknown, actual: unknown) {
    super(message);
    this.expected = expected;
    this.actual = actual;
  }
}
