import { withoutTsxUrls } from "../model/stack-without-tsx-urls.ts";
import type { Clock } from "../ports/clock.ts";
import type { LogFields, LogLevel, Logger } from "../ports/logger.ts";
import { MAX_CAUSES, textLine } from "./log-text.ts";
import type { ApplyStyle } from "./terminal.ts";

export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const satisfies readonly LogLevel[];

export type { LogLevel };

export function isLogLevel(text: string): text is LogLevel {
  return (LOG_LEVELS as readonly string[]).includes(text);
}

export interface LogOptions {
  readonly clock: Clock;
  /** The lowest level that is written. */
  readonly level?: LogLevel;
  /** Makes lines of text for people, with these colours. Absent: lines are JSON. */
  readonly text?: ApplyStyle;
  /** Fields of every line. */
  readonly common?: LogFields;
  /** Called with each line, including its line break. */
  readonly write: (line: string) => void;
}

/** Makes a logger that writes one line for each message: JSON, or text for people. */
export function createLogger({ clock, level = "info", text, common, write }: LogOptions): Logger {
  const least = LOG_LEVELS.indexOf(level);
  const at =
    (own: LogLevel, rank: number) =>
    (message: string, more?: LogFields): void => {
      if (rank < least) return;
      const fields = common === undefined ? more : { ...common, ...more };
      try {
        const at = new Date(clock.now());
        write(
          text === undefined
            ? json(at.toISOString(), own, message, fields)
            : textLine(at, own, message, fields, text, encode),
        );
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
 * A logger for requests. Once `hasStopped()` is true, requests in progress fail because their connections and the storage are closed. These
 * failures are expected, so warnings and errors are logged at level `info`.
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
  // These members come first, which is easier to read. They are set again last, so that no field can overwrite them.
  const own = { time, level, message };
  return `${encode({ ...own, ...fields, ...own })}\n`;
}

function encode(value: unknown): string {
  // The objects that contain the current member, outermost first. `written` differs from `original` for an error, which is written as a
  // plain object.
  const above: { readonly written: unknown; readonly original: unknown }[] = [];
  return (
    JSON.stringify(value, function (this: unknown, _key, member: unknown) {
      if (typeof member === "bigint") return member.toString();
      if (typeof member !== "object" || member === null) return member;
      while (above.length > 0 && above.at(-1)?.written !== this) above.pop();
      if (above.some(({ original }) => original === member)) return "[circular]";
      if (
        member instanceof Error &&
        above.filter(({ original }) => original instanceof Error).length > MAX_CAUSES
      )
        return "[more causes]";
      const written = member instanceof Error ? membersOf(member) : member;
      above.push({ written, original: member });
      return written;
    }) ?? "undefined"
  );
}

function membersOf({ name, message, stack, cause }: Error): object {
  return { name, message, stack: typeof stack === "string" ? withoutTsxUrls(stack) : stack, cause };
}
