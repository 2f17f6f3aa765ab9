import { accessSync, constants, existsSync } from "node:fs";
import { join, relative } from "node:path";
import { lostRunEndChange } from "../../actors/restore-run-end.ts";
import { silentLogger } from "../platform/log.ts";
import { ServiceError } from "../model/errors.ts";
import { noFailpoints } from "../ports/failpoints.ts";
import type { OnProgress } from "../ports/work-progress.ts";
import { threadMapKey } from "../model/thread.ts";
import type { DamageRecord } from "../storage/damage-records.ts";
import { affectedNames } from "../storage/damage-detection.ts";
import { threadLabel } from "../storage/key-labels.ts";
import { STOP_SIGNALS } from "./process-lifecycle.ts";
import type { BackupOptions } from "../storage/backup.ts";
import { acceptDamage, backupStorage, hasData, openStorage, repairStorage } from "../storage/open-storage.ts";
import { systemClock } from "../platform/clock.ts";
import { systemScheduler } from "../platform/scheduler.ts";
import { copyShardCount, databaseDirectories } from "./shard-directories.ts";

const deps = {
  clock: systemClock,
  scheduler: systemScheduler,
  failpoints: noFailpoints,
  logger: silentLogger,
};

/**
 * Checks the data. Prints a line for each damage, then the numbers of damages and of affected threads; with several shards, for each shard
 * separately. Returns the number of damages.
 */
export async function check(
  data: string,
  say: (line: string) => void,
  onProgress?: OnProgress,
): Promise<number> {
  let found = 0;
  for (const directory of databaseDirectories(data)) found += await checkDatabase(directory, say, onProgress);
  return found;
}

async function checkDatabase(
  data: string,
  say: (line: string) => void,
  onProgress: OnProgress | undefined,
): Promise<number> {
  mustHaveData(data);
  mustBeWritable(data);
  const options = { kind: "level", directory: data, isVerified: true } as const;
  const storage = await openStorage(options, { ...deps, ...(onProgress && { onProgress }) });
  const findings = storage.findings();
  let found = findings.length;
  const threads = new Set<string>();
  let refused = 0;
  try {
    for (const finding of findings) say(lineOf(finding));
    for await (const key of storage.refusedThreads()) threads.add(threadMapKey(key));
    refused = threads.size;
    for await (const { key, what } of storage.journal.verify(undefined, onProgress)) {
      found++;
      if (key.thread !== "") threads.add(threadMapKey(key));
      say(key.thread === "" ? what : `${threadLabel(key)}: ${what}`);
    }
  } finally {
    await storage.close();
  }
  say(
    found === 0
      ? `${data} is whole`
      : `${data}: ${count(found, "finding")}, ${count(threads.size, "thread")} affected (${refused} refused)`,
  );
  if (findings.length > 0) say('Restore a backup, or accept what is lost with "heddle repair --accept"');
  return found;
}

function lineOf(finding: DamageRecord): string {
  const { names, more } = affectedNames(finding);
  if (names.length === 0) return finding.what;
  return `${finding.what}; may have held ${names.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

export async function repair(data: string, onProgress?: OnProgress): Promise<void> {
  for (const directory of databaseDirectories(data)) {
    mustHaveData(directory);
    await repairStorage(directory, { ...deps, ...(onProgress && { onProgress }) });
    onProgress?.({ work: "looking for runs without an end" });
    await endUnendedRuns(directory);
  }
}

/** Records the end of runs that have ended without a record of their end, because an older version was shut down while they ran. */
async function endUnendedRuns(data: string): Promise<void> {
  const { journal, lostRunEnds, close } = await openStorage({ kind: "level", directory: data }, deps);
  try {
    for await (const found of lostRunEnds.find()) {
      const { key } = found;
      const thread = await journal.thread(key);
      if (thread === undefined) continue;
      const { epoch, seq } = thread;
      await journal.append({
        key,
        fence: { epoch, seq },
        kind: "repaired",
        durable: true,
        thread: { ...thread, seq: seq + 1 },
        ...lostRunEndChange(found, deps.clock.now()),
      });
    }
    await lostRunEnds.noteNone();
  } finally {
    await close();
  }
}

/** Marks the damage that checks have found as accepted, so that the remaining data is served again. Prints what was accepted. */
export async function accept(
  data: string,
  say: (line: string) => void,
  onProgress?: OnProgress,
): Promise<void> {
  const accepted: DamageRecord[] = [];
  for (const directory of databaseDirectories(data)) {
    mustHaveData(directory);
    accepted.push(...(await acceptDamage(directory, { ...deps, ...(onProgress && { onProgress }) })));
  }
  for (const finding of accepted) say(`accepted: ${lineOf(finding)}`);
  say(
    accepted.length === 0 ? `${data}: there is no loss to accept` : `${data} is served again as it is stored`,
  );
}

/** Copies all databases of a data directory. A stop signal ends the copying; the working files are removed before the process ends. */
export async function backup(data: string, target: string, onProgress?: OnProgress): Promise<void> {
  const aborter = new AbortController();
  const abort = (signal: NodeJS.Signals) =>
    aborter.abort(
      new ServiceError("storage.unavailable", `${signal}: the copy in ${target} is not complete; delete it`),
    );
  for (const name of STOP_SIGNALS) process.once(name, abort);
  try {
    await copyAll(data, target, { signal: aborter.signal, ...(onProgress && { onProgress }) });
  } finally {
    for (const name of STOP_SIGNALS) process.off(name, abort);
  }
}

async function copyAll(data: string, target: string, options: BackupOptions): Promise<void> {
  for (const directory of databaseDirectories(data)) {
    mustHaveData(directory);
    await backupStorage(directory, join(target, relative(data, directory)), options);
  }
  // The file with the number of shards is copied last, so that an incomplete copy does not count as a data directory.
  copyShardCount(data, target);
}

/** Throws unless the directory has data. Called before the storage is opened, because opening creates a database if there is none. */
function mustHaveData(data: string): void {
  if (!existsSync(data))
    throw new ServiceError("storage.unavailable", `There is no data directory ${data}; name it with --data`);
  if (!hasData(data))
    throw new ServiceError(
      "storage.unavailable",
      `There is no data in ${data}; name the data directory with --data`,
    );
}

/** Throws unless the directory is writable, because LevelDB cannot open a database without writing to it. */
function mustBeWritable(data: string): void {
  try {
    accessSync(data, constants.W_OK);
  } catch (cause) {
    throw new ServiceError(
      "storage.unavailable",
      `The directory ${data} cannot be written to: ${(cause as Error).message}; a check writes to the data, so make a copy with "heddle backup DIR", and check that`,
      { cause },
    );
  }
}
