import { createRequire } from "node:module";
import type * as Esbuild from "esbuild";

/**
 * Describes where and why a text is not JSON. Uses esbuild, because the parser of Node 20 reports no line, and does not
 * recognise comments.
 */
export function jsonError(text: string): string | undefined {
  try {
    // esbuild is loaded only here, so that a start without errors does not wait for it.
    const { transformSync } = createRequire(import.meta.url)("esbuild") as typeof Esbuild;
    transformSync(text, { loader: "json", logLevel: "silent" });
    return undefined;
  } catch (cause) {
    const [error] = (cause as Partial<Esbuild.TransformFailure>).errors ?? [];
    if (error?.location === undefined || error.location === null) return undefined;
    return `${error.text} (line ${error.location.line}, column ${error.location.column + 1})`;
  }
}
