/** The server's answer differs from what a check expects. */
export class MismatchError extends Error {
  override readonly name = "MismatchError";
  /** A value or a pattern. Its JSON form describes the conditions of a pattern in words. */
  readonly expected: unknown;
  readonly actual: unknown;

  constructor(message: string, expected: unknown, actual: unknown) {
    super(message);
    this.expected = expected;
    this.actual = actual;
  }
}
