import { createRequire } from "node:module";

/** The version of this package. Its package.json is found by the package's name, from `src` and from `dist/src`. */
export const VERSION = (createRequire(import.meta.url)("heddle/package.json") as { readonly version: string })
  .version;
