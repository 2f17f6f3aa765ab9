import { createRequire } from "node:module";

/** The version of this package. Its package.json is found by the package's name, so that the same code works in `src` and in `dist/src`. */
export const VERSION = (createRequire(import.meta.url)("heddle/package.json") as { readonly version: string })
  .version;
