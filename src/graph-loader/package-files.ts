import { extname } from "node:path";
import { fileURLToPath } from "node:url";

/** How the files of the running program end: as sources `.ts`, built `.js`. */
const ENDING = extname(fileURLToPath(import.meta.url));

/** The folder above this file's, as the sources have it and as the build does, whose chunks lie as deep. */
const SRC = new URL("../", import.meta.url);

/** A file in `src`, or in what was built of it. */
export function inSource(path: string): URL {
  return new URL(path, SRC);
}

/** A module that the build keeps as a file of its own, by its path within `src`. */
export function entry(name: "index" | "app/node-worker"): URL {
  return inSource(`${name}${ENDING}`);
}
