import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { ServiceError } from "../model/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import type { OnProgress } from "../ports/work-progress.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import { BatchNumbering, type MissingBatches, findMissingBatches } from "./batch-numbering.ts";
import { BatchLossLedger } from "./batch-loss-ledger.ts";
import { LevelDbFiles, type FoundDamage, type ManifestMark, readTextOrEmpty } from "./leveldb-files.ts";
import { DAMAGE_FILE, damageId, type DamageRecord, DamageRecords } from "./damage-records.ts";
import { keyLabel, rangeLabel } from "./key-labels.ts";
import type { KeyValueStore } from "../ports/key-value-store.ts";
import { droppedDataLines } from "./leveldb/dropped-data-log-lines.ts";
import type { KeyRange } from "./leveldb/table-check.ts";
import { QuarantinedData } from "./quarantine.ts";
import { TableFileVerifier, type UnverifiedTables } from "./table-file-verifier.ts";
import { VerifiedTables } from "./verified-tables.ts";

interface Deps {
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  readonly onProgress?: OnProgress;
}

/** The last known state of the database's files, as stored in the file {@link MARK}. */
interface Mark {
  /** The manifest, which is append-only. */
  readonly manifest?: ManifestMark;
  /** The time of LevelDB's last message about dropped bytes that was reported. */
  readonly dropped?: string;
}

const MARK = "database.json";
const LEDGER = "batches";
const NO_LEDGER = `the ledger of batches (${LEDGER}/) is missing or empty, so nobody can tell whether acknowledged writes are lost at the end of the log`;
/**
 * The file with the list of verified tables. All files of the damage detection are outside the database, so that damage of the database
 * does not affect them.
 */
const VERIFIED = "tables.json";
/** The most names of threads and keys in one log line. */
const MAX_NAMES = 20;

/** Detects damage of the database, and quarantines the data that may be wrong. */
export class DamageDetection {
  readonly quarantine = new QuarantinedData();
  readonly findings: DamageRecords;
  readonly #directory: string;
  readonly #database: string;
  readonly #deps: Deps;
  readonly #files: LevelDbFiles;
  readonly #ledger: BatchLossLedger;
  readonly #verified: VerifiedTables;
  /** The names of the tables that were read when the server started. */
  readonly #read = new Set<string>();
  #verifier: TableFileVerifier | undefined;
  /**
   * True if this directory has had a ledger before. A server writes the file {@link MARK} only after the ledger, so the file shows this.
   * Backups and directories of older versions have neither.
   */
  readonly #hadLedger: boolean;
  #mark: Mark;
  /** The ids of damage that is quarantined and logged, but whose record could not be stored yet. */
  readonly #unrecorded = new Set<string>();

  constructor(directory: string, database: string, deps: Deps) {
    this.#directory = directory;
    this.#database = database;
    this.#deps = deps;
    this.#files = new LevelDbFiles(database, deps);
    this.findings = new DamageRecords(directory);
    this.#ledger = new BatchLossLedger(join(directory, LEDGER), deps);
    this.#verified = new VerifiedTables(join(directory, VERIFIED));
    this.#hadLedger = existsSync(join(directory, MARK));
    this.#mark = readMark(join(directory, MARK));
    for (const finding of this.findings.list) this.#quarantine(finding);
  }

  /** The progress of the verification that continues after the start; undefined when it is complete. */
  get verifying(): UnverifiedTables | undefined {
    return this.#verifier?.left;
  }

  /**
   * Checks the files. Called before LevelDB opens them, because LevelDB deletes tables that a damaged manifest does not name. `isFull`:
   * also reads tables that were verified before.
   * @throws ServiceError `journal.damaged` if the database is damaged; a repair has to rebuild it
   */
  async inspect(isFull: boolean): Promise<void> {
    const [manifest] = this.#files.manifests();
    const wrong = manifest === undefined ? undefined : this.#files.flaw(manifest, this.#mark.manifest);
    const flaws = wrong === undefined ? (await this.#damage(isFull)).map(({ what }) => what) : [wrong];
    if (flaws.length === 0) return;
    const what = `The database in ${this.#database} is damaged: ${flaws.join("; ")}`;
    this.#deps.logger.error(what);
    throw new ServiceError("journal.damaged", `${what}; run "heddle repair" to rebuild it`);
  }

  #damage(isFull: boolean): Promise<readonly FoundDamage[]> {
    const verified = isFull ? undefined : this.#verified;
    return this.#files.damage(this.#mark.manifest, verified, (name) => this.#read.add(name));
  }

