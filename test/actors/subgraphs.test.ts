import { describe, expect, test } from "vitest";
import { graph, list, send, to, value } from "../../src/index.ts";
import type { Fact } from "../../src/model/run-event.ts";
import type { ThreadKey } from "../../src/model/thread.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import { Server } from "./server.ts";

/** A node that waits until the test releases it, or its signal is aborted. */
function gate() {
  const waiting: (() => void)[] = [];
  const wait = (signal: AbortSignal | null) =>
    new Promise<void>((resolve, reject) => {
      waiting.push(resolve);
      signal?.addEventListener("abort", () => reject(signal.reason as Error));
    });
  return { wait, waiting, open: () => waiting.splice(0).forEach((go) => go()) };
}

/** A subgraph of two steps. `ran` records which nodes ran; `second` is the function of the second one. */
function nested(
  second: (signal: AbortSignal, ask: (question: unknown) => Promise<unknown>) => Promise<unknown>,
) {
  const ran: string[] = [];
  const inner = graph({
    state: { log: list<string>(), answer: value<unknown>() },
    nodes: {
      one: async () => {
        ran.push("one");
        return { log: ["one"] };
      },
      two: async (_, ctx) => {
        ran.push("two");
        return { log: ["two"], answer: await second(ctx.signal, (question) => ctx.interrupt(question)) };
      },
    },
    edges: { start: "one", one: "two" },
  });
  const outer = graph({
    state: { log: list<string>(), answer: value<unknown>() },
    nodes: {
      before: async () => {
        ran.push("before");
        return {};
      },
      inner: { run: inner, retry: { attempts: 2, initial: 10 } },
      after: async () => {
        ran.push("after");
        return { log: ["after"] };
      },
    },
    edges: { start: "before", before: "inner", inner: "after" },
  });
  return { outer, ran };
}

/** Everything stored of a thread below its root: checkpoints and pending writes. */
async function within(server: Server, key: ThreadKey, run: { readonly run_id: string }) {
  const { journal } = server.storage;
  const facts = await server.facts(key, run as never);
  const names = new Set(facts.flatMap((fact) => ("ns" in fact && fact.ns !== "" ? [fact.ns] : [])));
  const found = [];
  for (const ns of names) {
    for (const { id, step } of await journal.history(key, { ns, limit: 100 })) {
      found.push({ ns, step, left: await journal.writes(key, ns, id) });
    }
  }
  return found;
}

/** The run's record when it has ended; advances the clock by up to two seconds. */
async function end(server: Server, key: ThreadKey, run: { readonly run_id: string }) {
  await server.scheduler.advance(2_000);
  return server.do(server.system.settled(key, run.run_id));
}

test("a stop reaches the bodies of a subgraph, and what it has done is gone on from", async () => {
  const { wait, waiting, open } = gate();
  const { outer, ran } = nested(async (signal) => wait(signal));
  const server = await Server.start(outer);
  const key = await server.thread();
  const run = await server.admit(key);
  await server.scheduler.settle();
  expect(waiting).toHaveLength(1);
  await server.do(server.system.cancel(key, run.run_id, "interrupt"));
  expect((await end(server, key, run))?.status).toBe("interrupted");

  const again = await server.admit(key, { input: null });
  await server.scheduler.settle();
  open();
  waiting.at(-1)?.();
  await server.scheduler.settle();
  open();
  expect((await end(server, key, again))?.status).toBe("success");
  expect(ran).toEqual(["before", "one", "two", "two", "after"]);
});

test("a body that does not listen is left behind after the grace, the tree of actors with it", async () => {
  const { wait, waiting } = gate();
  const { outer } = nested(async () => wait(null));
  const server = await Server.start(outer);
  const key = await server.thread();
  const run = await server.admit(key);
  await server.scheduler.settle();
  expect(waiting).toHaveLength(1);
  await server.do(server.system.cancel(key, run.run_id, "interrupt"));
  expect((await end(server, key, run))?.status).toBe("interrupted");
  expect(server.system.counts.busy).toBe(0);
});

test("a failure inside fails the task, which the policy of its node tries again, from where it got to", async () => {
  let fails = 1;
  const { outer, ran } = nested(async () => {
    if (fails-- > 0) throw new Error("not yet");
    return "well";
  });
  const server = await Server.start(outer);
  const key = await server.thread();
  const run = await server.admit(key);
  expect((await end(server, key, run))?.status).toBe("success");
  expect(ran).toEqual(["before", "one", "two", "two", "after"]);
  expect((await server.values(key))["answer"]).toBe("well");
});

test("one failure too many ends the run with the error inside; it is gone on with there", async () => {
  let fails = 2;
  const { outer, ran } = nested(async () => {
    if (fails-- > 0) throw new RangeError("never");
    return 1;
  });
  const server = await Server.start(outer);
  const key = await server.thread();
  const run = await server.admit(key);
  const ended = await end(server, key, run);
  expect(ended?.error).toMatchObject({ error: "RangeError", message: "never" });
  expect((await end(server, key, await server.admit(key, { input: null })))?.status).toBe("success");
  expect(ran).toEqual(["before", "one", "two", "two", "two", "after"]);
});

