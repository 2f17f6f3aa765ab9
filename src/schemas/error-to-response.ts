import { type ErrorCode, type FieldError, ServiceError, invalidField } from "../model/errors.ts";
import type { Headers } from "../ports/transport.ts";

/** The HTTP status of each error code. Statuses are not assigned to error codes anywhere else. */
const STATUS: Readonly<Record<ErrorCode, number>> = {
  "validation.failed": 422,
  "body.encoded": 415,
  "body.malformed": 400,
  "body.too_large": 413,
  "route.not_found": 404,
  "auth.required": 401,
  "auth.forbidden": 403,
  // The default. The project's authentication code may choose another status when it refuses a request.
  "auth.refused": 403,
  "auth.failed": 500,
  "auth.unavailable": 503,
  "thread.not_found": 404,
  "thread.exists": 409,
  "thread.busy": 409,
  "thread.no_graph": 400,
  "run.not_found": 404,
  "run.conflict": 409,
  "cron.not_found": 404,
  "request.reused": 422,
  "request.gone": 409,
  "assistant.not_found": 404,
  "assistant.exists": 409,
  "assistant.version_not_found": 404,
  "graph.not_found": 404,
  "graph.invalid": 422,
  "checkpoint.not_found": 404,
  "checkpoint.outdated": 409,
  "delivery.not_found": 404,
  "store.namespace": 400,
  "store.embedding": 502,
  "store.item_not_found": 404,
  "store.scan_limit": 400,
  "resume.ambiguous": 422,
  "resume.conflict": 409,
  "resume.invalid": 422,
  "state.invalid": 422,
  "state.concurrent_update": 422,
  "value.unstorable": 422,
  "journal.fenced": 503,
  "journal.conflict": 503,
  "journal.damaged": 500,
  "log.fenced": 503,
  "log.trimmed": 503,
  "storage.locked": 503,
  "storage.version": 500,
  "storage.unavailable": 503,
  "server.draining": 503,
  "server.busy": 429,
  "server.address": 500,
  "config.invalid": 500,
  unsupported: 422,
};

export const JSON_HEADERS: Headers = { "content-type": "application/json" };
/** Headers of a response with the status 401. */
const KEY_HEADERS: Headers = { ...JSON_HEADERS, "www-authenticate": "Bearer" };
/** Headers of a response to a temporary failure. Clients that know `retry-after` wait one second before they retry. */
const RETRY_HEADERS: Headers = { ...JSON_HEADERS, "retry-after": "1" };

/** A longer error message is cut, because a message may contain parts of the request. */
const MAX_TEXT_CHARACTERS = 2000;
/** The maximum length of a field's name in an error, in characters. The name comes from the request. */
const MAX_PATH_CHARACTERS = 300;

export interface FailureResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

/** What a client may see of an error. */
export interface FailureDetails {
  readonly status: number;
  readonly body: {
    readonly detail: string;
    readonly code?: ErrorCode;
    readonly errors?: readonly FieldError[];
  };
}

/** What a client may see of an error: never the stack, and the message only if it is a {@link ServiceError}. */
export function failureDetailsOf(cause: unknown): FailureDetails {
  if (!(cause instanceof ServiceError)) return { status: 500, body: { detail: "Internal server error" } };
  const { code, message, fields, response } = cause;
  const errors = fields.length > 0 ? { errors: fields.map(bounded) } : {};
  return {
    status: response?.status ?? STATUS[code],
    body: { detail: cut(message, MAX_TEXT_CHARACTERS), code, ...errors },
  };
}

export function failureResponseOf(cause: unknown): FailureResponse {
  const { status, body } = failureDetailsOf(cause);
  const headers =
    status === 503 || status === 429 ? RETRY_HEADERS : status === 401 ? KEY_HEADERS : JSON_HEADERS;
  const own = cause instanceof ServiceError ? cause.response?.headers : undefined;
  return {
    status,
    // `own`: headers that the project's authentication code has chosen. They must not replace the content type.
    headers: own === undefined ? headers : { ...headers, ...own, ...JSON_HEADERS },
    body: JSON.stringify(body),
  };
}

const cut = (text: string, length: number): string =>
  text.length <= length ? text : `${text.slice(0, length)}...`;

const bounded = ({ at, message }: FieldError): FieldError => ({
  at: cut(at, MAX_PATH_CHARACTERS),
  message: cut(message, MAX_TEXT_CHARACTERS),
});

/** The error for invalid fields. Its message names the first of `fields`. */
export function invalidFieldsError(fields: readonly FieldError[]): ServiceError {
  const [first] = fields;
  const message = first === undefined ? "The request is not valid" : `${first.at} ${first.message}`;
  return new ServiceError("validation.failed", message, { fields });
}

/** The error for an invalid id in a path or a query. Its text is the same as for an invalid id in a body. */
export const invalidUuid = (at: string): ServiceError => invalidField(at, "must be a UUID");
