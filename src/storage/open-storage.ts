import { existsSync } from "node:fs";
import { copyFile, readdir, stat } from "node:fs/promises";
import { join, resolve, sep } from "node:path";
import { ServiceError, withCauses } from "../model/errors.ts";
import { TimeBudget } from "../ports/time-budget.ts";
import type { Catalog } from "../ports/catalog.ts";
import type { CronStorage } from "../ports/cron-storage.ts";
import type { Journal } from "../ports/journal.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Outbox } from "../ports/outbox.ts";
import type { OnProgress } from "../ports/work-progress.ts";
import type { LostRunEnds } from "../ports/lost-run-ends.ts";
import { KeyValueCatalog } from "./key-value-catalog.ts";
import { Committer, type CommitStats, type CommitterDeps } from "./committer.ts";
import { type BackupOptions, copyDatabase } from "./backup.ts";
import { KeyValueCrons } from "./key-value-crons.ts";
import { checkFormat, checkStoredFormat, FormatMarker, MARKER_FILE } from "./format-version.ts";
import { type DamageRecord, DAMAGE_FILE } from "./damage-records.ts";
import { ThreadHeads } from "./thread-heads.ts";
import { KeyValueItems } from "./key-value-items.ts";
import { repairIndex } from "./index-repair.ts";
import { DamageDetection } from "./damage-detection.ts";
import { KeyValueJournal } from "./key-value-journal.ts";
import type { KeyValueStore, ReplaceableKeyValueStore } from "../ports/key-value-store.ts";
import type { ReplicationMetrics } from "../ports/replication-metrics.ts";
import { LevelDbKeyValueStore, rebuildLevelDb } from "./leveldb-key-value-store.ts";
import { lockDirectory, hostBootId } from "./directory-lock.ts";
import { MemoryKeyValueStore } from "./memory-key-value-store.ts";
import { KeyValueOutbox } from "./key-value-outbox.ts";
import { QuarantinedData, QuarantiningKeyValueStore } from "./quarantine.ts";
import { completeRunIndex } from "./run-index-upgrade.ts";
import { makeDirectory } from "./make-directory.ts";
import { MarkedDeletions } from "./marked-deletions.ts";
import { KeyValueLostRunEnds } from "./key-value-lost-run-ends.ts";
import { WriteOrder } from "./write-order.ts";

