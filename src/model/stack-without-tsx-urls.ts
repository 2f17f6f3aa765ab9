/** Parts of the URL that tsx gives a TypeScript file in CommonJS: the first is followed by the whole compiled text, the second by the path. */
const TEXT = "data:text/javascript,";
const PATH = "?filePath=";

/**
 * Replaces each URL of tsx in a stack by the path of the file. The line numbers behind these URLs are left out, because
 * they refer to the compiled text.
 */
export function withoutTsxUrls(stack: string): string {
  return stack.includes(TEXT) ? stack.split("\n").map(lineWithoutTsxUrl).join("\n") : stack;
}

function lineWithoutTsxUrl(line: string): string {
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

/** The path without its query. It uses no regular expression, which would be slow for a path with many question marks. */
function withoutQuery(path: string): string {
  const mark = path.indexOf("?", path.lastIndexOf("/") + 1);
  return mark < 0 ? path : path.slice(0, mark);
}
