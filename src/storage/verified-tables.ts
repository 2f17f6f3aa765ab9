import { type Stats, readFileSync, renameSync, writeFileSync } from "node:fs";

/**
 * Tables whose checksums were right, with what their files were like then, in a file beside the database. LevelDB never changes a table
 * once it is written, so a start need not read them again before it serves. A bit that has flipped on the disk since changes nothing of
 * what is noted: the {@link TableVerifier} finds that.
 */
export class VerifiedTables {
  readonly #path: string;
  readonly #files: Map<string, string>;
  #isStored = true;

  constructor(path: string) {
    this.#path = path;
    this.#files = read(path);
  }

  /** Is the file the one that was verified? */
  has(name: string, stats: Stats): boolean {
    return this.#files.get(name) === describe(stats);
  }

  /** `stats`: of the file, from before it was read. */
  add(name: string, stats: Stats): void {
    this.#isStored &&= this.has(name, stats);
    this.#files.set(name, describe(stats));
  }

  delete(name: string): void {
    if (this.#files.delete(name)) this.#isStored = false;
  }

  /** Forgets all but these, and stores what is left. What a crash loses of it is verified again. */
  store(names: ReadonlySet<string>): void {
    for (const name of this.#files.keys()) if (!names.has(name)) this.delete(name);
    if (this.#isStored) return;
    writeFileSync(`${this.#path}.tmp`, `${JSON.stringify(Object.fromEntries(this.#files))}\n`);
    renameSync(`${this.#path}.tmp`, this.#path);
    this.#isStored = true;
  }
}

function describe({ size, mtimeMs, ino }: Stats): string {
  return `${size} ${Math.floor(mtimeMs)} ${ino}`;
}

function read(path: string): Map<string, string> {
  try {
    return new Map(Object.entries(JSON.parse(readFileSync(path, "utf8")) as Record<string, string>));
  } catch {
    // Missing or torn: all tables are verified.
    return new Map();
  }
}
