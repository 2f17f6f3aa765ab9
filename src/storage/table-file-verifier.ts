import { withCauses } from "../model/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { LevelDbFiles, FoundDamage, ManifestTable } from "./leveldb-files.ts";
import type { VerifiedTables } from "./verified-tables.ts";

/** The most milliseconds of work between two pauses. */
const WORK_MS = 2;
/** Milliseconds of each pause. With these two values, the verification takes about 2 % of a core and reads 10 MB per second. */
const REST_MS = 100;
/**
 * The pause between two searches for new tables: at least `SCAN_INTERVAL_MS` milliseconds, and at least `PAUSE_FACTOR` times as long as the
 * last search took.
 */
const SCAN_INTERVAL_MS = 10_000;
const PAUSE_FACTOR = 100;

interface Deps {
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
}

/** The tables that existed at the start and are not verified yet: their number and their bytes. */
export interface UnverifiedTables {
  readonly tables: number;
  readonly bytes: number;
}

/**
 * Verifies the checksums of table files while the server runs. It begins with the tables that the start has skipped because they had been
 * verified before. New tables follow, so that the next start can skip them.
 */
export class TableFileVerifier {
  readonly #files: LevelDbFiles;
  readonly #verified: VerifiedTables;
  /** The tables that were read since the process started. */
  readonly #checked: Set<string>;
  readonly #deps: Deps;
  readonly #found: (damage: readonly FoundDamage[]) => void;
  #left: UnverifiedTables | undefined;
  #isClosed = false;
  #wake: (() => void) | undefined;
  #work: Promise<void> | undefined;

  /** `checked`: the tables that were read at the start. `found` is called with the damage that is found. */
  constructor(
    files: LevelDbFiles,
    verified: VerifiedTables,
    checked: ReadonlySet<string>,
    deps: Deps,
    found: (damage: readonly FoundDamage[]) => void,
  ) {
    this.#files = files;
    this.#verified = verified;
    this.#checked = new Set(checked);
    this.#deps = deps;
    this.#found = found;
  }

  /** The tables that existed at the start and are still to be verified; undefined if there are none. */
  get left(): UnverifiedTables | undefined {
    return this.#left;
  }

  start(): void {
    const tables = this.#unchecked();
    if (tables.length > 0) this.#left = sumOf(tables);
    this.#work ??= this.#run();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#wake?.();
    await this.#work;
    try {
      this.#verified.store(new Set(this.#files.names()));
    } catch (cause) {
      // Without the list, the next start verifies the tables again. The error is only logged, because a full disk must not prevent the
      // closing of the database.
      this.#deps.logger.warn("the list of verified tables could not be stored", { error: withCauses(cause) });
    }
  }

  async #run(): Promise<void> {
    const { clock, logger } = this.#deps;
    let logged: string | undefined;
    while (!this.#isClosed) {
      const since = clock.mono();
      let look = 0;
      try {
        const tables = this.#unchecked();
        look = clock.mono() - since;
        await this.#check(tables);
        logged = undefined;
      } catch (cause) {
        // An error that repeats, for example because the disk stays full, is logged only once.
        const error = withCauses(cause);
        if (error !== logged) logger.warn("tables could not be verified", { error });
        logged = error;
      }
      if (!this.#isClosed) await this.#rest(Math.max(SCAN_INTERVAL_MS, look * PAUSE_FACTOR));
    }
  }

  async #check(tables: readonly ManifestTable[]): Promise<void> {
    for (const [i, table] of tables.entries()) {
      if (this.#left !== undefined) this.#left = sumOf(tables.slice(i));
      await this.#rest(REST_MS);
      const damage = await this.#files.check(table, this.#pace);
      if (this.#isClosed) return;
      if (damage === undefined) continue;
      if (damage.found.length === 0) this.#verified.add(table.name, damage.stats);
      else {
        this.#verified.delete(table.name);
        this.#found(damage.found);
      }
      // Added last: if the damage could not be recorded, the table is read again.
      this.#checked.add(table.name);
    }
    this.#left = undefined;
    const names = new Set(this.#files.names());
    for (const name of this.#checked) if (!names.has(name)) this.#checked.delete(name);
    this.#verified.store(names);
  }

  /** The tables that have not been read yet. Reads the manifest only if there are new files. */
  #unchecked(): readonly ManifestTable[] {
    const isNew = (name: string): boolean => !this.#checked.has(name);
    return this.#files.names().some(isNew) ? this.#files.tables().filter(({ name }) => isNew(name)) : [];
  }

  readonly #pace = {
    work: WORK_MS,
    rest: (): Promise<void> => this.#rest(REST_MS),
    isCancelled: (): boolean => this.#isClosed,
  };

  #rest(ms: number): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    return new Promise<void>((resolve) => {
      const cancel = this.#deps.scheduler.after(ms, resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
  }
}

function sumOf(tables: readonly ManifestTable[]): UnverifiedTables {
  return { tables: tables.length, bytes: tables.reduce((sum, { size = 0 }) => sum + size, 0) };
}
