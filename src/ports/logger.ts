export type LogLevel = "debug" | "info" | "warn" | "error";

export type LogFields = { readonly [field: string]: unknown };

/** A structured logger. It MUST NOT throw; callers MUST NOT log keys, tokens or state. */
export interface Logger {
  /** Whether lines of this level are written; if not, a caller can omit the computation of their fields. Absent: all levels are written. */
  isOn?(level: LogLevel): boolean;
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}
