import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The inputs of a build, relative to the package's directory. `node_modules/.package-lock.json` lists the installed packages. */
const FOLDERS = ["src", "actors"];
const FILES = ["package.json", "package-lock.json", "tsconfig.json", "node_modules/.package-lock.json"];

/**
 * A hash of the names and contents of all files on which a build depends. File times are not used, because they do not show that a file was
 * deleted, or was replaced by a file with an older time.
 */
export function hashBuildInputs(root: string): string {
  const hash = createHash("sha256");
  const found = FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name)),
  );
  const files = FILES.map((name) => join(root, name)).filter((path) => existsSync(path));
  for (const path of [...found, ...files].toSorted()) {
    const content = readFileSync(path);
    hash.update(`${path.slice(root.length)}\0${content.length}\0`).update(content);
  }
  return hash.digest("hex");
}

/** A file in the build's output that marks a complete build. It contains the hash of the build's inputs. */
export class BuildMark {
  readonly #dist: string;

  constructor(dist: string) {
    this.#dist = dist;
  }

  get #path(): string {
    return join(this.#dist, ".inputs");
  }

  /** Whether there is a complete build from inputs with this hash. */
  matches(inputs: string): boolean {
    const isThere = existsSync(this.#path) && existsSync(join(this.#dist, "src/cli.js"));
    return isThere && readFileSync(this.#path, "utf8") === inputs;
  }

  /** Removes the mark. MUST be called before a build changes any file. */
  remove(): void {
    rmSync(this.#path, { force: true });
  }

  write(inputs: string): void {
    writeFileSync(this.#path, inputs);
  }
}
