import { describe, expect, test } from "vitest";
import { assign, cancel, createMachine, fromPromise, raise, sendTo, setup } from "xstate";
import order from "../../src/demo/order.ts";
import { type Client, lines } from "./support/clients.ts";
import { heldCalls } from "./support/latches.ts";
import { directory, serve } from "./support/server.ts";
import { ShiftedTime } from "./support/shifted-time.ts";
import { post } from "./support/wire.ts";

const connect = (lines[0] as (typeof lines)[number])[1];

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

type Values = Readonly<Record<string, unknown>>;
type Graphs = NonNullable<Parameters<typeof serve>[0]>["graphs"];

async function server(graphs: NonNullable<Graphs>, data?: string, time = new ShiftedTime()) {
  const app = await serve({ graphs, ...(data !== undefined && { data }), ...time });
  const client = connect(app.url);
  return { app, client, time, at: (thread: string) => on(client, thread) };
}

/** What a test does with one thread. */
function on(client: Client, thread: string) {
  const values = async () => (await client.threads.get(thread)).values as Values;
  return {
    thread,
    values,
    state: async () => (await values())["__state__"],
    status: async () => (await client.threads.get(thread)).status,
    runs: async () => (await client.runs.list(thread)).map(({ status }) => status).reverse(),
    wait: (payload: object) => client.runs.wait(thread, "machine", payload as never),
    resume: (type: string) =>
      client.runs.wait(thread, "machine", { command: { resume: { type } } } as never) as Promise<Values>,
    left: async () => ((await values())["__snapshot__"] as { readonly timers: readonly unknown[] }).timers,
  };
}

async function begun(machine: unknown, input: object = {}, data?: string) {
  const made = await server({ machine } as NonNullable<Graphs>, data);
  const { thread_id } = await made.client.threads.create();
  const thread = on(made.client, thread_id);
  await thread.wait({ input });
  return { ...made, ...thread };
}

/** A light that is green for a minute. */
const light = createMachine({
  id: "light",
  initial: "green",
  states: {
    green: { after: { [MINUTE]: "red" }, on: { BREAK: "broken", WAIT: { target: "green", reenter: true } } },
    red: { on: { SWITCH: "green" } },
    broken: { on: { REPAIR: "green" } },
  },
});

