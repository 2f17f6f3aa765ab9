import { readableStack } from "../model/stack-trace.ts";
import type { Clock } from "../ports/clock.ts";
import type { LogFields, LogLevel, Logger } from "../ports/logger.ts";

export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const satisfies readonly LogLevel[];

export type { LogLevel };

export function isLogLevel(text: string): text is LogLevel {
  return (LOG_LEVELS as readonly string[]).includes(text);
}

export interface LogOptions {
  readonly clock: Clock;
  /** The lowest level that is written. */
  readonly level?: LogLevel;
  /** True: lines are coloured text for people instead of JSON. */
  readonly pretty?: boolean;
  /** Called with each line, including its line break. */
  readonly write: (line: string) => void;
}

type Print = (time: string, level: LogLevel, message: string, fields: LogFields | undefined) => string;

/** Makes a logger that writes one line for each message: JSON, or text for people. */
export function createLogger({ clock, level = "info", pretty = false, write }: LogOptions): Logger {
  const print: Print = pretty ? text : json;
  const least = LOG_LEVELS.indexOf(level);
  const at =
    (own: LogLevel, rank: number) =>
    (message: string, fields?: LogFields): void => {
      if (rank < least) return;
      try {
        write(print(new Date(clock.now()).toISOString(), own, message, fields));
      } catch {
        // A field that cannot be printed or a log that cannot be written must not fail a run.
      }
    };
  return {
    isOn: (level) => LOG_LEVELS.indexOf(level) >= least,
    debug: at("debug", 0),
    info: at("info", 1),
    warn: at("warn", 2),
    error: at("error", 3),
  };
}

/**
 * A logger for requests. After the server `hasStopped`, requests in progress fail because their connections and the storage
 * are closed. That is no fault, so warnings and errors are then logged as information.
 */
export function quietAfterStop(logger: Logger, hasStopped: () => boolean): Logger {
  const at =
    (level: "warn" | "error") =>
    (message: string, fields?: LogFields): void =>
      logger[hasStopped() ? "info" : level](message, fields);
  return {
    isOn: (level) => logger.isOn?.(level) ?? true,
    debug: (message, fields) => logger.debug(message, fields),
    info: (message, fields) => logger.info(message, fields),
    warn: at("warn"),
    error: at("error"),
  };
}

/** A logger that writes nothing, for example for tests. */
export const silentLogger: Logger = {
  isOn: () => false,
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

function json(time: string, level: LogLevel, message: string, fields: LogFields | undefined): string {
  // First for readability, and again last, so that a field cannot overwrite them.
  const own = { time, level, message };
  return `${encode({ ...own, ...fields, ...own })}\n`;
}

const COLOURS: Readonly<Record<LogLevel, string>> = {
  debug: "\u001b[2m",
  info: "\u001b[32m",
  warn: "\u001b[33m",
  error: "\u001b[31m",
};
const DIM = "\u001b[2m";
const PLAIN = "\u001b[0m";
const INDENT = "  ";
/** Causes of an error that are printed for people. */
const MAX_CAUSES = 4;

function text(time: string, level: LogLevel, message: string, fields: LogFields | undefined): string {
  let rest = "";
  let blocks = "";
  for (const [name, value] of Object.entries(fields ?? {})) {
    const block = blockOf(value);
    if (block === undefined) rest += ` ${DIM}${line(name)}=${PLAIN}${word(value)}`;
    else
      blocks += `${INDENT}${DIM}${line(name)}:${PLAIN}
${block
  .map(
    (one) => `${INDENT}${INDENT}${line(one)}
`,
  )
  .join("")}`;
  }
  return `${DIM}${time.slice(11, 23)}${PLAIN} ${COLOURS[level]}${level.padEnd(5)}${PLAIN} ${line(message)}${rest}\n${blocks}`;
}

/** The lines of a value that is printed below the message, indented: an error, or a text of several lines. */
function blockOf(value: unknown): readonly string[] | undefined {
  if (value instanceof Error) return stackOf(value).split("\n");
  return typeof value === "string" && value.includes("\n") ? value.trimEnd().split("\n") : undefined;
}

/** The stack of an error, and of its causes. */
function stackOf(error: Error, depth = 0): string {
  const { name, message, stack, cause } = error;
  const own = typeof stack === "string" ? readableStack(stack) : `${name}: ${message}`;
  return cause instanceof Error && depth < MAX_CAUSES
    ? `${own}\ncaused by ${stackOf(cause, depth + 1)}`
    : own;
}

function word(value: unknown): string {
  return typeof value === "string" && /^[\w./:@-]+$/.test(value) ? value : line(encode(value));
}

/** Escapes control characters, which could change what the terminal shows. */
const line = (message: string): string =>
  message.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (c) => JSON.stringify(c).slice(1, -1).replace(c, "?"));

function encode(value: unknown): string {
  const above: unknown[] = [];
  return (
    JSON.stringify(value, function (this: unknown, _key, member: unknown) {
      if (typeof member === "bigint") return member.toString();
      if (member instanceof Error) {
        const { name, message, stack, cause } = member;
        return { name, message, stack: typeof stack === "string" ? readableStack(stack) : stack, cause };
      }
      if (typeof member !== "object" || member === null) return member;
      while (above.length > 0 && above.at(-1) !== this) above.pop();
      if (above.includes(member)) return "[circular]";
      above.push(member);
      return member;
    }) ?? "undefined"
  );
}
