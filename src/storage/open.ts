import { mkdirSync } from "node:fs";
import { copyFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { ServiceError, withCauses } from "../model/errors.ts";
import { Budget } from "../ports/budget.ts";
import type { Catalog } from "../ports/catalog.ts";
import type { CronBook } from "../ports/crons.ts";
import type { Journal } from "../ports/journal.ts";
import type { Outbox } from "../ports/outbox.ts";
import { KvCatalog } from "./catalog.ts";
import { Committer, type CommitStats, type CommitterDeps } from "./committer.ts";
import { copyDatabase } from "./backup.ts";
import { KvCrons } from "./crons.ts";
import { checkFormat, Marker, MARKER } from "./format.ts";
import { Heads } from "./heads.ts";
import { KvItems } from "./items.ts";
import { repairIndex } from "./index-repair.ts";
import { KvJournal } from "./journal.ts";
import type { Kv } from "./kv.ts";
import { LevelKv, repairLevel } from "./level.ts";
import { lockDirectory } from "./lock.ts";
import { MemoryKv } from "./memory.ts";
import { KvOutbox } from "./outbox.ts";
import { folderSize } from "./size.ts";
import { Sweeper } from "./sweeper.ts";

export type StorageOptions =
  | { readonly kind: "level"; readonly directory: string }
  | { readonly kind: "memory" }
  | { readonly kind: "kv"; readonly kv: Kv };

export interface StorageDeps extends CommitterDeps {
  /** What long reads go on by; where the caller's own work does too, one for both. */
  readonly budget?: Budget;
}

export interface Storage {
  readonly journal: Journal;
  readonly catalog: Catalog;
  readonly outbox: Outbox;
  readonly crons: CronBook;
  /** Counted since it was opened. */
  stats(): CommitStats;
  /** Bytes that it takes on the disk; undefined where it is on none. It looks at each file. @throws when it cannot */
  size(): Promise<number | undefined>;
  /** Bytes of memory that LevelDB's cache and log take; undefined where there is no LevelDB. */
  memory(): number | undefined;
  /** Resolves when a write has gone through. @throws ServiceError `storage.unavailable` */
  check(): Promise<void>;
  /** Stores what has been taken, refuses what comes, and lets go of the directory. */
  close(): Promise<void>;
}

/**
 * Opens the storage.
 * @throws ServiceError `storage.locked`, `storage.version`, `storage.unavailable`, `journal.damaged`
 */
export async function openStorage(options: StorageOptions, deps: StorageDeps): Promise<Storage> {
  switch (options.kind) {
    case "level":
      return openDirectory(resolve(options.directory), deps);
    case "memory":
      return start(new MemoryKv(), "memory", false, deps);
    case "kv":
      return start(options.kv, "the given store", false, deps);
    default:
      return options satisfies never;
  }
}

async function openDirectory(directory: string, deps: StorageDeps): Promise<Storage> {
  makeDirectory(directory);
  const lock = lockDirectory(directory);
  try {
    const marker = new Marker(directory);
    const existing = marker.format !== undefined;
    const kv = new LevelKv(databaseIn(directory), existing);
    const storage = await start(kv, directory, existing, deps);
    marker.write();
    return {
      ...storage,
      size: () => folderSize(databaseIn(directory)),
      memory: () => kv.memory(),
      close: async () => {
        await storage.close();
        lock.release();
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function start(kv: Kv, where: string, marked: boolean, deps: StorageDeps): Promise<Storage> {
  const { budget = new Budget(deps.clock, deps.scheduler) } = deps;
  kv.budget = budget;
  await kv.open();
  try {
    await checkFormat(kv, where, marked);
    const heads = new Heads(kv);
    const resume = (): Promise<void> =>
      sweeper.resume().catch((error: unknown) => {
        deps.logger.warn("what is to be swept could not be read", { error: withCauses(error) });
      });
    const committer = new Committer(kv, deps, {
      failed: () => {
        heads.clear();
        sweeper.clear();
      },
      healed: () => void resume(),
    });
    const sweeper = new Sweeper(kv, committer, deps.logger);
    await resume();
    const outbox = new KvOutbox(kv, committer);
    return {
      journal: new KvJournal(kv, committer, heads, sweeper, outbox, budget),
      catalog: new KvCatalog(kv, committer, budget, new KvItems(kv, committer, heads)),
      outbox,
      crons: new KvCrons(kv, committer),
      stats: () => committer.stats,
      size: async () => undefined,
      memory: () => undefined,
      check: () => committer.check(),
      close: async () => {
        await committer.close();
        await kv.close();
      },
    };
  } catch (error) {
    await kv.close();
    throw error;
  }
}

/**
 * Rebuilds the database of a data directory from what is left of it, and its indexes from what they are of. What it cannot
 * bring back, `verify` names.
 */
export async function repairStorage(directory: string): Promise<void> {
  const lock = lockDirectory(resolve(directory));
  try {
    const { format } = new Marker(resolve(directory));
    const database = databaseIn(resolve(directory));
    await repairLevel(database);
    const kv = new LevelKv(database, true);
    await kv.open();
    try {
      await checkFormat(kv, directory, format !== undefined);
      await repairIndex(kv);
    } finally {
      await kv.close();
    }
  } finally {
    lock.release();
  }
}

/**
 * Copies a data directory to one that is not there yet or is empty, also while a server runs on it: as it was at one moment of
 * the copying, with everything that was acknowledged before.
 * @throws ServiceError `storage.unavailable`
 */
export async function backupStorage(directory: string, target: string): Promise<void> {
  const [from, to] = [resolve(directory), resolve(target)];
  await copyDatabase(databaseIn(from), databaseIn(to), from);
  await copyFile(join(from, MARKER), join(to, MARKER));
}

function databaseIn(directory: string): string {
  return join(directory, "level");
}

function makeDirectory(directory: string): void {
  try {
    mkdirSync(directory, { recursive: true });
  } catch (cause) {
    throw new ServiceError(
      "storage.unavailable",
      `The data directory ${directory} cannot be made: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    );
  }
}
