export type LogFields = { readonly [field: string]: unknown };

/** Structured log lines. MUST NOT throw; MUST NOT be given keys, tokens or state. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}
