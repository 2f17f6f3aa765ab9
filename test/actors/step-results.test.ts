import { expect, test } from "vitest";
import { graph, list, value } from "../../src/index.ts";
import type { KeyValueStore } from "../../src/ports/key-value-store.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import { Server } from "./server.ts";

/** A store that counts the bytes of the values that are written to it. */
class CountingStore extends MemoryKeyValueStore {
  bytes = 0;

  override batch(...args: Parameters<KeyValueStore["batch"]>): Promise<void> {
    for (const { value: bytes } of args[0]) this.bytes += bytes?.length ?? 0;
    return super.batch(...args);
  }
}

test("each result of ctx.step is written once, not again with every later one", async () => {
  const [steps, size] = [100, 20_000];
  const kv = new CountingStore();
  const server = await Server.start(
    graph({
      state: { n: value(0) },
      nodes: {
        a: async (_, ctx) => {
          let length = 0;
          for (let n = 0; n < steps; n++) {
            // oxlint-disable-next-line no-await-in-loop -- each step is stored before the next one begins
            length += (await ctx.step(`${n}`, () => "x".repeat(size))).length;
          }
          return { n: length };
        },
      },
      edges: { start: "a" },
    }),
    { kv },
  );
  const key = await server.thread();
  const before = kv.bytes;
  const run = await server.admit(key);
  await server.scheduler.settle();
  expect(await server.record(key, run)).toMatchObject({ status: "success" });
  expect(await server.values(key)).toEqual({ n: steps * size });
  expect(kv.bytes - before).toBeGreaterThan(steps * size);
  expect(kv.bytes - before).toBeLessThan(steps * size * 1.2);
});

test("after each crash the steps that were recorded before it are not run again", async () => {
  const kv = new MemoryKeyValueStore();
  const ran: string[] = [];
  let hangsAt = "c";
  const work = graph({
    state: { log: list<number>() },
    nodes: {
      a: async (_, ctx) => {
        const log: number[] = [];
        for (const [n, step] of ["a", "b", "c", "d", "e", "f"].entries()) {
          // oxlint-disable-next-line no-await-in-loop -- each step is stored before the next one begins
          const result = await ctx.step(step, () => {
            ran.push(step);
            return step === hangsAt ? new Promise<number>(() => undefined) : n;
          });
          log.push(result);
        }
        return { log };
      },
    },
    edges: { start: "a" },
  });
  let server = await Server.start(work, { kv });
  const key = await server.thread();
  const run = await server.admit(key);
  for (const [seed, next] of [
    [2, "f"],
    [3, ""],
  ] as const) {
    // oxlint-disable-next-line no-await-in-loop -- one server after the other
    await server.scheduler.settle();
    expect(ran.at(-1)).toBe(hangsAt);
    server.scheduler.kill();
    hangsAt = next;
    // oxlint-disable-next-line no-await-in-loop -- one server after the other
    server = await Server.start(work, { kv, seed });
  }
  expect(await server.do(server.system.settled(key, run.run_id))).toMatchObject({
    status: "success",
    attempt: 3,
  });
  expect(ran).toEqual(["a", "b", "c", "c", "d", "e", "f", "f"]);
  expect(await server.values(key)).toEqual({ log: [0, 1, 2, 3, 4, 5] });
});

test("a rollback takes back the steps of its run, and keeps those from before", async () => {
  const ran: string[] = [];
  const asks = graph({
    state: { answer: value<unknown>() },
    nodes: {
      a: async (_, ctx) => {
        const step = (name: string) => ctx.step(name, () => ran.push(name));
        await step("a");
        await step("b");
        const answer = await ctx.interrupt("what?");
        await step("c");
        await step("d");
        await step("e");
        if (answer !== "never") return { answer };
        return new Promise<never>((_, reject) =>
          ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason as Error)),
        );
      },
    },
    edges: { start: "a" },
  });
  const server = await Server.start(asks);
  const key = await server.thread();
  const first = await server.admit(key);
  await server.do(server.system.settled(key, first.run_id));
  expect(ran).toEqual(["a", "b"]);
  const gone = await server.admit(key, { input: null, command: { resume: "never" } });
  await server.scheduler.settle();
  expect(ran).toEqual(["a", "b", "c", "d", "e"]);
  await server.do(server.system.cancel(key, gone.run_id, "rollback"));
  const last = await server.admit(key, { input: null, command: { resume: "done" } });
  await server.do(server.system.settled(key, last.run_id));
  expect(ran).toEqual(["a", "b", "c", "d", "e", "c", "d", "e"]);
  expect(await server.values(key)).toEqual({ answer: "done" });
});