describe("after the server is gone in the middle of a subgraph", () => {
  test("attempt 2 goes on from its checkpoints", async () => {
    const kv = new MemoryKeyValueStore();
    const { wait, waiting } = gate();
    const { outer, ran } = nested(async () => wait(null));
    const before = await Server.start(outer, { kv });
    const key = await before.thread();
    const run = await before.admit(key);
    await before.scheduler.settle();
    expect(waiting).toHaveLength(1);
    before.scheduler.kill();

    const server = await Server.start(outer, { kv, seed: 2 });
    await server.scheduler.settle();
    waiting.at(-1)?.();
    const ended = await end(server, key, run);
    expect(ended).toMatchObject({ status: "success", attempt: 2 });
    expect(ran).toEqual(["before", "one", "two", "two", "after"]);
    expect((await server.values(key))["log"]).toEqual(["one", "two", "after"]);
  });

  test("an answer that was given is not asked for again", async () => {
    const kv = new MemoryKeyValueStore();
    const { wait, waiting } = gate();
    const { outer, ran } = nested(async (_, ask) => {
      const answer = await ask("which?");
      await wait(null);
      return answer;
    });
    const before = await Server.start(outer, { kv });
    const key = await before.thread();
    const asked = await before.admit(key);
    await end(before, key, asked);
    const run = await before.admit(key, { input: null, command: { resume: "this" } });
    await before.scheduler.settle();
    expect(waiting).toHaveLength(1);
    before.scheduler.kill();

    const server = await Server.start(outer, { kv, seed: 2 });
    await server.scheduler.settle();
    waiting.at(-1)?.();
    expect((await end(server, key, run))?.status).toBe("success");
    expect((await server.values(key))["answer"]).toBe("this");
    expect(ran).toEqual(["before", "one", "two", "two", "two", "after"]);
  });
});

test("a rollback takes back what the run did inside, answers too", async () => {
  const { wait, open } = gate();
  let asks = 0;
  const { outer } = nested(async (_, ask) => {
    asks++;
    const answer = await ask("which?");
    await wait(null);
    return answer;
  });
  const server = await Server.start(outer);
  const key = await server.thread();
  const first = await server.admit(key);
  await end(server, key, first);
  const was = await within(server, key, first);
  const wrong = await server.admit(key, { input: null, command: { resume: "wrong" } });
  await server.scheduler.settle();
  await server.do(server.system.cancel(key, wrong.run_id, "rollback"));
  await end(server, key, wrong);
  expect(await within(server, key, first)).toEqual(was);
  expect((await server.storage.journal.thread(key))?.rest).toBe("interrupted");
  open();
  const right = await server.admit(key, { input: null, command: { resume: "right" } });
  await server.scheduler.settle();
  open();
  expect((await end(server, key, right))?.status).toBe("success");
  expect((await server.values(key))["answer"]).toBe("right");
  expect(asks).toBe(3);
});

test("a rollback of the run that made them leaves no checkpoint inside", async () => {
  const { wait } = gate();
  const { outer } = nested(async () => wait(null));
  const server = await Server.start(outer);
  const key = await server.thread();
  const run = await server.admit(key);
  await server.scheduler.settle();
  const facts = await server.facts(key, run);
  const ns = facts.flatMap((fact) => ("ns" in fact && fact.ns !== "" ? [fact.ns] : []))[0] ?? "";
  expect(await server.storage.journal.history(key, { ns, limit: 9 })).not.toEqual([]);
  await server.do(server.system.cancel(key, run.run_id, "rollback"));
  await end(server, key, run);
  expect(await server.storage.journal.history(key, { ns, limit: 9 })).toEqual([]);
});

test("a limit of time of the node ends the graph that it is, with its bodies", async () => {
  const { wait } = gate();
  const aborted: unknown[] = [];
  const inner = graph({
    state: { log: list<string>() },
    nodes: {
      slow: async (_, ctx) => {
        ctx.signal.addEventListener("abort", () => aborted.push(ctx.ns));
        await wait(null);
        return {};
      },
    },
    edges: { start: "slow" },
  });
  const outer = graph({
    state: { log: list<string>() },
    nodes: { inner: { run: inner, timeout: "1s" } },
    edges: { start: "inner" },
  });
  const server = await Server.start(outer);
  const key = await server.thread();
  const run = await server.admit(key);
  expect((await end(server, key, run))?.error).toMatchObject({ error: "NodeTimeoutError" });
  expect(aborted).toEqual([expect.stringMatching(/^inner:/)]);
});

