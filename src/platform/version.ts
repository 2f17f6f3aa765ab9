import { createRequire } from "node:module";

/** The version of this package. The package.json is found by the package's name, which works in `src` and in `dist/src`. */
export const VERSION = (createRequire(import.meta.url)("heddle/package.json") as { readonly version: string })
  .version;
