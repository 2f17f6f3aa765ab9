import { expect, test } from "vitest";
import { defaultLimits } from "../../actors/create-system.ts";
import { findInconsistency, INCONSISTENT_WRITE_MESSAGE } from "../../actors/thread/record-invariants.ts";
import { endedRun, newRun } from "../../actors/thread/record-changes.ts";
import { graph, list } from "../../src/index.ts";
import type { RunRecord } from "../../src/model/run.ts";
import { newThreadRecord, type ThreadRecord } from "../../src/model/thread.ts";
import { LiveThread, type LiveThreadOwner } from "../../actors/thread/live-thread.ts";
import { draftOf } from "./draft.ts";
import { Server } from "./server.ts";

const thread: ThreadRecord = { ...newThreadRecord("t", 0), seq: 7, next_run: 3 };
const run = (id: string, order = 2): RunRecord => ({
  ...newRun(thread, draftOf(id, {}, "reject"), 0),
  order,
});
const working: ThreadRecord = { ...thread, active: "a", queue: ["b"], delayed: [{ run: "c", due: 9 }] };
const end = (id: string) => endedRun(run(id), "success", 1);

test.each<[string, ThreadRecord, ThreadRecord, { runs?: RunRecord[]; forget?: string[] }]>([
  ["nothing about runs", working, working, {}],
  ["the run in progress", working, working, { runs: [run("a")] }],
  ["an end", working, { ...working, active: null }, { runs: [end("a")] }],
  ["a run taken back", working, { ...working, active: null }, { forget: ["a"] }],
  ["the next one begins", working, { ...working, active: "b", queue: [] }, { runs: [end("a"), run("b")] }],
  ["a new run", working, { ...working, queue: ["b", "new"], next_run: 4 }, { runs: [run("new", 3)] }],
  ["the time of one has come", working, { ...working, queue: ["b", "c"], delayed: null }, {}],
])("what fits the thread is written: %s", (_, before, after, change) => {
  expect(findInconsistency(before, after, change)).toBeUndefined();
});

test.each<[string, ThreadRecord, ThreadRecord, { runs?: RunRecord[]; forget?: string[] }]>([
  ["of a run that is past", thread, thread, { runs: [run("a")] }],
  ["of a run that ends and is still in progress", working, working, { runs: [end("a")] }],
  ["that loses the run in progress", working, { ...working, active: null }, {}],
  ["that loses one in the queue", working, { ...working, queue: [] }, { runs: [run("a")] }],
  ["that loses a delayed one", working, { ...working, delayed: null }, {}],
  ["that takes up a run that is past", thread, { ...thread, active: "a" }, { runs: [run("a")] }],
  ["that takes up a run without its record", thread, { ...thread, queue: ["a"] }, {}],
])("what would damage it is not: a write %s", (_, before, after, change) => {
  expect(findInconsistency(before, after, change)).toEqual(expect.stringContaining("run "));
});

test("such a write is refused and logged, nothing of it is stored, and the thread is served again", async () => {
  const warned: string[] = [];
  const work = graph({
    state: { log: list<string>() },
    nodes: { work: async () => ({ log: ["worked"] }) },
    edges: { start: "work" },
  });
  const server = await Server.start(work, { warned });
  const key = await server.thread();
  const done = await server.admit(key);
  const record = await server.do(server.system.settled(key, done.run_id));
  const stored = await server.storage.journal.thread(key);
  if (record === undefined || stored === undefined) throw new Error("it was stored");
  const given: unknown[] = [];
  const owner = {
    broken: (_: LiveThread, cause: unknown) => given.push(cause),
  } as unknown as LiveThreadOwner;
  const logger = { error: (message: string) => warned.push(message) };
  const deps = { ...server, journal: server.storage.journal, logger, limits: defaultLimits } as never;
  const liveThread = new LiveThread(key, stored, deps, owner);
  const late = { ...record, status: "pending" as const };
  const written = liveThread.write({ kind: "parked", durable: true, runs: [late] }, (same) => same);
  await expect(written).rejects.toMatchObject({ code: "journal.conflict" });
  expect(warned).toEqual([INCONSISTENT_WRITE_MESSAGE]);
  expect(given).toHaveLength(1);
  expect(await server.record(key, done)).toEqual(record);
  const next = await server.admit(key);
  expect((await server.do(server.system.settled(key, next.run_id)))?.status).toBe("success");
});
