import { describe, expect, test } from "vitest";
import { graph, list, value } from "../../src/index.ts";
import { ServiceError } from "../../src/model/errors.ts";
import type { MultitaskStrategy } from "../../src/model/run.ts";
import { threadStatusOf, type ThreadKey } from "../../src/model/thread.ts";
import type { WriteOperation } from "../../src/ports/key-value-store.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import { draftOf } from "./draft.ts";
import { Server } from "./server.ts";

/** A node that waits until the test releases it. */
function gate() {
  const waiting: (() => void)[] = [];
  const wait = (signal: AbortSignal | null) =>
    new Promise<void>((resolve, reject) => {
      waiting.push(resolve);
      signal?.addEventListener("abort", () => reject(signal.reason));
    });
  const open = () => {
    for (const go of waiting.splice(0)) go();
  };
  return { wait, open, waiting };
}

function gated({ deaf = false } = {}) {
  const { wait, open, waiting } = gate();
  const work = graph({
    state: { log: list<string>() },
    nodes: {
      first: async (_, ctx) => ({ log: [`${ctx.runId.slice(-4)} first`] }),
      work: async (_, ctx) => {
        await wait(deaf ? null : ctx.signal);
        return { log: [`${ctx.runId.slice(-4)} work`] };
      },
    },
    edges: { start: "first", first: "work" },
  });
  return { work, open, waiting };
}

const simple = graph({
  state: { log: list<string>() },
  nodes: { work: async () => ({ log: ["worked"] }) },
  edges: { start: "work" },
});