test("subgraphs side by side go at their own pace; their facts have their own namespace", async () => {
  const slow = gate();
  const side = (name: string, wait: () => Promise<void>) =>
    graph({
      state: { log: list<string>() },
      nodes: {
        a: async () => ({ log: [`${name} a`] }),
        b: async () => {
          await wait();
          return { log: [`${name} b`] };
        },
      },
      edges: { start: "a", a: "b" },
    });
  const outer = graph({
    state: { log: list<string>() },
    nodes: { left: side("left", () => slow.wait(null)), right: side("right", async () => undefined) },
    edges: { start: ["left", "right"] },
  });
  const server = await Server.start(outer);
  const key = await server.thread();
  const run = await server.admit(key);
  await server.scheduler.settle();
  slow.open();
  expect((await end(server, key, run))?.status).toBe("success");
  expect((await server.values(key))["log"]).toEqual(["left a", "left b", "right a", "right b"]);
  const facts = await server.facts(key, run);
  const short = (fact: Fact) =>
    "ns" in fact && "name" in fact ? `${fact.ns.split(":")[0]} ${fact.t} ${fact.name}` : fact.t;
  expect(facts.map(short)).toEqual([
    "start",
    "checkpoint",
    "checkpoint",
    " task left",
    " task right",
    "checkpoint",
    "checkpoint",
    "left task a",
    "checkpoint",
    "checkpoint",
    "right task a",
    "left result a",
    "checkpoint",
    "left task b",
    "right result a",
    "checkpoint",
    "right task b",
    "right result b",
    "checkpoint",
    " result right",
    "left result b",
    "checkpoint",
    " result left",
    "checkpoint",
  ]);
});

test("to.parent in the root graph is an error that says so", async () => {
  const root = graph({
    state: { log: list<string>() },
    nodes: { a: async () => to.parent("b") },
    edges: { start: "a" },
  });
  const server = await Server.start(root);
  const key = await server.thread();
  const run = await server.admit(key);
  expect((await end(server, key, run))?.error).toMatchObject({
    error: "InvalidUpdateError",
    message: expect.stringContaining("to.parent"),
  });
});

const limited = (recursion_limit: number) => ({ configurable: {}, metadata: {}, recursion_limit });

test("each graph has the recursion limit for itself", async () => {
  const loop = graph({
    state: { n: value(0) },
    nodes: { add: async ({ n }) => ({ n: n + 1 }) },
    edges: { start: "add", add: ({ n }) => (n < 4 ? "add" : "__end__") },
  });
  const outer = graph({
    state: { n: value(0) },
    nodes: { loop, loop2: loop },
    edges: { start: "loop", loop: "loop2" },
  });
  const server = await Server.start(outer);
  const key = await server.thread();
  const within = await server.admit(key, { config: limited(4) });
  expect((await end(server, key, within))?.status).toBe("success");
  const other = await server.thread();
  const over = await server.admit(other, { config: limited(3) });
  expect((await end(server, other, over))?.error).toMatchObject({ error: "GraphRecursionError" });
});

test("a stop in good order halts it between its steps; the next server goes on from there", async () => {
  const kv = new MemoryKeyValueStore();
  const { wait, waiting, open } = gate();
  const ran: string[] = [];
  const inner = graph({
    state: { log: list<string>() },
    nodes: {
      one: async () => {
        ran.push("one");
        await wait(null);
        return { log: ["one"] };
      },
      two: async () => {
        ran.push("two");
        return { log: ["two"] };
      },
    },
    edges: { start: "one", one: "two" },
  });
  const outer = graph({ state: { log: list<string>() }, nodes: { inner }, edges: { start: "inner" } });
  const before = await Server.start(outer, { kv });
  const key = await before.thread();
  const run = await before.admit(key);
  await before.scheduler.settle();
  expect(waiting).toHaveLength(1);
  const drained = before.system.drain(60_000);
  await before.scheduler.settle();
  open();
  // Long before the minute is over: only the node was waited for.
  await before.do(drained);
  expect(ran).toEqual(["one"]);

  const server = await Server.start(outer, { kv, seed: 2 });
  const ended = await end(server, key, run);
  expect(ended).toMatchObject({ status: "success", attempt: 2, parked: 1 });
  expect(ran).toEqual(["one", "two"]);
  expect((await server.values(key))["log"]).toEqual(["one", "two"]);
});

test("a step makes more checkpoints in its parallel subgraphs than an append holds", async () => {
  const count = 1_400;
  let ran = 0;
  const inner = graph({
    state: { n: list<number>(), done: list<number>() },
    nodes: {
      leaf: async () => {
        ran++;
        return { done: [1] };
      },
    },
    edges: { start: "leaf" },
  });
  const outer = graph({
    state: { items: list<number>(), done: list<number>() },
    nodes: { inner },
    edges: { start: ({ items }) => items.map((n) => send("inner", { n: [n] })) },
  });
  const server = await Server.start(outer);
  const key = await server.thread();
  const run = await server.admit(key, {
    input: { items: Array.from({ length: count }, (_, n) => n) },
  });
  expect(await end(server, key, run)).toMatchObject({ status: "success", attempt: 1 });
  expect(ran).toBe(count);
  expect((await server.values(key))["done"]).toHaveLength(count);
}, 60_000);
