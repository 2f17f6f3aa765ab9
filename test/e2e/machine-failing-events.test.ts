import { describe, expect, test } from "vitest";
import { assign, createMachine, fromPromise, raise, sendParent, sendTo, setup } from "xstate";
import { lines } from "./support/clients.ts";
import { heldCalls } from "./support/latches.ts";
import { serve } from "./support/server.ts";
import { ShiftedTime } from "./support/shifted-time.ts";
import { post } from "./support/wire.ts";

const connect = (lines[0] as (typeof lines)[number])[1];
const MINUTE = 60_000;

type Graphs = NonNullable<NonNullable<Parameters<typeof serve>[0]>["graphs"]>;
type Values = Readonly<Record<string, unknown>>;

async function serving(machine: unknown) {
  const time = new ShiftedTime();
  const { url } = await serve({ graphs: { machine } as Graphs, ...time });
  const client = connect(url);
  const { thread_id: thread } = await client.threads.create();
  const path = `${url}/threads/${thread}`;
  const wait = (payload: object) => client.runs.wait(thread, "machine", payload as never) as Promise<Values>;
  const send = async (event: object) => {
    const answer = await post(`${path}/events`, event);
    const { run_id: run } = (await answer.json()) as { run_id: string };
    return { status: answer.status, run };
  };
  const ended = async (run: string) => {
    const result = (await client.runs.join(thread, run).catch((error: unknown) => ({ error }))) as Values;
    return { status: (await client.runs.get(thread, run)).status, told: JSON.stringify(result) };
  };
  const take = async (event: object) => ended((await send(event)).run);
  const status = async () => (await client.threads.get(thread)).status;
  const values = async () => (await client.threads.get(thread)).values as Values;
  return { client, thread, path, time, wait, send, ended, take, status, values };
}

const fail = () => {
  throw new Error("boom");
};

const counting = {
  INC: { actions: assign({ n: ({ context }: { context: { n: number } }) => context.n + 1 }) },
};

describe("an event whose transition throws", () => {
  const failing: readonly (readonly [string, object, RegExp])[] = [
    ["assign", { actions: assign({ n: fail as never }) }, /boom/],
    ["Map", { actions: assign({ n: () => new Map() as never }) }, /context.n cannot be stored: it is a Map/],
    ["NaN", { actions: assign({ n: () => Number.NaN }) }, /context.n cannot be stored: NaN/],
    ["key", { actions: assign({ __state__: 1 } as never) }, /a key __state__/],
    ["raise", { actions: raise({ type: "BAD" }) }, /does not come to rest/],
    ["sendTo", { actions: sendTo("nobody", { type: "HI" }) }, /nobody/],
  ];
  test.each(failing)("by %s is dropped, and its question stays", async (_, BAD, told) => {
    const machine = createMachine({
      context: { n: 0 },
      initial: "a",
      on: { ...counting, BAD } as never,
      states: { a: { after: { [MINUTE]: "late" } }, late: {} },
    });
    const { wait, take, send, status, values, time } = await serving(machine);
    await wait({ input: {} });
    const ended = await take({ type: "BAD" });
    expect(ended.status).toBe("error");
    expect(ended.told).toMatch(told);
    expect([await status(), await values()]).toMatchObject(["interrupted", { n: 0, __state__: "a" }]);
    expect((await wait({ input: null }))["n"]).toBe(0);
    expect(await status()).toBe("interrupted");
    expect((await send({ type: "BAD" })).status).toBe(202);
    expect(await take({ type: "INC" })).toMatchObject({ status: "success" });
    time.advance(MINUTE);
    await expect.poll(async () => (await values())["__state__"]).toBe("late");
    expect(await wait({ command: { resume: { type: "INC" } } })).toMatchObject({ n: 2 });
  });

  test.each([
    ["is done", { target: "end", actions: assign({ n: () => new Map() }) }],
    ["is stopped", { actions: [assign({ n: () => new Map() }), sendParent({ type: "LEAVE" })] }],
  ])("because the last state of a child that %s cannot be stored is dropped", async (_, BAD) => {
    const child = createMachine({
      context: { n: 0 },
      initial: "on",
      states: { on: { on: { BAD } as never }, end: { type: "final" } },
    });
    const machine = setup({ actors: { child } }).createMachine({
      context: { n: 0 },
      initial: "with",
      on: { ...counting, BAD: { actions: sendTo("child", { type: "BAD" }) } } as never,
      states: {
        with: { invoke: { src: "child", id: "child", onDone: "without" }, on: { LEAVE: "without" } },
        without: {},
      },
    });
    const { wait, take, status, values } = await serving(machine);
    await wait({ input: {} });
    const ended = await take({ type: "BAD" });
    expect(ended.status).toBe("error");
    expect(ended.told).toMatch(/context.n cannot be stored: it is a Map/);
    expect([await status(), await values()]).toMatchObject(["interrupted", { n: 0, __state__: "with" }]);
    expect(await take({ type: "INC" })).toMatchObject({ status: "success" });
  });

  test("computes the transition of an event that does not throw once", async () => {
    let computed = 0;
    const machine = createMachine({
      context: { n: 0 },
      on: { GO: { actions: assign({ n: () => ++computed }) } },
    });
    const { wait, take } = await serving(machine);
    await wait({ input: {} });
    await take({ type: "GO" });
    expect(computed).toBe(1);
  });

  test("while an actor works fails in its own run, and the run in progress goes on", async () => {
    const { work, calls } = heldCalls<string>();
    let computed = 0;
    const machine = setup({ actors: { work: fromPromise(work) } }).createMachine({
      context: { n: 0 },
      initial: "working",
      on: {
        INC: { actions: assign({ n: () => ++computed }) },
        BAD: { actions: assign({ n: fail as never }) },
      },
      states: { working: { invoke: { src: "work", onDone: "waiting" } }, waiting: {} },
    });
    const { wait, send, ended, status } = await serving(machine);
    const first = wait({ input: {} });
    const [actor] = await calls(1);
    const bad = await send({ type: "BAD" });
    const good = await send({ type: "INC" });
    expect([bad.status, good.status]).toEqual([202, 202]);
    expect((await ended(good.run)).status).toBe("success");
    expect(computed).toBe(1);
    actor?.open("done");
    expect(await first).toMatchObject({ __state__: "waiting", n: 1 });
    const failed = await ended(bad.run);
    expect(failed.status).toBe("error");
    expect(failed.told).toMatch(/boom/);
    expect(await status()).toBe("interrupted");
  });
});

