import { type ErrorCode, ServiceError } from "../model/errors.ts";

/** Error codes and explanations by SQLSTATE, for failures about which the database's own message says too little. */
const MEANINGS: { readonly [sqlState: string]: readonly [code: ErrorCode, meaning: string] } = {
  "28000": ["config.invalid", "refuses the user"],
  "28P01": ["config.invalid", "refuses the user or the password"],
  "3D000": ["config.invalid", "has no such database"],
  "42501": [
    "config.invalid",
    "does not give the user the rights that a cluster needs: create a schema, and own its tables",
  ],
  "25006": ["storage.unavailable", "is read-only: it may be a standby"],
  "53100": ["storage.unavailable", "has a full disk: free some space there"],
  "53300": [
    "storage.unavailable",
    "has no connections left: raise max_connections, or put a pooler before it",
  ],
  "57P01": ["storage.unavailable", "is shutting down"],
  "57P02": ["storage.unavailable", "has crashed and restarts"],
  "57P03": ["storage.unavailable", "is starting"],
  "57014": ["storage.unavailable", "took too long for a statement"],
  "26000": [
    "storage.unavailable",
    "is behind a pooler that does not keep prepared statements, which a cluster needs",
  ],
  "42P05": [
    "storage.unavailable",
    "is behind a pooler that does not keep prepared statements, which a cluster needs",
  ],
};

/** The SQLSTATE classes of errors that concern a single statement. The connection can be used again after such an error. */
const STATEMENT_ERRORS = /^(22|23|40|42|54)/;

export interface PostgresFailure {
  readonly serviceError: ServiceError;
  readonly isConnectionUsable: boolean;
}

/** Converts a failure of a statement or a connection to a ServiceError, whose message contains neither the user nor the password. */
export function toPostgresFailure(cause: unknown, address: string): PostgresFailure {
  const sqlState = sqlStateOf(cause);
  const known = sqlState === undefined ? undefined : MEANINGS[sqlState];
  const [code, meaning] =
    known ??
    (sqlState === undefined
      ? (["storage.unavailable", `cannot be reached, or does not answer: ${reasonOf(cause)}`] as const)
      : (["storage.unavailable", `refuses a statement: ${reasonOf(cause)}`] as const));
  return {
    serviceError: new ServiceError(code, `PostgreSQL at ${address} ${meaning}`, { cause }),
    isConnectionUsable: sqlState !== undefined && sqlState !== "42P05" && STATEMENT_ERRORS.test(sqlState),
  };
}

/** The SQLSTATE of the database's answer. Undefined if the database has not answered. */
export function sqlStateOf(error: unknown): string | undefined {
  for (let one = error; one instanceof Error; one = one.cause) {
    const { code, severity } = one as { readonly code?: unknown; readonly severity?: unknown };
    if (severity !== undefined && typeof code === "string") return code;
  }
  return undefined;
}

function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  // If a host name has several IP addresses, Node collects their errors in an AggregateError without a message.
  if (cause instanceof AggregateError) return cause.errors.map(reasonOf).join(", ");
  return cause.message;
}

/**
 * Converts a failure after the database was opened to `storage.unavailable`. This includes a refused password: the same password was
 * accepted before, so it is probably being changed.
 */
export const toUnavailableError = (error: unknown): ServiceError =>
  error instanceof ServiceError && error.code === "storage.unavailable"
    ? error
    : new ServiceError("storage.unavailable", error instanceof Error ? error.message : String(error), {
        cause: error,
      });
