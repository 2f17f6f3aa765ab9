import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { withoutTsxUrls } from "../model/stack-without-tsx-urls.ts";
import { HEDDLE_FOLDERS } from "./own-package-paths.ts";

/**
 * Returns one line that says why a file of the user's could not be loaded: the error's message, its location in the user's
 * files if it is known, and how to fix it if that is known.
 */
export async function describeLoadError(file: string, cause: unknown): Promise<string> {
  if (!(cause instanceof Error)) return textOf(cause);
  const transform = transformError(cause.message);
  const place = transform?.place ?? placeOf(cause) ?? (await syntaxErrorPlace(file, cause));
  const shown = place === undefined ? "" : ` (at ${place})`;
  // Removes the query parameter that a reload adds to the URL of each file. The user does not know this parameter.
  const message = (transform?.message ?? cause.message).replaceAll(/\?heddle-reload=\d+/g, "");
  return `${message}${shown}${hintOf(cause, place)}`;
}

/** Describes a thrown value that is not an `Error` and has no stack. */
function textOf(thrown: unknown): string {
  if (typeof thrown === "string") return thrown;
  try {
    return JSON.stringify(thrown) ?? String(thrown);
  } catch {
    return String(thrown);
  }
}

/** The parts of esbuild's message about a file with one error; tsx compiles TypeScript with esbuild. Undefined for other messages. */
function transformError(text: string): { readonly message: string; readonly place: string } | undefined {
  const [, path, at, message] =
    /^Transform failed with 1 error:\n([^\n]*?):(\d+:\d+): ERROR: ([^\n]*)$/.exec(text) ?? [];
  if (path === undefined || at === undefined || message === undefined) return undefined;
  // tsx reports a `.cts` file as `.ts`.
  const named = [path, path.replace(/\.ts$/, ".cts")].find((name) => existsSync(name)) ?? path;
  return { message, place: `${named}:${at}` };
}

/** The first place in a stack that is in the user's own files; undefined if there is none. */
function placeOf({ stack = "" }: Error): string | undefined {
  const [first = "", ...lines] = withoutTsxUrls(stack).split("\n");
  // Reads the first line: for most syntax errors and missing imports, Node puts the location there, before the stack.
  const before = userPlace(first);
  if (before !== undefined) return before;
  for (const line of lines) {
    const [, inBrackets, plain] = /^ {4}at (?:.*\((.*)\)|(?:async )?(.*))$/.exec(line) ?? [];
    const place = userPlace(inBrackets ?? plain ?? "");
    if (place !== undefined) return place;
  }
  return undefined;
}

const FILE_URL = /^file:\/\/[^?]*/;

/** `PATH:LINE:COLUMN` of a place in a file of the user's project; undefined for other places. */
function userPlace(text: string): string | undefined {
  const [, name = text, at = ""] = /^(.*?)((?::\d+){1,2})$/.exec(text) ?? [];
  const [url] = FILE_URL.exec(name) ?? [];
  const path = url === undefined ? name.replace(/\?.*$/, "") : fileURLToPath(url);
  if (!/^(?:\/|[A-Za-z]:[\\/])/.test(path) || !existsSync(path)) return undefined;
  return /[\\/]node_modules[\\/]/.test(path) || isOfHeddle(path) ? undefined : path + at;
}

const HEDDLE = HEDDLE_FOLDERS.map((folder) => fileURLToPath(folder));

const isOfHeddle = (path: string): boolean =>
  HEDDLE.some((folder) => path.startsWith(folder)) && !/[\\/]src[\\/]demo[\\/]/.test(path);

/**
 * The location of a syntax error in an ES module; undefined if it is not found. Node prints the location, but the error
 * object does not contain it. esbuild finds it by parsing the file and the files that it imports.
 */
async function syntaxErrorPlace(file: string, cause: Error): Promise<string | undefined> {
  if (cause.name !== "SyntaxError") return undefined;
  // Without esbuild the error is shown without its location.
  const esbuild = await import("esbuild").catch(() => undefined);
  if (esbuild === undefined) return undefined;
  const folder = dirname(file);
  const { errors } = await esbuild
    .build({
      entryPoints: [file],
      bundle: true,
      packages: "external",
      format: "esm",
      platform: "node",
      write: false,
      logLevel: "silent",
      absWorkingDir: folder,
    })
    .catch((failure: { readonly errors?: readonly Failure[] }) => ({ errors: failure.errors ?? [] }));
  const isSyntax = ({ text }: Failure) => !/^(?:Could not resolve|No loader|No matching)/.test(text);
  const { file: name, line, column } = errors.find(isSyntax)?.location ?? {};
  return name === undefined ? undefined : `${join(folder, name)}:${line}:${Number(column) + 1}`;
}

interface Failure {
  readonly text: string;
  readonly location: { readonly file: string; readonly line: number; readonly column: number } | null;
}

/** How to fix the error, to be appended to its message; empty if that is not known. */
function hintOf(cause: Error, place: string | undefined): string {
  const { code, message } = cause as NodeJS.ErrnoException;
  if (
    /top-level await is currently not supported|await is only valid in async functions and the/i.test(message)
  ) {
    const rename = "let its name end in .mts or .mjs";
    // The extensions `.cts` and `.cjs` make a file CommonJS, whatever `type` in its package.json says. So only a new name helps.
    const remedy = /\.c[jt]s:/.test(place ?? "")
      ? rename
      : `set "type": "module" in its package.json, or ${rename}`;
    return `; the file counts as CommonJS, which has no top-level await: ${remedy}`;
  }
  const isMissing = code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND";
  const [, name] = /'(@langchain\/[a-z-]+|langchain)/.exec(message) ?? [];
  return isMissing && name !== undefined
    ? `; install it in the project of the graph: npm install ${name}`
    : "";
}
