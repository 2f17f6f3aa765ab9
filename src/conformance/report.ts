import type { CheckResult } from "./run-chapters.ts";

/** The maximum number of characters of a request or a response that the report prints. `--json` prints all of it. */
const MAX_CHARACTERS = 600;

const short = (value: unknown): string => {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "undefined");
  return text.length <= MAX_CHARACTERS ? text : `${text.slice(0, MAX_CHARACTERS)}...`;
};

/** The results as lines of text: a table of the chapters, then each difference with its request, the expected and the actual value. */
export function reportLines(results: readonly CheckResult[]): string[] {
  const chapters = [...new Set(results.map(({ chapter }) => chapter))];
  const width = Math.max("Chapter".length, ...chapters.map((name) => name.length));
  const row = (name: string, holds: string, differs: string) =>
    `${name.padEnd(width)}  ${holds.padStart(5)}  ${differs.padStart(7)}`;
  const countsOf = (some: readonly CheckResult[]): [string, string] => {
    const holds = some.filter((result) => result.holds).length;
    return [String(holds), String(some.length - holds)];
  };
  const lines = [row("Chapter", "Holds", "Differs")];
  for (const name of chapters)
    lines.push(row(name, ...countsOf(results.filter(({ chapter }) => chapter === name))));
  lines.push(row("Total", ...countsOf(results)));
  for (const { chapter, title, difference } of results) {
    if (difference === undefined) continue;
    const { request, message, expected, actual } = difference;
    lines.push("", `differs: ${chapter}: ${title}`, `  ${message}`);
    if (request !== null) {
      const { method, path, body = "", status = "no answer" } = request;
      lines.push(`  request:  ${method} ${path} ${short(body)}`.trimEnd(), `  status:   ${status}`);
    }
    lines.push(`  expected: ${short(expected)}`, `  actual:   ${short(actual)}`);
  }
  return lines;
}
