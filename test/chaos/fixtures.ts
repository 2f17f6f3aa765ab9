import type { Checkpoint } from "../../src/model/checkpoint.ts";
import type { Fact } from "../../src/model/run-event.ts";
import type { RunRecord } from "../../src/model/run.ts";
import { newThreadRecord } from "../../src/model/thread.ts";
import type { Frame } from "./client.ts";
import type { Effect } from "./effects.ts";
import type { Snapshot, StoredCheckpoint, StoredRun, StoredThread } from "./snapshot.ts";

export const key = { tenant: "_", thread: "t" };

export const frame = (id: number, data = "{}", event = id === 0 ? "metadata" : "updates"): Frame => ({
  raw: `event: ${event}\ndata: ${data}\nid: ${id}\n\n`,
  id,
  event,
});

export const effect = (run: string, task: string, node = "plan"): Effect => ({
  thread: "t",
  run,
  node,
  task,
  attempt: 1,
  pid: 1,
});

export function checkpoint(
  id: string,
  parent: string | null,
  log: string[],
  more: Partial<Checkpoint> = {},
): StoredCheckpoint {
  return {
    checkpoint: {
      id,
      parent,
      ns: "",
      step: 0,
      source: "loop",
      created_at: 0,
      run_id: "r",
      metadata: {},
      writes: null,
      next: [],
      engine: null,
      graph: "",
      channels: {},
      ...more,
    },
    values: { log },
    writes: [],
  };
}

const custom: Fact = { t: "custom", ns: "", json: "1" };

export function storedRun(status: RunRecord["status"], firsts: readonly number[], next: number): StoredRun {
  const kwargs = { durability: "async" };
  const record = { run_id: "r", status, next_event: next, kwargs } as RunRecord;
  return {
    record,
    single: record,
    nextEvent: next,
    chunks: firsts.map((first) => ({ run_id: "r", first, facts: [custom, custom] })),
  };
}

export function stored(thread: Partial<StoredThread>, unsettled: readonly string[] = []): Snapshot {
  const record = {
    ...newThreadRecord("t", 0, {}),
    checkpoint: thread.checkpoints?.[0]?.checkpoint.id ?? null,
  };
  return {
    complete: true,
    threads: [{ key, record, checkpoints: [], whole: true, runs: [], ...thread }],
    unsettled,
    damage: [],
  };
}