describe("a timer of a machine", () => {
  test("fires at its time as a run of its own, and is then gone", async () => {
    const { time, state, status, runs, values } = await begun(order, { amount: 5 });
    expect([await state(), await status(), await runs()]).toEqual(["reviewing", "interrupted", ["success"]]);
    time.advance(3 * DAY - MINUTE);
    expect(await runs()).toEqual(["success"]);
    time.advance(MINUTE);
    await expect.poll(state).toBe("expired");
    await expect.poll(status).toBe("idle");
    expect(await runs()).toEqual(["success", "success"]);
    expect(await values()).toMatchObject({ __output__: null, __snapshot__: { timers: [] } });
    time.advance(30 * DAY);
    expect(await runs()).toEqual(["success", "success"]);
  });

  test("is cancelled when its state is left, and set anew when that is entered again", async () => {
    const { time, state, resume, runs, left } = await begun(light);
    await resume("BREAK");
    expect(await left()).toEqual([]);
    time.advance(MINUTE);
    await resume("REPAIR");
    time.advance(MINUTE - 2_000);
    await resume("WAIT");
    time.advance(MINUTE - 2_000);
    expect([await state(), (await runs()).length]).toEqual(["green", 4]);
    time.advance(2_000);
    await expect.poll(state).toBe("red");
    expect((await runs()).length).toBe(5);
  });

  test("keeps its deadline through a restart", async () => {
    const data = await directory();
    const { app, thread, time } = await begun(light, {}, data);
    time.advance(MINUTE / 2);
    await app.close();
    const later = new ShiftedTime(MINUTE / 2);
    const again = (await server({ machine: light }, data, later)).at(thread);
    later.advance(MINUTE / 2 - 5_000);
    expect(await again.state()).toBe("green");
    later.advance(5_000);
    await expect.poll(again.state).toBe("red");
    await expect.poll(again.runs).toEqual(["success", "success"]);
  });

  test("fires at the start when its time has passed while the server was down", async () => {
    const data = await directory();
    const { app, thread } = await begun(light, {}, data);
    await app.close();
    const again = await server({ machine: light }, data, new ShiftedTime(DAY));
    await expect.poll(again.at(thread).state).toBe("red");
    await expect.poll(again.at(thread).runs).toEqual(["success", "success"]);
    expect(again.app.complaints).toEqual([]);
  });

  test("of several is taken in the order of their times, each once", async () => {
    const log = (name: string) =>
      assign<{ log: string[] }, never, undefined, never, never>({
        log: ({ context }) => [...context.log, name],
      });
    const machine = setup({
      types: { context: {} as { log: string[]; late: number } },
      delays: { late: ({ context }) => context.late * MINUTE },
    }).createMachine({
      context: { log: [], late: 4 },
      entry: [
        raise({ type: "D" }, { delay: "late" }),
        raise({ type: "B" }, { delay: 2 * MINUTE }),
        sendTo(({ self }) => self, { type: "A" }, { delay: MINUTE }),
        raise({ type: "X" }, { delay: MINUTE, id: "x" }),
        raise({ type: "C" }, { delay: () => 3 * MINUTE }),
      ],
      on: Object.fromEntries(
        ["A", "B", "C", "D", "X"].map((name) => [name, { actions: log(name) as never }]),
      ),
      initial: "one",
      states: { one: { on: { STOP: "two" } }, two: { entry: cancel("x") } },
    });
    const { time, resume, values, runs, left } = await begun(machine);
    await resume("STOP");
    expect(await left()).toHaveLength(4);
    time.advance(4 * MINUTE);
    await expect.poll(values).toMatchObject({ log: ["A", "B", "C", "D"] });
    await expect.poll(runs).toEqual(Array.from({ length: 6 }, () => "success"));
  });

  test("whose state was left before its turn does nothing: its run ends, and the question stays", async () => {
    const { work, calls } = heldCalls<string>();
    const machine = setup({ actors: { work: fromPromise<string>(work) } }).createMachine({
      initial: "working",
      states: {
        working: { invoke: { src: "work", onDone: "asking" }, after: { [MINUTE]: "late" } },
        asking: { on: { GO: "gone" } },
        late: {},
        gone: {},
      },
    });
    const { client, time, at } = await server({ machine });
    const { thread_id } = await client.threads.create();
    const { state, status, runs, resume } = at(thread_id);
    await client.runs.create(thread_id, "machine", { input: {} });
    const [first] = await calls(1);
    // The timer comes after a run that begins the machine anew.
    await client.runs.create(thread_id, "machine", { input: {}, multitaskStrategy: "enqueue" });
    time.advance(MINUTE);
    await expect.poll(runs).toHaveLength(3);
    first?.open("done");
    const [, second] = await calls(2);
    second?.open("done");
    await expect.poll(runs).toEqual(["success", "success", "success"]);
    await expect.poll(status).toBe("interrupted");
    expect(await state()).toBe("asking");
    await resume("GO");
    expect(await state()).toBe("gone");
  });

  test("that is all that the machine waits for leaves no event possible", async () => {
    const machine = createMachine({ initial: "a", states: { a: { after: { [MINUTE]: "b" } }, b: {} } });
    const { app, client, thread, time, state, status } = await begun(machine);
    expect(await status()).toBe("interrupted");
    const interrupts = Object.values((await client.threads.get(thread)).interrupts).flat();
    expect(interrupts).toMatchObject([{ value: { state: "a", events: [] } }]);
    const refused = await post(`${app.url}/threads/${thread}/events`, { type: "GO" });
    expect(refused.status).toBe(422);
    expect(await refused.text()).toMatch(/waits for a timer/);
    time.advance(MINUTE);
    await expect.poll(state).toBe("b");
    await expect.poll(status).toBe("idle");
  });

  test("of a name that the machine does not define fires at once, as in XState", async () => {
    const machine = createMachine({ initial: "a", states: { a: { after: { "3d": "b" } }, b: {} } });
    const { state, runs } = await begun(machine);
    expect([await state(), await runs()]).toEqual(["b", ["success"]]);
  });

  test("goes with its thread, and is copied with it", async () => {
    const { app, client, thread, time, at } = await begun(light);
    const copy = (await client.threads.copy(thread)).thread_id;
    await client.threads.delete(thread);
    time.advance(MINUTE);
    await expect.poll(at(copy).state).toBe("red");
    await expect.poll(at(copy).runs).toEqual(["success"]);
    expect(app.complaints).toEqual([]);
  });

  test("stays when a client changes the state, and goes when that ends the machine", async () => {
    const { client, thread, time, state, runs } = await begun(light);
    await client.threads.updateState(thread, { values: { note: "n" } });
    time.advance(MINUTE);
    await expect.poll(state).toBe("red");
    await expect.poll(runs).toEqual(["success", "success"]);
  });

  test("of an earlier checkpoint is set again on a branch from it: one that was due fires at once", async () => {
    const { client, thread, time, state, wait, resume, runs } = await begun(light);
    const [{ checkpoint_id } = { checkpoint_id: "" }] = (await client.threads.getHistory(thread)).map(
      ({ checkpoint }) => checkpoint,
    );
    await resume("BREAK");
    time.advance(DAY);
    expect(await state()).toBe("broken");
    await wait({ input: null, checkpointId: checkpoint_id });
    await expect.poll(state).toBe("red");
    await expect.poll(runs).toEqual(["success", "success", "success", "success"]);
  });

  test("waits while its thread rests in a run that was cancelled or has failed, until another goes on", async () => {
    const { work, calls } = heldCalls<string>();
    const machine = setup({ actors: { work: fromPromise<string>(work) } }).createMachine({
      initial: "working",
      states: {
        working: { invoke: { src: "work", onDone: "done" }, after: { [MINUTE]: "late" } },
        late: {},
        done: {},
      },
    });
    const { client, time, at } = await server({ machine });
    const { thread_id } = await client.threads.create();
    const { state, runs } = at(thread_id);
    const run = await client.runs.create(thread_id, "machine", { input: {} });
    await calls(1);
    await client.runs.cancel(thread_id, run.run_id, true);
    time.advance(DAY);
    expect([await state(), await runs()]).toEqual(["working", ["interrupted"]]);
    await client.runs.create(thread_id, "machine", { input: null });
    await expect.poll(runs).toEqual(["interrupted", "success", "success"]);
    expect(await state()).toBe("late");
  });
});
