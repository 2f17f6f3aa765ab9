/**
 * Stable codes of all errors that a caller may get. Programs use the code; the message is for people.
 * Only `schemas/error-to-response.ts` maps codes to HTTP statuses.
 */
export type ErrorCode =
  | "validation.failed"
  | "body.encoded"
  | "body.malformed"
  | "body.too_large"
  | "route.not_found"
  | "auth.required"
  | "auth.forbidden"
  | "auth.refused"
  | "auth.failed"
  | "auth.unavailable"
  | "thread.not_found"
  | "thread.exists"
  | "thread.busy"
  | "thread.no_graph"
  | "run.not_found"
  | "run.conflict"
  | "cron.not_found"
  | "request.reused"
  | "request.gone"
  | "assistant.not_found"
  | "assistant.exists"
  | "assistant.version_not_found"
  | "graph.not_found"
  | "graph.invalid"
  | "checkpoint.not_found"
  | "checkpoint.outdated"
  | "delivery.not_found"
  | "store.namespace"
  | "store.embedding"
  | "store.item_not_found"
  | "store.scan_limit"
  | "resume.ambiguous"
  | "resume.conflict"
  | "resume.invalid"
  | "state.invalid"
  | "state.concurrent_update"
  | "value.unstorable"
  | "journal.fenced"
  | "journal.conflict"
  | "journal.damaged"
  | "log.fenced"
  | "log.trimmed"
  | "storage.locked"
  | "storage.version"
  | "storage.unavailable"
  | "server.draining"
  | "server.busy"
  | "server.address"
  | "config.invalid"
  | "unsupported";

/** A field that failed validation. */
export interface FieldError {
  /** The path of the field in the body, such as `input.messages[0]`. */
  readonly at: string;
  /** What is wrong. */
  readonly message: string;
}

/** The status and headers that the project's own code has chosen for a request that it refuses. */
export interface RefusalResponse {
  /** The HTTP status: 400 to 599. */
  readonly status: number;
  readonly headers: { readonly [name: string]: string };
}

interface ServiceErrorOptions extends ErrorOptions {
  readonly fields?: readonly FieldError[];
  readonly response?: RefusalResponse;
}

export class ServiceError extends Error {
  override readonly name = "ServiceError";
  readonly code: ErrorCode;
  readonly fields: readonly FieldError[];
  /** The HTTP status and headers of the response, if they are not those of the code. */
  readonly response: RefusalResponse | undefined;

  constructor(code: ErrorCode, message: string, options?: ServiceErrorOptions) {
    super(message, options);
    this.code = code;
    this.fields = options?.fields ?? [];
    this.response = options?.response;
  }
}

/** Collects the errors of several checks, to report them together. */
export class ErrorCollector {
  readonly #errors: ServiceError[] = [];

  /** Adds an error. @throws `error` itself if it is not a `ServiceError`, because any other error is a bug */
  add(error: unknown): void {
    if (!(error instanceof ServiceError)) throw error;
    this.#errors.push(error);
  }

  /**
   * Throws the collected errors as one; does nothing if there are none.
   * @throws ServiceError the only error; if there are several, an error with a line for each
   */
  throw(): void {
    const [first, ...others] = this.#errors;
    if (first === undefined) return;
    if (others.length === 0) throw first;
    const message = this.#errors.map((error) => error.message).join("\n");
    throw new ServiceError(first.code, message, { cause: first.cause });
  }
}

/**
 * Calls `read` for each of the values, and returns the results by name; results that are undefined are left out.
 * @throws ServiceError with a line for each value that `read` refuses
 */
export function mapMembersOrThrow<V, T>(
  values: { readonly [name: string]: V },
  read: (value: V, name: string) => T | undefined,
): { readonly [name: string]: T } {
  const errors = new ErrorCollector();
  const results: (readonly [string, T])[] = [];
  for (const [name, value] of Object.entries(values)) {
    try {
      const result = read(value, name);
      if (result !== undefined) results.push([name, result]);
    } catch (error) {
      errors.add(error);
    }
  }
  errors.throw();
  return Object.fromEntries(results);
}

