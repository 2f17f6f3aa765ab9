/** Parts of the URL by which tsx names a CommonJS TypeScript file: first its whole compiled text, then its path. */
const TEXT = "data:text/javascript,";
const PATH = "?filePath=";

/**
 * A stack whose lines name files and do not contain their text. The line numbers of such files are left out: they refer to
 * the compiled text.
 */
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

/** The path without its query. A regular expression would be slow for input with many question marks. */
function withoutQuery(path: string): string {
  const mark = path.indexOf("?", path.lastIndexOf("/") + 1);
  return mark < 0 ? path : path.slice(0, mark);
}
