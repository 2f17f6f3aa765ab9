export class ApiKeyRequired extends Error {}

/** An error in one field of a request. */
export interface RequestFieldError {
  /** The path of the field, such as `metadata.tags[0]`. */
  readonly at: string;
  readonly message: string;
}

/** A response with an error status. */
export class RequestError extends Error {
  readonly status: number;
  /**
   * The error code of the API, such as `checkpoint.outdated`; undefined if something else has responded, such as a
   * proxy.
   */
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
export const isForbidden = (cause: unknown): boolean => cause instanceof RequestError && cause.status === 403;

/**
 * Returns whether the same request may succeed later. False only if a key is required, or for a 4xx status other than
 * 429 (busy).
 */
export const isTransient = (cause: unknown): boolean =>
  !(cause instanceof ApiKeyRequired) &&
  !(cause instanceof RequestError && cause.status < 500 && cause.status !== 429);
