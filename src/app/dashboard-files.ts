import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { inSource } from "../graph-loader/package-files.ts";

/** A file of a page, as it goes out. */
export interface PageFile {
  readonly type: string;
  readonly body: string;
}

/** The files of the pages that are served, by name; undefined: there is none, or the pages were not built. */
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

/** Reads what `npm run build` has made of `src/dashboard`, each file when it is first asked for. */
export function builtPages(): Pages {
  const read = new Map<string, PageFile>();
  return (name) => {
    const type = Object.hasOwn(TYPES, name) ? TYPES[name] : undefined;
    if (type === undefined) return undefined;
    const known = read.get(name);
    if (known !== undefined) return known;
    const file = place(name);
    if (file === undefined) return undefined;
    const page = { type, body: readFileSync(file, "utf8") };
    read.set(name, page);
    return page;
  };
}

/** Beside this file once it is built, else where the build puts it. */
function place(name: string): string | undefined {
  return (
    [`dashboard/${name}`, `../dist/src/dashboard/${name}`]
      .map((path) => fileURLToPath(inSource(path)))
      // The sources stand beside it too: a page is there when its script is.
      .find((path) => existsSync(path) && existsSync(path.replace(/[^/\\]+$/, "inspector.js")))
  );
}
