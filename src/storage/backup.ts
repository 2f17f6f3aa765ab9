import { copyFile, link, mkdir, mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { ServiceError } from "../model/errors.ts";

/** Tries: between two of them LevelDB has written a table, which it does seconds apart at most. */
const TRIES = 50;

/** Files that are never changed once they are whole. */
const TABLE = /\.(ldb|sst)$/;

/**
 * Copies a LevelDB that another process may be writing to. What belongs to a database is said by its manifest: while that is
 * the same before and after, no file came or went between, and the log is a piece of itself from its start: what is copied
 * is what a crash would have left, and LevelDB opens that. Tables are linked first, in no time, and copied afterwards.
 */
export async function copyDatabase(from: string, to: string, workspace: string): Promise<void> {
  if ((await manifestOf(from)) === undefined) {
    throw new ServiceError("storage.unavailable", `There is no data in ${workspace}`);
  }
  await makeEmpty(to);
  // Beside the database: links do not cross file systems.
  const staging = await mkdtemp(join(workspace, "backup-"));
  try {
    for (let tries = 1; !(await stage(from, staging)); tries++) {
      await empty(staging);
      if (tries === TRIES)
        throw new ServiceError(
          "storage.unavailable",
          `${workspace} changed faster than it could be copied; stop its server, or try again`,
        );
    }
    for (const name of await readdir(staging)) await copyFile(join(staging, name), join(to, name));
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

/** One try. False: the database has changed its files meanwhile. */
async function stage(from: string, staging: string): Promise<boolean> {
  const before = await manifestOf(from);
  if (before === undefined) return false;
  try {
    for (const name of await readdir(from)) {
      // Its lock and its own chatter are no data, nor are the files that a repair has put aside.
      if (name === "LOCK" || name === "lost" || name.startsWith("LOG")) continue;
      await (TABLE.test(name) ? linkOrCopy : copyFile)(join(from, name), join(staging, name));
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
  return (await manifestOf(from)) === before;
}

/** Which manifest is the current one, and how long it is: it is only ever appended to. */
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
    // A file system without links.
    await copyFile(from, to);
  }
}

async function makeEmpty(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  if ((await readdir(directory)).length > 0) {
    throw new ServiceError("storage.unavailable", `There is something in ${directory} already`);
  }
}

async function empty(directory: string): Promise<void> {
  for (const name of await readdir(directory)) await rm(join(directory, name));
}
