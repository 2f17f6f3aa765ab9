import { parseUuid } from "../model/ids.ts";
import { withoutTsxUrls } from "../model/stack-without-tsx-urls.ts";
import type { LogFields, LogLevel } from "../ports/logger.ts";
import { escapeControls, type ApplyStyle } from "./terminal.ts";

const STYLES = {
  debug: "dim",
  info: "green",
  warn: "yellow",
  error: "red",
} as const satisfies Readonly<Record<LogLevel, string>>;

const INDENT = "  ";
/** The largest number of nested causes of an error that are logged. */
export const MAX_CAUSES = 4;
/**
 * Fields whose UUIDs are shortened to their last characters, as in the dashboard. The first characters are a time, which many ids share.
 */
const SHORTENED: ReadonlySet<string> = new Set(["thread", "thread_id", "run", "run_id"]);
const SHORT_ID = 8;

/**
 * A log line for people: local time, level, message, fields. A value of several lines, such as a stack, is printed indented below the line.
 * Control characters are escaped, since a logged value may come from a client.
 */
export function textLine(
  at: Date,
  level: LogLevel,
  message: string,
  fields: LogFields | undefined,
  applyStyle: ApplyStyle,
  encode: (value: unknown) => string,
): string {
  let words = "";
  let blocks = "";
  for (const [name, value] of Object.entries(fields ?? {})) {
    const block = blockOf(value);
    if (block === undefined)
      words += ` ${applyStyle("dim", `${escapeControls(name)}=`)}${word(name, value, encode)}`;
    else {
      blocks += `${INDENT}${applyStyle("dim", `${escapeControls(name)}:`)}\n`;
      for (const line of block) blocks += `${INDENT}${INDENT}${blockLine(line, applyStyle)}\n`;
    }
  }
  const painted = applyStyle(STYLES[level], level.padEnd(5));
  return `${applyStyle("dim", timeOf(at))} ${painted} ${escapeControls(message)}${words}\n${blocks}`;
}

function timeOf(at: Date): string {
  const two = (number: number) => String(number).padStart(2, "0");
  const seconds = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return `${seconds}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}

function word(name: string, value: unknown, encode: (value: unknown) => string): string {
  if (typeof value !== "string") return escapeControls(encode(value));
  if (SHORTENED.has(name) && parseUuid(value) !== undefined) return `…${value.slice(-SHORT_ID)}`;
  return /^[\w./:@-]+$/.test(value) ? value : escapeControls(encode(value));
}

/**
 * A file URL with the query by which tsx tells loads of the same file apart. It is replaced by the plain path, which terminals can open.
 */
const FRESH_FILE = /file:\/\/(\/[^\s?]*)\?tsx-namespace=[\w-]+/;

/** Dims the stack frames of packages and of Node, so that the user's own code stands out. */
function blockLine(line: string, applyStyle: ApplyStyle): string {
  const text = escapeControls(line.replace(FRESH_FILE, "$1"));
  return /^\s+at .*(?:node_modules|node:)/.test(line) ? applyStyle("dim", text) : text;
}

/** The lines of a value that is printed below the message: an error, or a text of several lines. Undefined for any other value. */
function blockOf(value: unknown): readonly string[] | undefined {
  if (value instanceof Error) return stackOf(value).split("\n");
  return typeof value === "string" && value.includes("\n") ? value.trimEnd().split("\n") : undefined;
}

/** The stack of an error, followed by the stacks of its causes, at most {@link MAX_CAUSES}. */
function stackOf(error: Error, depth = 0): string {
  const { name, message, stack, cause } = error;
  const own = typeof stack === "string" ? withoutTsxUrls(stack) : `${name}: ${message}`;
  return cause instanceof Error && depth < MAX_CAUSES
    ? `${own}\ncaused by ${stackOf(cause, depth + 1)}`
    : own;
}
