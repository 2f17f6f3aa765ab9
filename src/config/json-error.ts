import { createRequire } from "node:module";
import type * as Esbuild from "esbuild";

/**
 * Describes the error in a text that `JSON.parse` has refused, with line and column; undefined if esbuild finds no error. The errors of
 * `JSON.parse` in Node 20 give no line, and do not say that a comment is the cause.
 */
export function jsonError(text: string): string | undefined {
  try {
    // esbuild is loaded here instead of at the top, so that a start without errors does not wait for it.
    const { transformSync } = createRequire(import.meta.url)("esbuild") as typeof Esbuild;
    transformSync(text, { loader: "json", logLevel: "silent" });
    return undefined;
  } catch (cause) {
    const [error] = (cause as Partial<Esbuild.TransformFailure>).errors ?? [];
    if (error?.location === undefined || error.location === null) return undefined;
    return `${error.text} (line ${error.location.line}, column ${error.location.column + 1})`;
  }
}
