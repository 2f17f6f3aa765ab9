export class ApiKeyRequired extends Error {}

/** An error response of the server, with its reason. */
export class RequestError extends Error {
  readonly status: number;
  /** The stable code of the error; undefined: something else than the server answered, such as a proxy. */
  readonly code: string | undefined;

  constructor(status: number, message: string, code?: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Returns whether the error means that a record does not exist: 404, or 422 for an id that is not a UUID. */
export const isNotFound = (cause: unknown): boolean =>
  cause instanceof RequestError && (cause.status === 404 || cause.status === 422);

/** Returns whether the rules of the server do not allow the request. */
export const isRefused = (cause: unknown): boolean => cause instanceof RequestError && cause.status === 403;

/** Returns whether the same request may succeed later: the server was not reached, is busy, or failed. */
export const isTransient = (cause: unknown): boolean =>
  !(cause instanceof ApiKeyRequired) &&
  !(cause instanceof RequestError && cause.status < 500 && cause.status !== 429);
