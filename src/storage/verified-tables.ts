import { type Stats, readFileSync, renameSync, writeFileSync } from "node:fs";

/**
 * The list of tables whose checksums were correct, with the properties of their files at that time. It is stored in a
 * file outside the database. LevelDB never changes a table, so these tables need not be read again before the server
 * starts. A bit that flips on the disk later does not change these properties; the {@link TableFileVerifier} finds such
 * damage.
 */
export class VerifiedTables {
  readonly #path: string;
  readonly #files: Map<string, string>;
  #isStored = true;

  constructor(path: string) {
    this.#path = path;
    this.#files = read(path);
  }

  /** True if the file still has the properties that it had when it was verified. */
  has(name: string, stats: Stats): boolean {
    return this.#files.get(name) === describe(stats);
  }

  /** Adds a table whose checksums are correct. `stats`: the properties of its file before it was read. */
  add(name: string, stats: Stats): void {
    this.#isStored &&= this.has(name, stats);
    this.#files.set(name, describe(stats));
  }

  delete(name: string): void {
    if (this.#files.delete(name)) this.#isStored = false;
  }

  /**
   * Removes all tables except `names` from the list, and stores the list. The tables of entries that a crash loses are
   * only verified again.
   */
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
    // If the list is missing or unreadable, all tables are verified again.
    return new Map();
  }
}
