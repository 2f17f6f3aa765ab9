import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { urlInSource } from "../graph-loader/own-package-paths.ts";

/** A file of the web pages, with its content type. */
export interface PageFile {
  readonly type: string;
  readonly body: string;
}

/** Returns a file of the web pages by its name; undefined if there is no such file, or if the pages were not built. */
export type Pages = (name: string) => PageFile | undefined;

const TYPES: { readonly [name: string]: string } = {
  "dashboard.html": "text/html; charset=utf-8",
  "dashboard.css": "text/css; charset=utf-8",
  "dashboard.js": "text/javascript; charset=utf-8",
  "inspector.html": "text/html; charset=utf-8",
  "inspector.css": "text/css; charset=utf-8",
  "inspector.js": "text/javascript; charset=utf-8",
  "docs.html": "text/html; charset=utf-8",
  "docs.css": "text/css; charset=utf-8",
  "docs.js": "text/javascript; charset=utf-8",
  "elk-worker.js": "text/javascript; charset=utf-8",
};

/** Returns files that `npm run build` has made from `src/dashboard`. Each file is read at its first request. */
export function builtPages(): Pages {
  const read = new Map<string, PageFile>();
  return (name) => {
    const type = Object.hasOwn(TYPES, name) ? TYPES[name] : undefined;
    if (type === undefined) return undefined;
    const known = read.get(name);
    if (known !== undefined) return known;
    const file = filePathOf(name);
    if (file === undefined) return undefined;
    const page = { type, body: readFileSync(file, "utf8") };
    read.set(name, page);
    return page;
  };
}

/** The path of a file of the web pages. If this module is built, the file is next to it, otherwise in the output directory of the build. */
function filePathOf(name: string): string | undefined {
  return (
    [`dashboard/${name}`, `../dist/src/dashboard/${name}`]
      .map((path) => fileURLToPath(urlInSource(path)))
      // The first path may lead to sources instead of built files. Only built files have `inspector.js` beside them.
      .find((path) => existsSync(path) && existsSync(path.replace(/[^/\\]+$/, "inspector.js")))
  );
}
