export type LogLevel = "debug" | "info" | "warn" | "error";

export type LogFields = { readonly [field: string]: unknown };

/** Structured log lines. MUST NOT throw; MUST NOT be given keys, tokens or state. */
export interface Logger {
  /** Whether lines of a level go anywhere: else what goes into them need not be found out. Absent: they do. */
  isOn?(level: LogLevel): boolean;
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}
