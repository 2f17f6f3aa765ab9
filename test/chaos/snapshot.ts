import { cpSync, rmSync } from "node:fs";
import type { Checkpoint, PendingTaskWrites } from "../../src/model/checkpoint.ts";
import { chunkEnd, type EventChunk } from "../../src/model/run-event.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { RunRecord } from "../../src/model/run.ts";
import type { ThreadKey, ThreadRecord } from "../../src/model/thread.ts";
import type { Catalog } from "../../src/ports/catalog.ts";
import { noFailpoints } from "../../src/ports/failpoints.ts";
import type { Damage, Journal } from "../../src/ports/journal.ts";
import { openStorage } from "../../src/storage/open-storage.ts";

/** The number of checkpoints read of each thread, with their states. */
const DEPTH = 60;

export interface StoredCheckpoint {
  readonly checkpoint: Checkpoint;
  readonly values: JsonObject;
  readonly writes: readonly PendingTaskWrites[];
}

export interface StoredRun {
  readonly record: RunRecord;
  /** The same record by its own key, for comparison with the list. */
  readonly single: RunRecord | undefined;
  readonly chunks: readonly EventChunk[];
  readonly nextEvent: number;
}

export interface StoredThread {
  readonly key: ThreadKey;
  readonly record: ThreadRecord | undefined;
  /** Newest first. */
  readonly checkpoints: readonly StoredCheckpoint[];
  /** True if the oldest checkpoint here is the thread's first. */
  readonly whole: boolean;
  readonly runs: readonly StoredRun[];
}

/** The contents of a data directory, read through the storage ports. */
export interface Snapshot {
  readonly threads: readonly StoredThread[];
  /** True if these are all threads. */
  readonly complete: boolean;
  /** The threads in the index of unfinished work. */
  readonly unsettled: readonly string[];
  readonly damage: readonly Damage[];
}

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/**
 * Reads a copy of a dead server's data directory. The original stays untouched, so that recovery finds the state that
 * the kill left.
 */
export async function snapshot(data: string, copy: string, only?: ReadonlySet<string>): Promise<Snapshot> {
  cpSync(data, copy, { recursive: true });
  try {
    return await readStorage({ kind: "level", directory: copy }, only);
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

/** Opens a storage, which may write to it, and reads it. */
export async function readStorage(
  location: Parameters<typeof openStorage>[0],
  only?: ReadonlySet<string>,
): Promise<Snapshot> {
  const storage = await openStorage(location, {
    scheduler: {
      soon: (task) => void setImmediate(task),
      after: (ms, task) => {
        const timer = setTimeout(task, ms).unref();
        return () => clearTimeout(timer);
      },
    },
    clock: { now: () => Date.now(), mono: () => performance.now() },
    failpoints: noFailpoints,
    logger: silent,
  });
  try {
    return await readAll(storage.journal, storage.catalog, only);
  } finally {
    await storage.close();
  }
}

/** The same for an open storage. `only`: the threads to read, in addition to hidden ones; without it, all. */
export async function readAll(
  journal: Journal,
  catalog: Catalog,
  only?: ReadonlySet<string>,
): Promise<Snapshot> {
  const threads: StoredThread[] = [];
  let after: string | undefined;
  for (;;) {
    const page = await catalog.threads("_", { limit: 100, ...(after === undefined ? {} : { after }) });
    for (const key of page) {
      if (only === undefined || only.has(key.thread)) threads.push(await readThread(journal, key));
    }
    after = page.at(-1)?.thread;
    if (after === undefined) break;
  }
  const unsettled: string[] = [];
  const listed = new Set(threads.map(({ key }) => key.thread));
  for await (const key of journal.unsettled()) {
    unsettled.push(key.thread);
    if (listed.has(key.thread)) continue;
    // Hidden threads are in no list.
    const record = await journal.thread(key);
    if (record !== undefined && record.temporary !== null) threads.push(await readThread(journal, key));
  }
  const damage: Damage[] = [];
  if (only === undefined) for await (const found of journal.verify()) damage.push(found);
  else for (const { key } of threads) for await (const found of journal.verify(key)) damage.push(found);
  return { threads, complete: only === undefined, unsettled, damage };
}

async function readThread(journal: Journal, key: ThreadKey): Promise<StoredThread> {
  const heads = await journal.history(key, { ns: "", limit: DEPTH + 1 });
  const checkpoints: StoredCheckpoint[] = [];
  for (const checkpoint of heads.slice(0, DEPTH)) {
    checkpoints.push({
      checkpoint,
      values: await journal.values(key, checkpoint),
      writes: await journal.writes(key, "", checkpoint.id),
    });
  }
  const runs: StoredRun[] = [];
  for (const record of await journal.runs(key, { limit: 1000, offset: 0 })) {
    runs.push({
      record,
      single: await journal.run(key, record.run_id),
      chunks: await readChunks(journal, key, record.run_id),
      nextEvent: await journal.nextEvent(key, record.run_id),
    });
  }
  const record = await journal.thread(key);
  journal.release(key);
  return { key, record, checkpoints, whole: heads.length <= DEPTH, runs };
}

async function readChunks(journal: Journal, key: ThreadKey, run: string): Promise<EventChunk[]> {
  const chunks: EventChunk[] = [];
  let after = -1;
  for (;;) {
    const more = await journal.events(key, run, after, 64);
    const last = more.at(-1);
    if (last === undefined) return chunks;
    chunks.push(...more);
    // The check of contiguity reports a journal that returns the same chunk repeatedly.
    if (chunkEnd(last) - 1 <= after) return chunks;
    after = chunkEnd(last) - 1;
  }
}
