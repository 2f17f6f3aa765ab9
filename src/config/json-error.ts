import { createRequire } from "node:module";
import type * as Esbuild from "esbuild";

/** What esbuild finds wrong with a text that is not JSON, and where: Node 20 tells neither line nor comments. */
export function jsonError(text: string): string | undefined {
  try {
    // Loaded only here: a start without errors must not wait for it.
    const { transformSync } = createRequire(import.meta.url)("esbuild") as typeof Esbuild;
    transformSync(text, { loader: "json", logLevel: "silent" });
    return undefined;
  } catch (cause) {
    const [error] = (cause as Partial<Esbuild.TransformFailure>).errors ?? [];
    if (error?.location === undefined || error.location === null) return undefined;
    return `${error.text} (line ${error.location.line}, column ${error.location.column + 1})`;
  }
}