  /**
   * Verifies, while the server runs, the tables that were not read when it started. `found` is called when damage was found and
   * quarantined.
   */
  watch(found: () => void): void {
    this.#verifier = new TableFileVerifier(this.#files, this.#verified, this.#read, this.#deps, (damage) => {
      this.#add(this.#findingsIn(damage));
      found();
    });
    this.#verifier.start();
  }

  async close(): Promise<void> {
    await this.#verifier?.close();
  }

  /**
   * Prepares a repair. Records which keys the damaged blocks may have contained, and keeps copies of the damaged tables. Then makes the
   * damaged blocks unreadable: LevelDB would otherwise use whatever it can decode, and would end the process if keys are out of order.
   * Tables without an index are rebuilt from their readable blocks.
   */
  async record(): Promise<void> {
    const found = await this.#files.damage(this.#mark.manifest);
    for (const { table, kindAt, blocks = [] } of found) {
      if (kindAt !== undefined) this.#files.disable(table, kindAt);
      if (blocks.length > 0) this.#files.rebuild(table, blocks);
    }
    this.#add(this.#findingsIn(found));
  }

  #findingsIn(damage: readonly FoundDamage[]): readonly DamageRecord[] {
    return damage
      .filter(({ range }) => range !== undefined)
      .map(({ what, range }) => this.#finding(what, { ranges: [range as KeyRange] }));
  }

  /**
   * Checks that no batches are missing, reports each loss, and returns the numbering for further batches. Called after each opening of the
   * database. `isForced`: continues even if it is unknown what was lost.
   * @throws ServiceError `journal.damaged` if it is unknown what was lost, unless `isForced`
   */
  async begin(kv: KeyValueStore, boot: string, isForced = false): Promise<BatchNumbering> {
    const report = await findMissingBatches(kv, this.#ledger, boot, (key) =>
      this.quarantine.isInDamagedTable(key),
    );
    const dropped = droppedDataLines(
      ["LOG.old", "LOG"].map((name) => readTextOrEmpty(join(this.#database, name))),
    ).filter(({ at }) => at > (this.#mark.dropped ?? ""));
    for (const { line } of dropped) {
      this.#deps.logger.error("LevelDB has dropped a part of its log that it could not read", {
        message: line,
        batches: report.lost.map(({ number }) => number),
      });
    }
    this.#add(
      this.#findingsOf(
        report,
        dropped.map(({ line }) => line),
      ),
    );
    if (report.unsynced.length > 0) {
      this.#deps.logger.warn(
        "batches that were not synced were lost when the machine stopped; runs that streamed go on",
        {
          batches: report.unsynced.length,
        },
      );
    }
    if (!isForced && this.findings.list.some(({ unknown }) => unknown)) {
      throw new ServiceError(
        "journal.damaged",
        `A part of the data in ${this.#directory} is lost, and nobody can tell what it held: ${this.findings.list.map(({ what }) => what).join("; ")}; ` +
          'restore a backup, or accept the loss with "heddle repair --accept"',
      );
    }
    const lost = [...report.lost.map(({ number }) => number), ...report.unknown, ...report.unsynced];
    this.#ledger.open(report.next, boot, lost);
    this.#store({ ...this.#mark, ...(dropped.length > 0 && { dropped: dropped.at(-1)?.at ?? "" }) });
    this.#warnOfFindings();
    return new BatchNumbering(this.#ledger, report);
  }

  /** Records the current manifest. Called after a repair, or after damage was accepted. */
  remember(): void {
    this.#store(this.#mark);
  }

  /**
   * Records the manifest of the closed database. If that fails, for example on a full disk, the next start uses the previous record, as
   * after a crash.
   */
  rememberAtClose(): void {
    try {
      this.#store(this.#mark);
    } catch (cause) {
      this.#deps.logger.warn("the state of the database could not be noted at its close", {
        cause: String(cause),
      });
    }
  }

  /**
   * Logs the number of damage records that are not accepted yet. Called at each start, because a damage record itself is logged only once,
   * when the damage is found.
   */
  #warnOfFindings(): void {
    const findings = this.findings.list.length;
    if (findings === 0) return;
    this.#deps.logger.warn(
      'damage to the data is not accepted yet, and what it may have changed is refused; "heddle check" lists it',
      { findings, ...this.quarantine.counts, file: join(this.#directory, DAMAGE_FILE) },
    );
  }

  #findingsOf(report: MissingBatches, dropped: readonly string[]): readonly DamageRecord[] {
    const found: DamageRecord[] = [];
    const { lost, unknown } = report;
    if (lost.length > 0) {
      const touches = [...new Set(lost.flatMap((entry) => entry.touches))].filter(
        (touched) => !isMark(touched),
      );
      found.push(
        this.#finding(`${rangesOf(lost.map(({ number }) => number))} missing from the log`, { touches }),
      );
    }
    if (unknown.length > 0)
      found.push(
        this.#finding(`${rangesOf(unknown)} missing, and the ledger of batches with them`, { unknown: true }),
      );
    if (dropped.length > 0 && !report.isCovered) {
      found.push(
        this.#finding(`LevelDB dropped a part of its log: ${dropped.join("; ")}`, { unknown: true }),
      );
    }
    // The ledger is missing. No data is quarantined, because it is possible that nothing was lost.
    if (report.isLedgerEmpty && this.#hadLedger && found.length === 0)
      found.push(this.#finding(NO_LEDGER, {}));
    return found;
  }

  #finding(what: string, more: Partial<DamageRecord>): DamageRecord {
    const found_at = new Date(this.#deps.clock.now()).toISOString();
    return { found_at, what, touches: [], ranges: [], unknown: false, ...more };
  }

  #add(found: readonly DamageRecord[]): void {
    for (const finding of found) {
      // Damage that could not be recorded is found again by each later search. It is logged and quarantined only once.
      const id = damageId(finding);
      if (this.#unrecorded.has(id)) continue;
      this.#unrecorded.add(id);
      this.#quarantine(finding);
      const { names, more } = affectedNames(finding);
      this.#deps.logger.error(`the data is damaged: ${finding.what}`, {
        ...(names.length > 0 && { may_have_held: names }),
        ...(more > 0 && { more }),
      });
    }
    // Stored last: on a full disk, storing the findings fails, but damaged data must be refused even then.
    this.findings.add(found);
    for (const finding of found) this.#unrecorded.delete(damageId(finding));
  }

  #quarantine({ touches, ranges, unknown }: DamageRecord): void {
    this.quarantine.add(touches, ranges, unknown);
  }

  #store(mark: Mark): void {
    const [name] = this.#files.manifests();
    const bytes = name === undefined ? undefined : readFileSync(join(this.#database, name));
    this.#mark = {
      ...(mark.dropped !== undefined && { dropped: mark.dropped }),
      ...(name !== undefined &&
        bytes !== undefined && { manifest: { name, size: bytes.length, crc: crc32(bytes) } }),
    };
    const path = join(this.#directory, MARK);
    writeFileSync(`${path}.tmp`, `${JSON.stringify(this.#mark)}\n`, { flush: true });
    renameSync(`${path}.tmp`, path);
  }
}