/** The total size of the files in a folder, in bytes. A file that LevelDB deletes meanwhile counts as 0. */
async function folderSize(folder: string): Promise<number> {
  const names = await readdir(folder);
  const sizes = await Promise.all(
    names.map((name) => stat(join(folder, name)).then(({ size }) => size, gone)),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

function gone(cause: unknown): number {
  if ((cause as { readonly code?: unknown }).code === "ENOENT") return 0;
  throw cause;
}

export type StorageOptions =
  | {
      readonly kind: "level";
      readonly directory: string;
      /**
       * True: the checksums of all tables are verified before the storage is open. False: tables that were verified before are verified
       * again only after the start.
       */
      readonly isVerified?: boolean;
    }
  | {
      /**
       * A directory whose batches are durable elsewhere, for example in the log of a cluster. Data that the directory has lost is restored
       * from there, so the directory is not checked for losses.
       */
      readonly kind: "replicated";
      readonly directory: string;
      /** Wraps the database of the directory in the store that makes batches durable. */
      readonly replicate: (local: ReplaceableKeyValueStore) => ReplicatedStore;
    }
  | { readonly kind: "memory" }
  | { readonly kind: "key-value"; readonly store: KeyValueStore };

/** A store whose batches are durable elsewhere. */
interface ReplicatedStore extends KeyValueStore {
  readonly metrics: ReplicationMetrics | undefined;
}

export interface StorageDeps extends CommitterDeps {
  /**
   * Makes long reads yield to other work. The caller may use the same budget for its own work. Absent: the storage makes a budget of its
   * own.
   */
  readonly budget?: TimeBudget;
  /** Called with the progress of opening and repairing. */
  readonly onProgress?: OnProgress;
}

export interface Storage {
  readonly journal: Journal;
  readonly catalog: Catalog;
  readonly outbox: Outbox;
  readonly crons: CronStorage;
  readonly lostRunEnds: LostRunEnds;
  /** Counts of writes and batches since the storage was opened. */
  stats(): CommitStats;
  /** The bytes on the disk; undefined when the storage is not on a disk. Reads the size of each file, and rejects if it cannot. */
  size(): Promise<number | undefined>;
  /** The bytes of memory that LevelDB's log buffers take; undefined without LevelDB. */
  memory(): number | undefined;
  /**
   * The numbers of threads, other keys, and ranges of keys that are quarantined because some of their data was lost. A range may include
   * further threads and keys.
   */
  damage(): { readonly threads: number; readonly keys: number; readonly ranges: number };
  /**
   * The quarantined threads, for which requests are refused. A thread may occur more than once. If a range is quarantined, all keys of the
   * storage are read.
   */
  refusedThreads(): AsyncIterable<ThreadKey>;
  /** How many tables, with how many bytes, are still to be verified after the start; undefined when there are none. */
  verifying(): { readonly tables: number; readonly bytes: number } | undefined;
  /** The state of the replication; undefined when the storage is not replicated. */
  replication(): ReplicationMetrics | undefined;
  /** The damage that was found and has not been accepted. */
  findings(): readonly DamageRecord[];
  /** Resolves when a test write is stored. @throws ServiceError `storage.unavailable` */
  check(): Promise<void>;
  /** Refuses new writes, stores the accepted ones, and releases the directory. */
  close(): Promise<void>;
}

/**
 * Opens the storage.
 * @throws ServiceError `storage.locked`, `storage.version`, `storage.unavailable`, `journal.damaged`; `config.invalid` when the directory
 *   holds a configuration file
 */
export async function openStorage(options: StorageOptions, deps: StorageDeps): Promise<Storage> {
  switch (options.kind) {
    case "level":
      return openDirectory(resolve(options.directory), options.isVerified === true, deps);
    case "replicated":
      return openReplicated(resolve(options.directory), options.replicate, deps);
    case "memory":
      return start(new MemoryKeyValueStore(), "memory", false, deps);
    case "key-value":
      return start(options.store, "the given store", false, deps);
    default:
      return options satisfies never;
  }
}

async function openDirectory(directory: string, isVerified: boolean, deps: StorageDeps): Promise<Storage> {
  makeDirectory(directory);
  const lock = lockDirectory(directory);
  try {
    const marker = new FormatMarker(directory);
    marker.checkReadable();
    const existing = marker.exists;
    const damageDetection = new DamageDetection(directory, databaseIn(directory), deps);
    await damageDetection.inspect(isVerified);
    const kv = new LevelDbKeyValueStore(databaseIn(directory), existing);
    const storage = await start(kv, directory, existing, deps, damageDetection);
    try {
      marker.write();
    } catch (cause) {
      await storage.close();
      throw cause;
    }
    if (!isVerified) damageDetection.watch(storage.forget);
    return {
      ...storage,
      size: () => folderSize(databaseIn(directory)),
      memory: () => kv.memory(),
      close: async () => {
        try {
          await damageDetection.close();
          await storage.close();
          damageDetection.rememberAtClose();
        } finally {
          lock.release();
        }
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function openReplicated(
  directory: string,
  replicate: (local: ReplaceableKeyValueStore) => ReplicatedStore,
  deps: StorageDeps,
): Promise<Storage> {
  makeDirectory(directory);
  const lock = lockDirectory(directory);
  try {
    const local = new LevelDbKeyValueStore(databaseIn(directory), false);
    await local.removeLeftovers();
    const replicated = replicate(local);
    const storage = await start(replicated, directory, false, deps);
    return {
      ...storage,
      replication: () => replicated.metrics,
      size: () => folderSize(databaseIn(directory)),
      memory: () => local.memory(),
      close: () => storage.close().finally(() => lock.release()),
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function start(
  raw: KeyValueStore,
  where: string,
  marked: boolean,
  deps: StorageDeps,
  damageDetection?: DamageDetection,
): Promise<Storage & { readonly forget: () => void }> {
  const { budget = new TimeBudget(deps.clock, deps.scheduler) } = deps;
  raw.budget = budget;
  deps.onProgress?.({ work: "opening the database" });
  await raw.open();
  const kv =
    damageDetection === undefined ? raw : new QuarantiningKeyValueStore(raw, damageDetection.quarantine);
  try {
    const chain = await damageDetection?.begin(raw, hostBootId());
    await checkFormat(kv, where, marked);
    await completeRunIndex(kv, deps.onProgress);
    const heads = new ThreadHeads(kv);
    const readMarks = (): Promise<void> =>
      deletions.readMarks().catch((error: unknown) => {
        deps.logger.warn("the marks of deleted data could not be read", { error: withCauses(error) });
      });
    const committer = new Committer(
      kv,
      deps,
      {
        failed: () => {
          heads.clear();
          deletions.clear();
        },
        reopened: readMarks,
        healed: () => deletions.resume(),
      },
      chain,
    );
    const order = new WriteOrder();
    const deletions = new MarkedDeletions(kv, committer, order, deps.logger);
    await readMarks();
    deletions.resume();
    const outbox = new KeyValueOutbox(kv, committer, order);
    const items = new KeyValueItems(kv, committer, heads, order);
    const isHidden = () => damageDetection?.quarantine.isEmpty === false;
    return {
      journal: new KeyValueJournal(kv, committer, heads, deletions, outbox, order, budget),
      catalog: new KeyValueCatalog(kv, committer, order, budget, items),
      outbox,
      crons: new KeyValueCrons(kv, committer, order),
      lostRunEnds: await KeyValueLostRunEnds.open(kv, budget, isHidden),
      stats: () => committer.stats,
      size: async () => undefined,
      memory: () => undefined,
      replication: () => undefined,
      damage: () => damageDetection?.quarantine.counts ?? { threads: 0, keys: 0, ranges: 0 },
      refusedThreads: () => (damageDetection?.quarantine ?? new QuarantinedData()).threads(raw),
      verifying: () => damageDetection?.verifying,
      forget: () => heads.forgetRecords(),
      findings: () => damageDetection?.findings.list ?? [],
      check: () => committer.check(),
      close: async () => {
        await committer.close();
        await chain?.close();
        await kv.close();
      },
    };
  } catch (error) {
    await kv.close();
    throw error;
  }
}

/**
 * Rebuilds the database of a data directory from its remaining files, and its indexes from the records. Rewrites a damaged format marker.
 * `verify` reports what could not be restored.
 * @throws ServiceError `storage.version` when the marker is damaged and the database does not say which format it has
 */
export async function repairStorage(directory: string, deps: StorageDeps): Promise<void> {
  await withoutServer(directory, deps, async (damageDetection, database) => {
    await damageDetection.record();
    deps.onProgress?.({ work: "rebuilding the database" });
    await rebuildLevelDb(database);
    return "rebuilt";
  });
}

/**
 * Accepts that data was lost: from now on all data is served again, in its stored state. Returns the accepted findings.
 * @throws ServiceError `journal.damaged` when a repair has to rebuild the database first
 */
export async function acceptDamage(directory: string, deps: StorageDeps): Promise<readonly DamageRecord[]> {
  return withoutServer(directory, deps, async (damageDetection, _, marker) => {
    marker.checkReadable();
    await damageDetection.inspect(true);
    return "accepted";
  });
}

async function withoutServer(
  directory: string,
  deps: StorageDeps,
  before: (
    damageDetection: DamageDetection,
    database: string,
    marker: FormatMarker,
  ) => Promise<"rebuilt" | "accepted">,
): Promise<readonly DamageRecord[]> {
  const path = resolve(directory);
  const lock = lockDirectory(path);
  try {
    const marker = new FormatMarker(path);
    const damageDetection = new DamageDetection(path, databaseIn(path), deps);
    const done = await before(damageDetection, databaseIn(path), marker);
    const kv = new LevelDbKeyValueStore(databaseIn(path), true);
    await kv.open();
    let accepted: readonly DamageRecord[] = [];
    try {
      if (done === "rebuilt") {
        deps.onProgress?.({ work: "merging the tables" });
        await kv.compact();
      }
      if (marker.isDamaged) await checkStoredFormat(kv, directory);
      const chain = await damageDetection.begin(kv, hostBootId(), true);
      await checkFormat(kv, directory, marker.exists);
      await repairIndex(kv, deps.onProgress);
      if (done === "accepted")
        accepted = damageDetection.findings.accept(new Date(deps.clock.now()).toISOString());
      await chain.close();
    } finally {
      await kv.close();
    }
    if (marker.isDamaged) marker.write();
    damageDetection.remember();
    return accepted;
  } finally {
    lock.release();
  }
}

/**
 * Copies a data directory to a new or empty directory, even while a server uses it. The copy has the state of the data at one moment during
 * the call, so it contains all writes that were acknowledged before the call.
 * @throws ServiceError `storage.unavailable`
 */
export async function backupStorage(
  directory: string,
  target: string,
  options: BackupOptions = {},
): Promise<void> {
  const [from, to] = [resolve(directory), resolve(target)];
  if (`${to}${sep}`.startsWith(`${from}${sep}`)) {
    throw new ServiceError(
      "storage.unavailable",
      `The target ${target} is within the data directory ${directory}; choose another one`,
    );
  }
  await copyDatabase(databaseIn(from), databaseIn(to), from, options);
  for (const name of [MARKER_FILE, DAMAGE_FILE]) {
    if (existsSync(join(from, name))) await copyFile(join(from, name), join(to, name));
  }
}

/** True if a directory contains the data of a server, even if it is damaged. */
export function hasData(directory: string): boolean {
  return [databaseIn(directory), join(directory, MARKER_FILE)].some((path) => existsSync(path));
}

/** The directory of the database in a data directory. */
export function databaseIn(directory: string): string {
  return join(directory, "level");
}
