import { extname } from "node:path";
import { fileURLToPath } from "node:url";

/** File extension of the running program: `.ts` in the sources, `.js` in the build. */
const EXTENSION = extname(fileURLToPath(import.meta.url));

/** The folder `src`, or `dist/src` in the build. In both cases, it is the parent of this file's folder. */
const SRC = new URL("../", import.meta.url);

/** The root of the package; the build is in its folder `dist/src`. */
const ROOT = new URL(EXTENSION === ".ts" ? "../" : "../../", SRC);

export const PACKAGE_FOLDER = fileURLToPath(ROOT);

/** The URL of a file or folder of the package, from its root. */
export function urlInPackage(path: string): URL {
  return new URL(path, ROOT);
}

/** URLs of the folders with the running package's own code. They also contain the demo, which is loaded like a user's project. */
export const HEDDLE_FOLDERS: readonly string[] = ["src/", "actors/", "dist/"].map(
  (folder) => urlInPackage(folder).href,
);

/** The URL of a file in `src` or in the build. */
export function urlInSource(path: string): URL {
  return new URL(path, SRC);
}

/** The URL of an entry module, which the build writes as a separate file, by its path in `src`. */
export function entryUrl(name: "index" | "app/node-worker-entry" | "app/graph-types-worker-entry"): URL {
  return urlInSource(`${name}${EXTENSION}`);
}
