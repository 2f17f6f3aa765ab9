import { existsSync } from "node:fs";
import { unendedRunChange } from "../../actors/missing-run-end.ts";
import { silentLogger } from "../platform/log.ts";
import { ServiceError } from "../model/errors.ts";
import { noFailpoints } from "../ports/failpoints.ts";
import { mayHaveHeld } from "../storage/integrity.ts";
import { acceptDamage, backupStorage, openStorage, repairStorage } from "../storage/open.ts";
import { systemClock } from "../platform/clock.ts";
import { systemScheduler } from "../platform/scheduler.ts";

const deps = {
  clock: systemClock,
  scheduler: systemScheduler,
  failpoints: noFailpoints,
  logger: silentLogger,
};

/** Prints each damage found, one line each. Returns their number. */
export async function check(data: string, say: (line: string) => void): Promise<number> {
  mustExist(data);
  const storage = await openStorage({ kind: "level", directory: data, isVerified: true }, deps);
  let found = 0;
  try {
    for (const finding of storage.findings()) {
      found++;
      say(`${finding.what}; ${JSON.stringify(mayHaveHeld(finding))}`);
    }
    for await (const { key, what } of storage.journal.verify()) {
      found++;
      say(key.thread === "" ? what : `thread ${key.thread}: ${what}`);
    }
  } finally {
    await storage.close();
  }
  say(found === 0 ? `${data} is whole` : `${data}: ${found} damaged`);
  return found;
}

export async function repair(data: string): Promise<void> {
  mustExist(data);
  await repairStorage(data, deps);
  await endRuns(data);
}

/** Ends runs that shutdowns of older versions left without an end. */
async function endRuns(data: string): Promise<void> {
  const { journal, unended, close } = await openStorage({ kind: "level", directory: data }, deps);
  try {
    for await (const found of unended.find()) {
      const { key } = found;
      const thread = await journal.thread(key);
      if (thread === undefined) continue;
      const { epoch, seq } = thread;
      await journal.append({
        key,
        fence: { epoch, seq },
        kind: "mended",
        durable: true,
        thread: { ...thread, seq: seq + 1 },
        ...unendedRunChange(found, deps.clock.now()),
      });
    }
    await unended.noteNone();
  } finally {
    await close();
  }
}

/** Accepts the losses that were found, and prints them. */
export async function accept(data: string, say: (line: string) => void): Promise<void> {
  mustExist(data);
  const accepted = await acceptDamage(data, deps);
  for (const finding of accepted) say(`accepted: ${finding.what}; ${JSON.stringify(mayHaveHeld(finding))}`);
  say(
    accepted.length === 0 ? `${data}: there is no loss to accept` : `${data} is served again as it is stored`,
  );
}

export async function backup(data: string, target: string): Promise<void> {
  mustExist(data);
  await backupStorage(data, target);
}

/** Opening the storage would create the directory. */
function mustExist(data: string): void {
  if (!existsSync(data))
    throw new ServiceError("storage.unavailable", `There is no data directory ${data}; name it with --data`);
}