test("a timer whose transition throws fails its run, is gone, and the question stays", async () => {
  const machine = createMachine({
    context: { n: 0 },
    initial: "a",
    on: counting as never,
    states: {
      a: { after: { [MINUTE]: { target: "b", actions: assign({ n: fail as never }) }, [2 * MINUTE]: "c" } },
      b: {},
      c: {},
    },
  });
  const { client, thread, wait, take, status, values, time } = await serving(machine);
  await wait({ input: {} });
  time.advance(MINUTE);
  await expect
    .poll(async () => (await client.runs.list(thread)).map((run) => run.status))
    .toEqual(["error", "success"]);
  expect(await status()).toBe("interrupted");
  expect(await take({ type: "INC" })).toMatchObject({ status: "success" });
  expect(await values()).toMatchObject({ n: 1, __state__: "a" });
  time.advance(MINUTE);
  await expect.poll(async () => (await values())["__state__"]).toBe("c");
});

describe("a custom action that fails", () => {
  const machine = (act: () => unknown) =>
    createMachine({ context: { n: 0 }, on: { ...counting, ACT: { actions: act } } as never });

  test.each([
    ["throws", fail],
    ["rejects", async () => fail()],
  ])("because it %s is tried again by a run without an input", async (_, act) => {
    let tries = 0;
    const { wait, take, status } = await serving(machine(() => (++tries === 1 ? act() : undefined)));
    await wait({ input: {} });
    expect(await take({ type: "ACT" })).toMatchObject({ status: "error" });
    expect(await status()).toBe("error");
    await wait({ input: null });
    expect([tries, await status()]).toEqual([2, "interrupted"]);
    expect(await take({ type: "INC" })).toMatchObject({ status: "success" });
  });

  test("is skipped by a state update as the node of the actions", async () => {
    let tries = 0;
    const act = () => {
      tries++;
      fail();
    };
    const { wait, take, status, path } = await serving(machine(act));
    await wait({ input: {} });
    await take({ type: "ACT" });
    expect((await post(`${path}/state`, { values: null, as_node: "xstate.actions" })).status).toBe(200);
    await wait({ input: null });
    expect([tries, await status()]).toEqual([1, "interrupted"]);
    expect(await take({ type: "INC" })).toMatchObject({ status: "success" });
  });
});

describe("the result of a promise actor whose transition throws", () => {
  const machine = (calls: unknown[]) =>
    setup({
      actors: {
        work: fromPromise(async () => {
          calls.push("work");
          return calls.length;
        }),
      },
    }).createMachine({
      context: { n: 0 },
      initial: "idle",
      states: {
        idle: { on: { GO: "working" } },
        working: {
          invoke: {
            src: "work",
            onDone: {
              target: "idle",
              actions: assign({ n: ({ event }) => (event.output === 1 ? fail() : event.output) as number }),
            },
          },
        },
      },
    });

  test("is dropped by a state update: the actor is called again", async () => {
    const calls: unknown[] = [];
    const { wait, take, path } = await serving(machine(calls));
    await wait({ input: {} });
    expect((await take({ type: "GO" })).status).toBe("error");
    await expect(wait({ input: null })).rejects.toThrow("boom");
    expect(calls).toHaveLength(1);
    expect((await post(`${path}/state`, { values: { __events__: [] } })).status).toBe(200);
    expect(await wait({ input: null })).toMatchObject({ n: 2, __state__: "idle" });
  });

  test("is dropped by a state update that also leaves the state", async () => {
    const calls: unknown[] = [];
    const { wait, take, path, status } = await serving(machine(calls));
    await wait({ input: {} });
    expect((await take({ type: "GO" })).status).toBe("error");
    await post(`${path}/state`, { values: { __events__: [] }, as_node: "idle" });
    expect(await wait({ input: null })).toMatchObject({ n: 0, __state__: "idle" });
    expect([calls.length, await status()]).toEqual([1, "interrupted"]);
    expect(await take({ type: "GO" })).toMatchObject({ status: "success" });
  });
});