type Results<R extends { readonly [name: string]: () => unknown }> = {
  readonly [K in keyof R as undefined extends ReturnType<R[K]> ? never : K]: ReturnType<R[K]>;
} & {
  readonly [K in keyof R as undefined extends ReturnType<R[K]> ? K : never]?: Exclude<
    ReturnType<R[K]>,
    undefined
  >;
};

/**
 * Calls each of the parsers, and returns the results by name; results that are undefined are left out.
 * @throws ServiceError as {@link mapMembersOrThrow} does
 */
export const parseFields = <R extends { readonly [name: string]: () => unknown }>(parsers: R): Results<R> =>
  mapMembersOrThrow(parsers, (parse) => parse()) as Results<R>;

/** An error about one field. `at`: the field's path. */
export const fieldErrorOf = (code: ErrorCode, at: string, message: string, cause?: unknown): ServiceError =>
  new ServiceError(code, `${at} ${message}`, { cause, fields: [{ at, message }] });

/** The error for an invalid field of a request. */
export const invalidField = (at: string, message: string, cause?: unknown): ServiceError =>
  fieldErrorOf("validation.failed", at, message, cause);

/**
 * An error's message with the messages of its causes, five messages at most, for the log. Responses to clients contain
 * only the error's own message.
 */
export function withCauses(error: unknown): string {
  const messages: string[] = [];
  for (
    let one = error;
    one !== undefined && messages.length < 5;
    one = (one as { cause?: unknown } | null)?.cause
  ) {
    const message = one instanceof Error ? one.message : String(one);
    if (!messages.some((known) => known.includes(message))) messages.push(message);
  }
  return messages.join("; caused by: ");
}

export const threadNotFound = (id: string): ServiceError =>
  new ServiceError("thread.not_found", `Thread with ID ${id} not found`);

/** The error for clients that wait for a run, or read its events, while its thread is deleted. */
export const threadDeleted = (): ServiceError =>
  new ServiceError("thread.not_found", "The thread was deleted");

/** The error for clients that read the events of a run while the run is deleted. */
export const runDeleted = (): ServiceError => new ServiceError("run.not_found", "The run was deleted");

/** An error as it is stored and streamed: the class name and the message, never the stack. */
export interface PlainError {
  readonly error: string;
  readonly message: string;
}

/**
 * The names that LangGraph's clients know for some of Heddle's errors, by the part of the error code before the dot.
 */
const clientNames: { readonly [kind: string]: string } = {
  state: "InvalidUpdateError",
  value: "InvalidUpdateError",
  resume: "InvalidResumeError",
};

/**
 * The most characters of the message of an error that a node threw, because the message is stored and sent with both
 * the run and its thread. A ServiceError is not cut.
 */
const MAX_MESSAGE_CHARACTERS = 16_384;

const short = (message: string): string =>
  message.length <= MAX_MESSAGE_CHARACTERS
    ? message
    : `${message.slice(0, MAX_MESSAGE_CHARACTERS)}... (${message.length - MAX_MESSAGE_CHARACTERS} characters more)`;

/** Converts anything that a node threw (also `null` and plain strings) to a {@link PlainError}. */
export function toPlainError(thrown: unknown): PlainError {
  try {
    if (thrown instanceof ServiceError) {
      return { error: clientNames[thrown.code.split(".")[0] ?? ""] ?? thrown.name, message: thrown.message };
    }
    if (thrown instanceof Error) {
      return { error: String(thrown.name || "Error"), message: short(String(thrown.message)) };
    }
    if (typeof thrown === "object" && thrown !== null) {
      const { name, message } = thrown as { name?: unknown; message?: unknown };
      return {
        error: typeof name === "string" ? name : "Error",
        message: short(typeof message === "string" ? message : (JSON.stringify(thrown) ?? "unknown")),
      };
    }
    return { error: "Error", message: short(String(thrown)) };
  } catch {
    // A getter or `toString` may throw: the run must still end with a readable error.
    return { error: "Error", message: "a value that cannot be described was thrown" };
  }
}
