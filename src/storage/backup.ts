import { copyFile, link, mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { ServiceError } from "../model/errors.ts";
import type { OnProgress } from "../ports/work-progress.ts";
import { makeDirectory } from "./make-directory.ts";

/**
 * The most attempts to copy a database. An attempt fails if LevelDB writes a table file meanwhile, which happens at most once every few
 * seconds.
 */
const MAX_TRIES = 50;

/** The prefix of the names of folders in which backups collect files. */
const STAGING = "backup-";
/**
 * Milliseconds after which a folder with the prefix {@link STAGING} counts as left behind by a killed backup. No backup takes that long.
 */
const ABANDONED_MS = 24 * 60 * 60 * 1000;

export interface BackupOptions {
  readonly onProgress?: OnProgress;
  /** Stops the backup after the file that is being copied. The incomplete copy remains, the staging folder does not. */
  readonly signal?: AbortSignal;
}

/** The names of tables. The file of a table never changes once it is complete. */
const TABLE = /\.(ldb|sst)$/;

/**
 * Copies a LevelDB database to which another process may be writing. First, all files are staged: tables as hard links, which is fast, and
 * other files as copies. If the manifest, which lists the files of the database, has not changed meanwhile, the staged files are like a
 * database after a crash, which LevelDB can open.
 */
export async function copyDatabase(
  from: string,
  to: string,
  workspace: string,
  { onProgress, signal }: BackupOptions = {},
): Promise<void> {
  if ((await manifestOf(from)) === undefined) {
    throw new ServiceError("storage.unavailable", `There is no data in ${workspace}`);
  }
  await makeEmpty(to);
  // Hard links cannot cross file systems, so the staging folder is in `workspace`, beside the database. If `workspace` is not writable, the
  // folder is in the target folder. If that is on another file system, each table is copied twice.
  const staging = await mkdtemp(join(workspace, STAGING)).catch(() => mkdtemp(join(to, STAGING)));
  try {
    await removeAbandoned(workspace, (await stat(staging)).mtimeMs);
    for (let tries = 1; !(await stage(from, staging)); tries++) {
      signal?.throwIfAborted();
      await empty(staging);
      if (tries === MAX_TRIES)
        throw new ServiceError(
          "storage.unavailable",
          `${workspace} changed faster than it could be copied; stop its server, or try again`,
        );
    }
    const names = await readdir(staging);
    const sizes = await Promise.all(names.map(async (name) => (await stat(join(staging, name))).size));
    const total = sizes.reduce((sum, size) => sum + size, 0);
    let done = 0;
    for (const [i, name] of names.entries()) {
      signal?.throwIfAborted();
      onProgress?.({ work: "copying the files", done, total, unit: "bytes" });
      await copyFile(join(staging, name), join(to, name));
      done += sizes[i] as number;
    }
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

/**
 * Removes the folders of backups that were killed. Their links keep tables on the disk that LevelDB has deleted since.
 * `now` is in milliseconds, from the clock of the file system.
 */
async function removeAbandoned(workspace: string, now: number): Promise<void> {
  for (const name of await readdir(workspace)) {
    if (!name.startsWith(STAGING)) continue;
    const path = join(workspace, name);
    const made = await stat(path).catch(() => undefined);
    if (made !== undefined && now - made.mtimeMs > ABANDONED_MS)
      await rm(path, { recursive: true, force: true }).catch(() => undefined);
  }
}

/** Makes one attempt to stage the files of the database. Returns false if they changed during the attempt. */
async function stage(from: string, staging: string): Promise<boolean> {
  const before = await manifestOf(from);
  if (before === undefined) return false;
  try {
    for (const name of await readdir(from)) {
      // Skips LevelDB's lock and text logs, and the folder with files that a repair has moved away.
      if (name === "LOCK" || name === "lost" || name.startsWith("LOG")) continue;
      await (TABLE.test(name) ? linkOrCopy : copyFile)(join(from, name), join(staging, name));
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
  return (await manifestOf(from)) === before;
}

/** The name and the size of the current manifest, which is append-only. Undefined if there is no database. */
async function manifestOf(directory: string): Promise<string | undefined> {
  try {
    const name = (await readFile(join(directory, "CURRENT"), "utf8")).trim();
    return `${name} ${(await stat(join(directory, name))).size}`;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

async function linkOrCopy(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") throw error;
    // The file system does not allow this link.
    await copyFile(from, to);
  }
}

async function makeEmpty(directory: string): Promise<void> {
  makeDirectory(directory);
  if ((await readdir(directory)).length > 0) {
    throw new ServiceError("storage.unavailable", `There is something in ${directory} already`);
  }
}

async function empty(directory: string): Promise<void> {
  for (const name of await readdir(directory)) await rm(join(directory, name));
}
