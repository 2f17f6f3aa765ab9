import { type ErrorCode, type RefusalResponse, ServiceError } from "../model/errors.ts";
import { isObject } from "../model/json.ts";

/** The largest number of response headers that a refusal by the project's code may set. */
const MAX_HEADERS = 32;
const HEADER_NAME = /^[a-z0-9-]{1,100}$/;
const HEADER_VALUE = /^[\x20-\x7e]{0,1000}$/;
/** Headers that describe the connection or the body. A refusal by the project's code cannot set them. */
const FRAMING: ReadonlySet<string> = new Set([
  "connection",
  "content-encoding",
  "content-length",
  "content-type",
  "keep-alive",
  "transfer-encoding",
  "upgrade",
]);

const CODES: { readonly [status: number]: ErrorCode } = { 401: "auth.required", 403: "auth.forbidden" };

/**
 * Converts an error that the project's code has thrown to a `ServiceError`. An `HTTPException` of `@langchain/langgraph-sdk/auth`,
 * recognised by its shape, is a refusal: the response gets its status, message and headers. Any other error is a failure: its message is
 * only logged. `what` names the code that was called.
 */
export function authErrorOf(thrown: unknown, what: string): ServiceError {
  if (thrown instanceof ServiceError) return thrown;
  const response = refusalOf(thrown);
  if (response === undefined) return authFailure(what, thrown);
  const { message } = thrown as { readonly message?: unknown };
  const text = typeof message === "string" && message !== "" ? message : "Not authorized";
  return new ServiceError(CODES[response.status] ?? "auth.refused", text, { cause: thrown, response });
}

export function authFailure(what: string, cause: unknown): ServiceError {
  return new ServiceError("auth.failed", `The project's ${what} failed; the log has the cause`, { cause });
}

export const notAuthorized = (): ServiceError => new ServiceError("auth.forbidden", "Not authorized");

function refusalOf(thrown: unknown): RefusalResponse | undefined {
  if (typeof thrown !== "object" || thrown === null || !("status" in thrown) || !("headers" in thrown))
    return undefined;
  const { status, headers } = thrown;
  if (!Number.isInteger(status) || (status as number) < 400 || (status as number) > 599) return undefined;
  return { status: status as number, headers: headersOf(headers) };
}

/**
 * Reads the headers of a refusal: an object, `Headers` or a list of pairs. Headers that HTTP cannot send or that a refusal cannot set are
 * left out.
 */
function headersOf(given: unknown): RefusalResponse["headers"] {
  const entries: readonly (readonly [unknown, unknown])[] =
    given instanceof Headers || Array.isArray(given)
      ? [...(given as Iterable<readonly [unknown, unknown]>)]
      : isObject(given)
        ? Object.entries(given)
        : [];
  const headers: Record<string, string> = {};
  for (const entry of entries.slice(0, MAX_HEADERS)) {
    const [name, value] = Array.isArray(entry) ? (entry as readonly unknown[]) : [];
    const lower = String(name).toLowerCase();
    if (typeof value !== "string" || !HEADER_VALUE.test(value)) continue;
    if (HEADER_NAME.test(lower) && !FRAMING.has(lower)) headers[lower] = value;
  }
  return headers;
}
