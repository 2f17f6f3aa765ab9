import { expect, test } from "vitest";
import { graph, list, value } from "../../src/index.ts";
import type { ThreadKey } from "../../src/model/thread.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import { Server } from "./server.ts";

/** A graph of three steps; the test supplies the last one. */
function steps(last: (ask: (question: unknown) => Promise<unknown>) => Promise<unknown>) {
  const ran: string[] = [];
  const inner = graph({
    state: { log: list<string>(), answer: value<unknown>() },
    nodes: {
      b: async () => {
        ran.push("b");
        return { log: ["b"] };
      },
      c: async (_, ctx) => {
        ran.push("c");
        return { log: ["c"], answer: await last((question) => ctx.interrupt(question)) };
      },
    },
    edges: { start: "b", b: "c" },
  });
  const outer = graph({
    state: { log: list<string>(), answer: value<unknown>() },
    nodes: {
      a: async () => {
        ran.push("a");
        return {};
      },
      inner,
    },
    edges: { start: "a", a: "inner" },
  });
  return { outer, ran };
}

const exit = { durability: "exit" } as const;

async function history(server: Server, key: ThreadKey, ns = "") {
  const found = await server.storage.journal.history(key, { ns, limit: 100 });
  return found.map(({ step, parent, source }) => ({ step, parent, source }));
}

async function namespace(
  server: Server,
  key: ThreadKey,
  run: Parameters<Server["facts"]>[1],
): Promise<string> {
  const facts = await server.facts(key, run);
  return facts.flatMap((fact) => ("ns" in fact && fact.ns !== "" ? [fact.ns] : []))[0] ?? "";
}

test("one checkpoint at the end, with all that led to it; its events show every state", async () => {
  const { outer } = steps(async () => 1);
  const server = await Server.start(outer);
  const key = await server.thread();
  const run = await server.admit(key, { ...exit, input: { log: ["in"] } });
  expect((await server.do(server.system.settled(key, run.run_id)))?.status).toBe("success");
  expect(await history(server, key)).toEqual([{ step: 2, parent: null, source: "loop" }]);
  expect(await history(server, key, await namespace(server, key, run))).toEqual([]);
  expect(await server.values(key)).toEqual({ log: ["in", "in", "b", "c"], answer: 1 });
  const facts = await server.facts(key, run);
  const states = facts.flatMap((fact) =>
    fact.t === "checkpoint" && fact.ns === "" ? [fact.inline?.values] : [],
  );
  expect(states).toEqual([
    { log: [] },
    { log: ["in"] },
    { log: ["in"] },
    { log: ["in", "in", "b", "c"], answer: 1 },
  ]);

  const next = await server.admit(key, { ...exit, input: { log: ["more"] } });
  await server.do(server.system.settled(key, next.run_id));
  const [latest, first] = await server.storage.journal.history(key, { ns: "", limit: 9 });
  expect(latest?.parent).toBe(first?.id);
  expect((await server.values(key))["log"]).toEqual([
    "in",
    "in",
    "b",
    "c",
    "more",
    "in",
    "in",
    "b",
    "c",
    "more",
    "b",
    "c",
  ]);
});

test("after a crash it starts again from its input", async () => {
  const kv = new MemoryKeyValueStore();
  let hangs = true;
  const { outer, ran } = steps(async () => (hangs ? new Promise(() => undefined) : 2));
  const before = await Server.start(outer, { kv });
  const key = await before.thread();
  const run = await before.admit(key, { ...exit });
  await before.scheduler.settle();
  expect(ran).toEqual(["a", "b", "c"]);
  expect(await history(before, key)).toEqual([]);
  before.scheduler.kill();
  hangs = false;
  const server = await Server.start(outer, { kv, seed: 2 });
  expect(await server.do(server.system.settled(key, run.run_id))).toMatchObject({
    status: "success",
    attempt: 2,
  });
  expect(ran).toEqual(["a", "b", "c", "a", "b", "c"]);
  expect((await server.values(key))["log"]).toEqual(["b", "c"]);
});

test("a pause stores what there is, also inside, and is answered from there", async () => {
  const { outer, ran } = steps((ask) => ask("what?"));
  const server = await Server.start(outer);
  const key = await server.thread();
  const run = await server.admit(key, { ...exit });
  await server.do(server.system.settled(key, run.run_id));
  const thread = await server.storage.journal.thread(key);
  expect(thread?.rest).toBe("interrupted");
  expect(Object.values(thread?.interrupts ?? {}).flat()).toMatchObject([{ value: "what?" }]);
  expect(await history(server, key)).toMatchObject([{ step: 1, parent: null }]);
  const ns = await namespace(server, key, run);
  expect(await history(server, key, ns)).toMatchObject([{ step: 1, parent: null }]);

  server.storage.journal.release(key);
  const answer = await server.admit(key, { ...exit, input: null, command: { resume: 3 } });
  await server.do(server.system.settled(key, answer.run_id));
  expect(await server.values(key)).toEqual({ log: ["b", "c"], answer: 3 });
  expect(ran).toEqual(["a", "b", "c", "c"]);
});

test("an error stores what there is: it is gone on with where it failed", async () => {
  let fails = true;
  const { outer, ran } = steps(async () => {
    if (fails) throw new Error("no");
    return 4;
  });
  const server = await Server.start(outer);
  const key = await server.thread();
  const run = await server.admit(key, { ...exit });
  expect((await server.do(server.system.settled(key, run.run_id)))?.status).toBe("error");
  fails = false;
  const again = await server.admit(key, { ...exit, input: null });
  expect((await server.do(server.system.settled(key, again.run_id)))?.status).toBe("success");
  expect(ran).toEqual(["a", "b", "c", "c"]);
  expect(await server.values(key)).toEqual({ log: ["b", "c"], answer: 4 });
});
