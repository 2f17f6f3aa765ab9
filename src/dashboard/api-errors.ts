export class ApiKeyRequired extends Error {}

/** What is wrong with one field of a request. `at`: the path of the field. */
export interface RequestFieldError {
  readonly at: string;
  readonly message: string;
}

/** An error response of the server, with its reason. */
export class RequestError extends Error {
  readonly status: number;
  /** The stable error code of the API; undefined if the response came from something else, such as a proxy. */
  readonly code: string | undefined;
  readonly fields: readonly RequestFieldError[];

  constructor(status: number, message: string, code?: string, fields: readonly RequestFieldError[] = []) {
    super(message);
    this.status = status;
    this.code = code;
    this.fields = fields;
  }
}

/** Returns whether the error means that a record does not exist: status 404, or 422 for an id that is not a UUID. */
export const isNotFound = (cause: unknown): boolean =>
  cause instanceof RequestError && (cause.status === 404 || cause.status === 422);

/** Returns whether the server's access rules forbid the request (403). */
export const isRefused = (cause: unknown): boolean => cause instanceof RequestError && cause.status === 403;

/**
 * Returns whether the same request may succeed later: the server could not be reached, is busy (429), or failed (5xx).
 */
export const isTransient = (cause: unknown): boolean =>
  !(cause instanceof ApiKeyRequired) &&
  !(cause instanceof RequestError && cause.status < 500 && cause.status !== 429);
