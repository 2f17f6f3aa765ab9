import { expect, test } from "vitest";
import { graph, list } from "../../src/index.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import { kwargs } from "../storage/samples.ts";
import { draftOf } from "./draft.ts";
import { Server } from "./server.ts";

const MINUTE = 60_000;

/** Runs until it is aborted. */
const endless = graph({
  state: { log: list<string>() },
  nodes: {
    work: (_, ctx) =>
      new Promise<never>((_resolve, reject) => {
        ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason as Error));
      }),
  },
  edges: { start: "work" },
});

async function startRun(server: Server) {
  const key = await server.thread();
  const draft = draftOf(server.newId(), { input: {} });
  const limited = { ...draft, kwargs: { ...kwargs({}), ...draft.kwargs, timeout_seconds: 60 } };
  const run = await server.do(server.system.admit(key, limited));
  await server.scheduler.settle();
  return { key, run };
}

test("a run's time is measured by the monotonic clock: one on the wall that is set ends no run", async () => {
  const server = await Server.start(endless);
  const { key, run } = await startRun(server);
  server.clock.jump(24 * 60 * MINUTE);
  await server.scheduler.advance(MINUTE - 1_000);
  expect(await server.record(key, run)).toMatchObject({ status: "pending" });
  await server.scheduler.advance(2_000);
  expect(await server.record(key, run)).toMatchObject({ status: "timeout" });
});

test("after a restart with a clock that is ahead a run has its time", async () => {
  const kv = new MemoryKeyValueStore();
  const first = await Server.start(endless, { kv });
  const { key, run } = await startRun(first);
  first.scheduler.kill();
  const second = await Server.start(endless, { kv, seed: 2, at: first.clock.now() + 24 * 60 * MINUTE });
  await second.scheduler.advance(MINUTE - 1_000);
  expect(await second.record(key, run)).toMatchObject({ status: "pending", attempt: 2 });
  await second.scheduler.advance(2_000);
  expect(await second.record(key, run)).toMatchObject({ status: "timeout" });
});
