/** How tsx names TypeScript that is CommonJS to Node: by its whole compiled text, and only then by its path. */
const TEXT = "data:text/javascript,";
const PATH = "?filePath=";

/** A stack whose lines name files, never their text. Of such a file the line is not known: that of the compiled text misleads. */
export function readableStack(stack: string): string {
  return stack.includes(TEXT) ? stack.split("\n").map(readable).join("\n") : stack;
}

function readable(line: string): string {
  const from = line.indexOf(TEXT);
  const at = line.lastIndexOf(PATH);
  if (from < 0 || at < from) return line;
  const [, path, rest] = /^([^:\s]+):\d+:\d+(.*)$/.exec(line.slice(at + PATH.length)) ?? [];
  if (path === undefined || rest === undefined) return line;
  try {
    return line.slice(0, from) + withoutQuery(decodeURIComponent(path)) + rest;
  } catch {
    return line;
  }
}

/** Looked for from the end: a pattern would look from each question mark on, and what failed may quote its input. */
function withoutQuery(path: string): string {
  const mark = path.indexOf("?", path.lastIndexOf("/") + 1);
  return mark < 0 ? path : path.slice(0, mark);
}
