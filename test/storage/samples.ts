import { someKwargs, someRun } from "../fixtures/runs.ts";
import type { ChannelChange, NewCheckpoint, PendingTaskWrites } from "../../src/model/checkpoint.ts";
import type { EventChunk, Fact } from "../../src/model/run-event.ts";
import type { RunKwargs, RunRecord } from "../../src/model/run.ts";
import { newThreadRecord, type ThreadKey, type ThreadRecord } from "../../src/model/thread.ts";
import type { Append, Journal } from "../../src/ports/journal.ts";

const hex = (n: number, digits: number): string => n.toString(16).padStart(digits, "0");

/** A UUID that sorts by its number. */
export const id = (n: number): string => `0199aaaa-0000-7000-8000-${hex(n, 12)}`;

export const threadKey = (n: number, tenant = "_"): ThreadKey => ({ tenant, thread: id(n) });

export const kwargs = (input: unknown = null): RunKwargs => someKwargs({ input, resumable: true });

export function aRun(key: ThreadKey, n: number, changes: Partial<RunRecord> = {}): RunRecord {
  return someRun({
    run_id: id(n),
    thread_id: key.thread,
    assistant_id: id(900),
    graph_id: "agent",
    created_at: 1_000 + n,
    updated_at: 1_000 + n,
    kwargs: kwargs({ n }),
    multitask_strategy: "enqueue",
    order: n,
    ...changes,
  });
}

export function aCheckpoint(
  n: number,
  parent: number | null,
  changes: { readonly [channel: string]: ChannelChange },
  more: Partial<NewCheckpoint> = {},
): NewCheckpoint {
  return {
    id: id(n),
    parent: parent === null ? null : id(parent),
    ns: "",
    step: n,
    source: "loop",
    created_at: 1_000 + n,
    run_id: null,
    metadata: { made: n },
    writes: null,
    next: [],
    engine: null,
    graph: "hash",
    changes,
    ...more,
  };
}

export const add = (keep: number, ...items: readonly unknown[]): ChannelChange => ({
  kind: "append",
  keep,
  items,
});
export const set = (value: unknown): ChannelChange => ({ kind: "set", value });

/** Custom events: each takes one id. */
export function someEvents(run: string, first: number, count: number): EventChunk {
  const facts: Fact[] = [];
  for (let i = 0; i < count; i++) facts.push({ t: "custom", ns: "", json: String(first + i) });
  return { run_id: run, first, facts };
}

export function someWrites(
  checkpoint: number,
  task: number,
  more: Partial<PendingTaskWrites> = {},
): PendingTaskWrites {
  return {
    ns: "",
    checkpoint: id(checkpoint),
    task: id(task),
    name: `node ${task}`,
    interrupts: [],
    resumes: [],
    steps: {},
    error: null,
    ...more,
  };
}

type Change = Partial<Omit<Append, "key" | "fence" | "thread">> & {
  readonly thread?: Partial<ThreadRecord>;
};

/** Writes to one thread as its actor would: it knows its last write, and does not wait for it. */
export class Writer {
  readonly key: ThreadKey;
  record: ThreadRecord;
  readonly #journal: () => Journal;

  constructor(journal: () => Journal, key: ThreadKey, record = newThreadRecord(key.thread, 1_000, {})) {
    this.#journal = journal;
    this.key = key;
    this.record = record;
  }

  append({ thread, ...change }: Change = {}): Promise<void> {
    const { epoch, seq } = this.record;
    this.record = { ...this.record, ...thread, seq: seq + 1 };
    return this.#journal().append({
      kind: "test",
      durable: true,
      ...change,
      key: this.key,
      fence: { epoch, seq },
      thread: this.record,
    });
  }

  /** An append that starts an attempt of a run. */
  start(run: RunRecord, change: Change = {}): Promise<void> {
    const thread = { epoch: this.record.epoch + 1, active: run.run_id, ...change.thread };
    return this.append({ kind: "started", runs: [run], ...change, thread });
  }

  /** An append that ends the run in progress. */
  settle(run: RunRecord, change: Change = {}): Promise<void> {
    const ended = { ...run, status: "success" as const, ended_at: 2_000 };
    return this.append({
      kind: "settled",
      runs: [ended],
      ...change,
      thread: { active: null, ...change.thread },
    });
  }
}

export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}