/**
 * At most {@link MAX_NAMES} names of threads and keys that a finding may affect, and the number of further threads and
 * keys.
 */
export function affectedNames({ touches, ranges, unknown }: DamageRecord): {
  readonly names: readonly string[];
  readonly more: number;
} {
  const held = touches.filter((touched) => !isMark(touched)).map(keyLabel);
  const all = unknown ? ["anything"] : [...new Set([...held, ...ranges.map(rangeLabel)])];
  const names = all.slice(0, MAX_NAMES);
  return { names, more: all.length - names.length };
}

/** True if a key is a mark or an index entry, which can be rebuilt from the threads' records. */
function isMark(touched: string): boolean {
  return touched.startsWith("!");
}

/** Describes batch numbers as the start of a sentence, such as `5 batches between 3 and 9 are` or `batch 5 is`. */
function rangesOf(numbers: readonly number[]): string {
  const sorted = numbers.toSorted((a, b) => a - b);
  const [first, last] = [sorted[0] ?? 0, sorted.at(-1) ?? 0];
  if (sorted.length === 1) return `batch ${first} is`;
  return `${sorted.length} batches between ${first} and ${last} are`;
}

function readMark(path: string): Mark {
  try {
    return (JSON.parse(readTextOrEmpty(path)) as Mark | null) ?? {};
  } catch {
    return {};
  }
}
