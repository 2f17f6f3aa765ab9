import { createRequire } from "node:module";

/** The package's own. By its name it finds its file from `src` as from `dist/src`. */
export const VERSION = (createRequire(import.meta.url)("heddle/package.json") as { readonly version: string })
  .version;