describe("multitask strategies", () => {
  test("reject: the new run is refused, the first one completes", async () => {
    const { work, open } = gated();
    const server = await Server.start(work);
    const key = await server.thread();
    const first = await server.admit(key);
    await expect(server.admit(key)).rejects.toMatchObject({ code: "run.conflict" });
    open();
    const record = await server.do(server.system.settled(key, first.run_id));
    expect(record?.status).toBe("success");
  });

  test("of a hundred rejecting runs at once exactly one is admitted", async () => {
    const { work } = gated();
    const server = await Server.start(work);
    const key = await server.thread();
    const asked = await Promise.allSettled(Array.from({ length: 100 }, () => server.admit(key)));
    expect(asked.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });

  test("enqueue: runs execute in the order in which they were received", async () => {
    const { work, open } = gated();
    const server = await Server.start(work);
    const key = await server.thread();
    const runs = [];
    for (let i = 0; i < 3; i++) runs.push(await server.admit(key, { strategy: "enqueue" }));
    for (const run of runs) {
      await server.scheduler.settle();
      open();
      await server.do(server.system.settled(key, run.run_id));
    }
    const names = runs.map(({ run_id }) => run_id.slice(-4));
    expect((await server.values(key))["log"]).toEqual(
      names.flatMap((name) => [`${name} first`, `${name} work`]),
    );
  });

  test("interrupt: all in flight end interrupted, what was done is kept, the new run follows", async () => {
    const { work, open } = gated();
    const server = await Server.start(work);
    const key = await server.thread();
    const first = await server.admit(key);
    const queued = await server.admit(key, { strategy: "enqueue" });
    await server.scheduler.settle();
    const last = await server.admit(key, { strategy: "interrupt" });
    await server.scheduler.settle();
    open();
    await server.do(server.system.settled(key, last.run_id));
    expect((await server.record(key, first))?.status).toBe("interrupted");
    expect((await server.record(key, queued))?.status).toBe("interrupted");
    const [one, two] = [first.run_id.slice(-4), last.run_id.slice(-4)];
    expect((await server.values(key))["log"]).toEqual([`${one} first`, `${two} first`, `${two} work`]);
  });

  test("rollback: all in flight are gone with what they did", async () => {
    const { work, open } = gated();
    const server = await Server.start(work);
    const key = await server.thread();
    const first = await server.admit(key);
    const queued = await server.admit(key, { strategy: "enqueue" });
    await server.scheduler.settle();
    const last = await server.admit(key, { strategy: "rollback" });
    await server.scheduler.settle();
    open();
    await server.do(server.system.settled(key, last.run_id));
    expect(await server.record(key, first)).toBeUndefined();
    expect(await server.record(key, queued)).toBeUndefined();
    const name = last.run_id.slice(-4);
    expect((await server.values(key))["log"]).toEqual([`${name} first`, `${name} work`]);
  });
});

test("a run whose end was asked for before it began applies no input", async () => {
  const kv = new MemoryKeyValueStore();
  const { work, waiting } = gated();
  const before = await Server.start(work, { kv });
  const key = await before.thread();
  const run = await before.admit(key, { input: { log: ["input"] } });
  // The cancellation is stored before the run has taken a step; then the server dies.
  await before.do(before.system.cancel(key, run.run_id, "interrupt"));
  const written = await before.values(key);
  const executed = waiting.length;
  before.scheduler.kill();
  const server = await Server.start(work, { kv, seed: 2 });
  const record = await server.do(server.system.settled(key, run.run_id));
  expect(record?.status).toBe("interrupted");
  expect(await server.values(key)).toEqual(written);
  expect(waiting).toHaveLength(executed);
});

describe("a rollback of an answer", () => {
  test("gives the question back", async () => {
    const { wait, open } = gate();
    const asking = graph({
      state: { log: list<string>() },
      nodes: {
        ask: async (_, ctx) => ({ log: [String(await ctx.interrupt("really?"))] }),
        work: async (_, ctx) => wait(ctx.signal),
      },
      edges: { start: "ask", ask: "work" },
    });
    const server = await Server.start(asking);
    const key = await server.thread();
    await server.do(server.system.settled(key, (await server.admit(key)).run_id));
    const before = await server.storage.journal.thread(key);
    expect(before?.rest).toBe("interrupted");
    const answer = await server.admit(key, { input: null, command: { resume: "yes" } });
    await server.scheduler.settle();
    await server.do(server.system.cancel(key, answer.run_id, "rollback"));
    await server.do(server.system.settled(key, answer.run_id));
    const after = await server.storage.journal.thread(key);
    expect([after?.rest, after?.checkpoint, after?.interrupts]).toEqual([
      before?.rest,
      before?.checkpoint,
      before?.interrupts,
    ]);
    const again = await server.admit(key, { input: null, command: { resume: "no" } });
    await server.scheduler.settle();
    open();
    await server.do(server.system.settled(key, again.run_id));
    expect((await server.values(key))["log"]).toEqual(["no"]);
  });
});

describe("a run that is stopped leaves the question that it has not got past", () => {
  const waits = { rest: "interrupted", waiting: ["really?"] };

  async function asked() {
    const { wait, open } = gate();
    const asking = graph({
      state: { log: list<string>() },
      nodes: {
        ask: async (_, ctx) => {
          const answer = await ctx.interrupt("really?");
          await wait(ctx.signal);
          return { log: [String(answer)] };
        },
      },
      edges: { start: "ask" },
    });
    const server = await Server.start(asking);
    const key = await server.thread();
    await server.do(server.system.settled(key, (await server.admit(key)).run_id));
    const answer = (resume: string, strategy: MultitaskStrategy = "reject") =>
      server.admit(key, { input: null, command: { resume }, strategy });
    const rests = async () => {
      const { rest, interrupts } = (await server.storage.journal.thread(key)) ?? {};
      return {
        rest,
        waiting: Object.values(interrupts ?? {})
          .flat()
          .map(({ value }) => value),
      };
    };
    return { server, key, open, answer, rests };
  }
  test("where it is cancelled before it has begun", async () => {
    const { server, key, open, answer, rests } = await asked();
    const { system } = server;
    expect(await rests()).toEqual(waits);
    const draft = draftOf(server.newId(), { input: null, command: { resume: "yes" } }, "reject");
    const cancelled = system.admit(key, draft).then(async (run) => {
      await system.cancel(key, run.run_id, "interrupt");
      return run;
    });
    const first = await server.do(cancelled);
    await server.do(system.settled(key, first.run_id));
    expect((await server.record(key, first))?.status).toBe("interrupted");
    expect(await rests()).toEqual(waits);
    const second = await answer("no");
    await server.scheduler.settle();
    open();
    await server.do(system.settled(key, second.run_id));
    expect((await server.values(key))["log"]).toEqual(["no"]);
    expect(await rests()).toEqual({ rest: "success", waiting: [] });
  });

  test.each([
    ["before the first has begun", false],
    ["while the first one's node has its answer", true],
  ])("another answer does not interrupt it: %s", async (_, hasBegun) => {
    const { server, key, open, answer } = await asked();
    const first = await answer("yes");
    if (hasBegun) await server.scheduler.settle();
    await expect(answer("no", "interrupt")).rejects.toMatchObject({ code: "resume.conflict" });
    await server.scheduler.settle();
    open();
    await server.do(server.system.settled(key, first.run_id));
    expect((await server.values(key))["log"]).toEqual(["yes"]);
  });

  test("another answer takes its place where it rolls the first one back", async () => {
    const { server, key, open, answer, rests } = await asked();
    await answer("yes");
    await server.scheduler.settle();
    const second = await answer("no", "rollback");
    await server.scheduler.settle();
    open();
    await server.do(server.system.settled(key, second.run_id));
    expect((await server.values(key))["log"]).toEqual(["no"]);
    expect(await rests()).toEqual({ rest: "success", waiting: [] });
  });
});

describe("a rollback leaves the thread as it rested before", () => {
  const endings = {
    new: async () => undefined,
    cancelled: async (server: Server, key: ThreadKey) => {
      const run = await server.admit(key);
      await server.scheduler.settle();
      await server.do(server.system.cancel(key, run.run_id, "interrupt"));
      await server.do(server.system.settled(key, run.run_id));
    },
    failed: async (server: Server, key: ThreadKey) => {
      await server.do(
        server.system.settled(key, (await server.admit(key, { input: { fails: true } })).run_id),
      );
    },
    paused: async (server: Server, key: ThreadKey) => {
      const run = await server.admit(key, { interrupt_before: ["go"] });
      await server.do(server.system.settled(key, run.run_id));
    },
    done: async (server: Server, key: ThreadKey) => {
      await server.do(
        server.system.settled(key, (await server.admit(key, { input: { ends: true } })).run_id),
      );
    },
  };

  test.each([
    ["new", "idle", []],
    ["cancelled", "idle", ["go"]],
    ["failed", "error", ["go"]],
    ["paused", "interrupted", ["go"]],
    ["done", "success", []],
  ] as const)("%s: %s", async (ending, rest, next) => {
    const { wait } = gate();
    const hanging = graph({
      state: { fails: value<boolean>(), ends: value<boolean>() },
      nodes: {
        go: async ({ fails, ends }, ctx) => {
          if (fails) throw new Error("it failed");
          if (!ends) await wait(ctx.signal);
        },
      },
      edges: { start: "go" },
    });
    const server = await Server.start(hanging);
    const { journal } = server.storage;
    const key = await server.thread();
    await endings[ending](server, key);
    const before = await journal.thread(key);
    expect(before?.rest).toBe(rest);
    const run = await server.admit(key, { input: { fails: false, ends: false } });
    await server.scheduler.settle();
    await server.do(server.system.cancel(key, run.run_id, "rollback"));
    await server.do(server.system.settled(key, run.run_id));
    const after = await journal.thread(key);
    const stood = (thread = before) => [thread?.rest, thread?.error, thread?.interrupts, thread?.checkpoint];
    expect(stood(after)).toEqual(stood());
    expect(await server.record(key, run)).toBeUndefined();
    const at = after?.checkpoint ?? null;
    const head = at === null ? undefined : await journal.checkpoint(key, "", at);
    expect(head?.next.map(({ name }) => name) ?? []).toEqual(next);
  });
});

describe("a node that does not listen", () => {
  test("is left behind after the grace; what it does later reaches neither log nor state", async () => {
    let late = "";
    const { wait, open } = gate();
    const deaf = graph({
      state: { log: list<string>() },
      nodes: {
        work: async (_, ctx) => {
          await wait(null);
          try {
            ctx.emit("too late");
          } catch (thrown) {
            late = String(thrown);
          }
          return { log: ["too late"] };
        },
      },
      edges: { start: "work" },
    });
    const server = await Server.start(deaf, { limits: { grace: 500 } });
    const key = await server.thread();
    const run = await server.admit(key);
    await server.scheduler.settle();
    await server.do(server.system.cancel(key, run.run_id, "interrupt"));
    expect((await server.record(key, run))?.status).toBe("pending");
    await server.scheduler.advance(499);
    expect((await server.record(key, run))?.status).toBe("pending");
    await server.scheduler.advance(2);
    expect((await server.record(key, run))?.status).toBe("interrupted");
    const next = await server.admit(key);
    await server.scheduler.settle();
    const facts = await server.facts(key, run);
    open();
    await server.do(server.system.settled(key, next.run_id));
    expect(await server.facts(key, run)).toEqual(facts);
    expect((await server.facts(key, next)).filter(({ t }) => t === "custom")).toHaveLength(1);
    expect((await server.values(key))["log"]).toEqual(["too late"]);
    expect(late).toBe("");
  });

  test("a straggling try of the same run is kept out of the next one", async () => {
    const { wait, open } = gate();
    let tries = 0;
    const slow = graph({
      state: { log: list<string>() },
      nodes: {
        work: {
          retry: 2,
          timeout: 100,
          run: async (_, ctx) => {
            const mine = ++tries;
            if (mine === 1) await wait(null);
            ctx.emit(`from try ${mine}`);
            if (mine === 2) await wait(null);
            return { log: [`try ${mine}`] };
          },
        },
      },
      edges: { start: "work" },
    });
    const server = await Server.start(slow);
    const key = await server.thread();
    const run = await server.admit(key);
    await server.scheduler.advance(101);
    // Half a second, and up to a quarter more.
    await server.scheduler.advance(626);
    expect(tries).toBe(2);
    open();
    const record = await server.do(server.system.settled(key, run.run_id));
    expect(record?.status).toBe("success");
    const told = (await server.facts(key, run)).flatMap((fact) => (fact.t === "custom" ? [fact.json] : []));
    expect(told).toEqual(['"from try 2"']);
    expect((await server.values(key))["log"]).toEqual(["try 2"]);
  });
});

describe("what a node may throw or return", () => {
  const rows: [string, () => unknown, RegExp][] = [
    [
      "an Error",
      () => {
        throw new TypeError("kaboom");
      },
      /kaboom/,
    ],
    [
      "null",
      () => {
        throw null;
      },
      /null/,
    ],
    [
      "a text",
      () => {
        throw "a text";
      },
      /a text/,
    ],
    [
      "a hostile object",
      () => {
        throw {
          get message() {
            throw new Error("no");
          },
        };
      },
      /described/,
    ],
    ["a function in its update", () => ({ log: [() => 1] }), /log\[0\]/],
    [
      "a cycle",
      () => {
        const a: Record<string, unknown> = {};
        a["a"] = a;
        return { log: [a] };
      },
      /log\[0\]/,
    ],
    ["a bigint", () => ({ log: [1n] }), /log\[0\]/],
    ["an unknown key", () => ({ lgo: ["x"] }), /lgo/],
  ];
  test.each(rows)("%s: the run ends in error, the thread stays usable", async (_, act, message) => {
    let bad = true;
    const work = graph({
      state: { log: list<unknown>() },
      nodes: { work: async () => (bad ? act() : { log: ["well"] }) as { log: unknown[] } },
      edges: { start: "work" },
    });
    const server = await Server.start(work);
    const key = await server.thread();
    const run = await server.admit(key);
    const record = await server.do(server.system.settled(key, run.run_id));
    expect(record?.status).toBe("error");
    expect(record?.error?.message).toMatch(message);
    bad = false;
    const next = await server.admit(key);
    expect((await server.do(server.system.settled(key, next.run_id)))?.status).toBe("success");
  });
});

describe("actors that are not needed", () => {
  test("a read wakes none", async () => {
    const kv = new MemoryKeyValueStore();
    const before = await Server.start(simple, { kv });
    const key = await before.thread();
    const run = await before.admit(key);
    await before.do(before.system.settled(key, run.run_id));
    await before.do(before.system.drain(0));
    await before.do(before.storage.close());
    const server = await Server.start(simple, { kv, seed: 2 });
    await server.storage.journal.thread(key);
    await server.values(key);
    await server.storage.journal.runs(key, { limit: 10, offset: 0 });
    await server.do(server.system.settled(key, run.run_id));
    expect(server.system.isRunning(key, run.run_id)).toBe(false);
    expect(server.system.counts.live).toBe(0);
  });

  test("are let go after the idle time, and wake where they rested", async () => {
    const server = await Server.start(simple, { limits: { idle: 30_000 } });
    const key = await server.thread();
    await server.do(server.system.settled(key, (await server.admit(key)).run_id));
    await server.scheduler.advance(29_000);
    expect(server.system.counts.live).toBe(1);
    await server.scheduler.advance(2_000);
    expect(server.system.counts.live).toBe(0);
    await server.do(server.system.settled(key, (await server.admit(key)).run_id));
    expect((await server.values(key))["log"]).toEqual(["worked", "worked"]);
  });

  test("those with large states are let go first where all states together are too large, and wake as they were", async () => {
    const large = graph({
      state: { log: list<string>() },
      nodes: { work: async () => ({ log: ["x".repeat(400)] }) },
      edges: { start: "work" },
    });
    const server = await Server.start(large, { limits: { maxIdleBytes: 1_000 } });
    const keys: ThreadKey[] = [];
    for (let i = 0; i < 5; i++) {
      const key = await server.thread();
      keys.push(key);
      await server.do(server.system.settled(key, (await server.admit(key)).run_id));
    }
    await server.scheduler.advance(2_000);
    expect(server.system.counts.live).toBe(2);
    const [first] = keys;
    if (first === undefined) throw new TypeError("there is no thread");
    await server.do(server.system.settled(first, (await server.admit(first)).run_id));
    expect((await server.values(first))["log"]).toHaveLength(2);
    // A state that exceeds the limit alone stays until others need the memory.
    await server.scheduler.advance(2_000);
    expect(server.system.counts.live).toBe(1);
  });

  test("beyond the limit the longest idle is let go at once; one at work never is", async () => {
    const { work, waiting } = gated();
    const server = await Server.start(work, { limits: { maxIdle: 0 } });
    for (let i = 0; i < 5; i++) await server.admit(await server.thread());
    await server.scheduler.settle();
    expect(waiting).toHaveLength(5);
    expect(server.system.counts).toEqual({ live: 5, busy: 5 });
  });
});

describe("after the end of a server", () => {
  test("a run that ends it again and again is given up after its attempts", async () => {
    const kv = new MemoryKeyValueStore();
    const { work } = gated();
    let server = await Server.start(work, { kv, limits: { attempts: 3 } });
    const key = await server.thread();
    const run = await server.admit(key);
    const attempts: number[] = [];
    for (let life = 2; life <= 5; life++) {
      // After a kill, nothing of the server runs any more.
      server.scheduler.kill();
      server = await Server.start(work, { kv, limits: { attempts: 3 }, seed: life });
      await server.scheduler.settle();
      const record = await server.record(key, run);
      attempts.push(record?.attempt ?? 0);
      if (record?.status === "error") break;
    }
    expect(attempts).toEqual([2, 3, 4]);
    const record = await server.record(key, run);
    expect(record?.error?.message).toContain("max attempts");
    const thread = await server.storage.journal.thread(key);
    expect(thread && threadStatusOf(thread)).toBe("error");
    await expect(server.admit(key)).resolves.toBeDefined();
  });

  test("attempts that get on do not count: only those that follow one another without a step", async () => {
    const kv = new MemoryKeyValueStore();
    const nodes = ["a", "b", "c", "d", "e", "f"] as const;
    const waiting: (() => void)[] = [];
    const node = () =>
      new Promise<{ log: string[] }>((resolve) => waiting.push(() => resolve({ log: ["step"] })));
    const work = graph({
      state: { log: list<string>() },
      nodes: { a: node, b: node, c: node, d: node, e: node, f: node },
      edges: { start: "a", a: "b", b: "c", c: "d", d: "e", e: "f" },
    });
    const limits = { attempts: 2 };
    let server = await Server.start(work, { kv, limits });
    const key = await server.thread();
    const run = await server.admit(key);
    for (let life = 2; life <= nodes.length; life++) {
      await server.scheduler.settle();
      waiting.splice(0).forEach((go) => go());
      await server.scheduler.settle();
      // Killed with a step stored by each server.
      server.scheduler.kill();
      waiting.length = 0;
      server = await Server.start(work, { kv, limits, seed: life });
    }
    await server.scheduler.settle();
    waiting.splice(0).forEach((go) => go());
    expect((await server.do(server.system.settled(key, run.run_id)))?.status).toBe("success");
    expect((await server.values(key))["log"]).toHaveLength(nodes.length);
  });

  test("a stop in good order ends the superstep, and does not count as an attempt", async () => {
    const kv = new MemoryKeyValueStore();
    const { wait, open } = gate();
    const work = graph({
      state: { log: list<string>() },
      nodes: {
        work: async (_, ctx) => {
          await wait(ctx.signal);
          return { log: ["worked"] };
        },
        last: async () => ({ log: ["last"] }),
      },
      edges: { start: "work", work: "last" },
    });
    const before = await Server.start(work, { kv, limits: { attempts: 1 } });
    const key = await before.thread();
    const run = await before.admit(key);
    await before.scheduler.settle();
    const drained = before.system.drain(10_000);
    await expect(before.admit(key)).rejects.toMatchObject({ code: "server.draining" });
    open();
    await before.do(drained);
    expect((await before.values(key))["log"]).toEqual(["worked"]);
    await before.do(before.storage.close());
    const server = await Server.start(work, { kv, limits: { attempts: 1 }, seed: 2 });
    const record = await server.do(server.system.settled(key, run.run_id));
    expect([record?.status, record?.attempt, record?.parked]).toEqual(["success", 2, 1]);
    expect((await server.values(key))["log"]).toEqual(["worked", "last"]);
  });

  test("a cancel that was acknowledged is not forgotten", async () => {
    const kv = new MemoryKeyValueStore();
    const { work, waiting } = gated({ deaf: true });
    const before = await Server.start(work, { kv });
    const key = await before.thread();
    const run = await before.admit(key);
    await before.scheduler.settle();
    await before.do(before.system.cancel(key, run.run_id, "interrupt"));
    before.scheduler.kill();
    waiting.length = 0;
    const server = await Server.start(work, { kv, seed: 2 });
    const record = await server.do(server.system.settled(key, run.run_id));
    expect(record?.status).toBe("interrupted");
    expect(waiting).toHaveLength(0);
  });
});

/** A store whose writes fail on request. */
class FailingKeyValueStore extends MemoryKeyValueStore {
  failing = false;

  override async batch(ops: readonly WriteOperation[], options: { readonly sync: boolean }): Promise<void> {
    if (this.failing) throw new ServiceError("storage.unavailable", "the disk is full");
    return super.batch(ops, options);
  }
}

test("a storage that fails loses nothing that was acknowledged, and the thread is taken up when it has healed", async () => {
  const kv = new FailingKeyValueStore();
  const { work, open } = gated();
  const server = await Server.start(work, { kv });
  const key = await server.thread();
  const run = await server.admit(key);
  await server.scheduler.settle();
  kv.failing = true;
  open();
  await server.scheduler.settle();
  const refused = server.admit(key, { strategy: "enqueue" });
  await expect(refused).rejects.toMatchObject({ code: "storage.unavailable" });
  kv.failing = false;
  await server.scheduler.advance(10_000);
  open();
  const record = await server.do(server.system.settled(key, run.run_id));
  expect(record?.status).toBe("success");
  const name = run.run_id.slice(-4);
  expect((await server.values(key))["log"]).toEqual([`${name} first`, `${name} work`]);
});
