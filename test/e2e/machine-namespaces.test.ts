import { describe, expect, test } from "vitest";
import {
  assign,
  createMachine,
  emit,
  forwardTo,
  fromPromise,
  fromTransition,
  sendParent,
  sendTo,
  setup,
} from "xstate";
import { type Client, lines } from "./support/clients.ts";
import { heldCalls } from "./support/latches.ts";
import { directory, serve } from "./support/server.ts";
import { post } from "./support/wire.ts";

type Graphs = NonNullable<NonNullable<Parameters<typeof serve>[0]>["graphs"]>;

/** A payment with a child of its own, which counts the attempts. */
const counter = setup({ types: { context: {} as { count: number } } }).createMachine({
  id: "counter",
  context: { count: 0 },
  on: { COUNT: { actions: assign({ count: ({ context }) => context.count + 1 }) } },
});

const payment = setup({
  types: { context: {} as { amount: number; receipt: string | null }, input: {} as { amount: number } },
  actors: { counter, charge: fromPromise<string, number>(async ({ input }) => `${input} paid`) },
}).createMachine({
  id: "payment",
  initial: "asking",
  entry: sendParent({ type: "BEGUN" }),
  context: ({ input }) => ({ amount: input.amount, receipt: null }),
  output: ({ context }) => context.receipt,
  invoke: { src: "counter", id: "attempts" },
  states: {
    asking: {
      on: {
        PAY: { target: "charging", actions: sendTo("attempts", { type: "COUNT" }) },
        ASK: { actions: sendParent({ type: "ASKED" }) },
      },
    },
    charging: {
      invoke: {
        src: "charge",
        input: ({ context }) => context.amount,
        onDone: { target: "paid", actions: assign({ receipt: ({ event }) => event.output }) },
      },
    },
    paid: { type: "final" },
  },
});

const order = setup({
  types: { context: {} as { receipt: string | null } },
  actors: { payment },
}).createMachine({
  id: "order",
  context: { receipt: null },
  initial: "paying",
  states: {
    paying: {
      invoke: {
        src: "payment",
        id: "pay",
        input: { amount: 7 },
        onDone: {
          target: "over",
          actions: assign({ receipt: ({ event }) => event.output as string | null }),
        },
      },
      on: {
        PAY: { actions: forwardTo("pay") },
        NOTHING: { actions: assign({ receipt: "none" }) },
        ANEW: { target: "paying", reenter: true },
      },
    },
    over: { type: "final" },
  },
});

const graphs = { order } as unknown as Graphs;
const NS = /^payment:[0-9a-f-]{36}$/;

async function started(connect: (url: string) => Client, data?: string, served = graphs) {
  const app = await serve({ graphs: served, ...(data !== undefined && { data }) });
  const client = connect(app.url);
  const { thread_id: thread } = await client.threads.create();
  const states = async (path: string) =>
    (await fetch(`${app.url}/threads/${thread}/${path}`)).json() as Promise<never>;
  return { app, client, thread, states };
}

interface Task {
  readonly id: string;
  readonly name: string;
  readonly checkpoint: { readonly checkpoint_ns: string } | null;
  readonly state: State | null;
}
interface State {
  readonly values: Record<string, unknown>;
  readonly next: readonly string[];
  readonly tasks: readonly Task[];
  readonly checkpoint: { readonly checkpoint_ns: string; readonly checkpoint_id: string };
  readonly parent_checkpoint: { readonly checkpoint_id: string } | null;
}

const childOf = ({ tasks }: State, name = "payment") => tasks.find((task) => task.name === name);

async function all(stream: AsyncIterable<{ readonly event: string; readonly data: unknown }>) {
  const events: { event: string; data: unknown }[] = [];
  for await (const { event, data } of stream) events.push({ event, data });
  return events;
}
const plain = (event: string) => event.replaceAll(/:[0-9a-f-]{36}/g, "");

describe.each(lines)("child machines as subgraphs, over %s", (_, connect) => {
  test("have a namespace, which the state's tasks name; their states are in it, at any depth", async () => {
    const { client, thread } = await started(connect);
    await client.runs.wait(thread, "order", { input: {} });
    const state = (await client.threads.getState(thread)) as unknown as State;
    const ns = childOf(state)?.checkpoint?.checkpoint_ns ?? "";
    expect(ns).toMatch(NS);
    expect(ns).toBe(`payment:${childOf(state)?.id}`);
    const deep = (await client.threads.getState(thread, undefined, { subgraphs: true })) as unknown as State;
    const child = childOf(deep)?.state as State;
    expect(child).toMatchObject({
      values: { amount: 7, receipt: null, __state__: "asking" },
      next: ["xstate.wait"],
      checkpoint: { checkpoint_ns: ns },
    });
    expect(childOf(child, "counter")?.state).toMatchObject({ values: { count: 0 } });
    const own = (await client.threads.getState(thread, {
      thread_id: thread,
      checkpoint_ns: ns,
      checkpoint_id: undefined,
      checkpoint_map: null,
    } as never)) as unknown as State;
    expect(own.values).toEqual(child.values);
  });

  test("are listed as the subgraphs of the assistant's graph, with the schemas of their states", async () => {
    const { app, client } = await started(connect);
    const own = await client.assistants.getSubgraphs("order");
    expect(Object.keys(own)).toEqual(["payment"]);
    const all = await client.assistants.getSubgraphs("order", { recurse: true });
    expect(Object.keys(all)).toEqual(["payment", "payment|counter"]);
    expect(all["payment|counter"]).toMatchObject({
      graph_id: "counter",
      state_schema: { properties: { count: { default: 0 }, __state__: {}, __output__: {} } },
      input_schema: { properties: {} },
    });
    // It begins with an event for its parent, which it needs for that.
    expect(all["payment"]?.state_schema?.properties).toMatchObject({ receipt: { default: null } });
    const read = async (path: string) =>
      (await fetch(`${app.url}/assistants/order/subgraphs/${path}`)).json();
    expect(Object.keys((await read("payment")) as object)).toEqual(["payment"]);
    expect(await read("payment%7Ccounter")).toEqual({});
    expect(Object.keys((await read("payment:1%7Ccounter:2?recurse=true")) as object)).toEqual([
      "payment|counter",
    ]);
    expect(await read("nothing?recurse=true")).toEqual({});
  });

  test("show their events under their namespace to those who ask for subgraphs", async () => {
    const { client, thread } = await started(connect);
    const stream = (payload: object) =>
      all(client.runs.stream(thread, "order", { streamMode: ["values", "updates"], ...payload } as never));
    const begun = await stream({ input: {}, streamSubgraphs: true });
    const names = begun.map(({ event }) => plain(event));
    expect(names.filter((name) => name.includes("|"))).toEqual([
      "updates|payment",
      "values|payment",
      "updates|payment|counter",
      "values|payment|counter",
    ]);
    const paid = await stream({ command: { resume: { type: "PAY" } }, streamSubgraphs: true });
    const values = paid
      .filter(({ event }) => plain(event) === "values|payment")
      .map(({ data }) => (data as State["values"])["__state__"]);
    expect(values).toEqual(["charging", "paid"]);
    const updates = paid.find(({ event }) => plain(event) === "updates|payment")?.data;
    expect(updates).toMatchObject({ "xstate.transition": { __state__: "charging" } });
    expect(
      new Set(paid.map(({ event }) => event).filter((event) => NS.test(event.split("|").slice(1).join("|"))))
        .size,
    ).toBe(2);
  });

  test("show in every mode that a subgraph has, also to those who join from a stored stream", async () => {
    const { app, client, thread } = await started(connect);
    const streamMode = ["tasks", "checkpoints", "debug", "events"];
    const options = { input: {}, streamSubgraphs: true, streamMode };
    const live = await all(client.runs.stream(thread, "order", options as never));
    const of = (event: string) =>
      live.filter((one) => plain(one.event) === event).map(({ data }) => data as Record<string, unknown>);
    expect(of("tasks|payment")).toMatchObject([
      { name: "xstate.transition", input: null },
      { name: "xstate.transition", result: { __state__: "asking" } },
    ]);
    expect(of("checkpoints|payment")).toMatchObject([{ values: { amount: 7 }, next: ["xstate.wait"] }]);
    expect(of("debug|payment").map(({ type }) => type)).toEqual(["task", "task_result", "checkpoint"]);
    const [run] = await client.runs.list(thread);
    const query = streamMode.map((mode) => `&stream_mode=${mode}`).join("");
    const stored = await fetch(
      `${app.url}/threads/${thread}/runs/${run?.run_id}/stream?stream_subgraphs=true${query}`,
    );
    const names = [...(await stored.text()).matchAll(/^event: (.*)$/gm)].map(([, event]) => event);
    expect(names).toEqual(live.map(({ event }) => event));
  });

  test("go with the run that is deleted", async () => {
    const { client, thread } = await started(connect);
    await client.runs.wait(thread, "order", { input: {} });
    const ns =
      childOf((await client.threads.getState(thread)) as unknown as State)?.checkpoint?.checkpoint_ns ?? "";
    await client.runs.wait(thread, "order", { command: { resume: { type: "PAY" } } });
    const checkpoint = { thread_id: thread, checkpoint_ns: ns, checkpoint_map: null, checkpoint_id: null };
    const states = async () =>
      ((await client.threads.getHistory(thread, { checkpoint: checkpoint as never })) as unknown as State[])
        .length;
    expect(await states()).toBe(3);
    const [last] = await client.runs.list(thread);
    await client.runs.delete(thread, last?.run_id ?? "");
    expect(await states()).toBe(1);
    const deep = (await client.threads.getState(thread, undefined, { subgraphs: true })) as unknown as State;
    expect(childOf(deep)?.state?.values).toMatchObject({ __state__: "asking" });
  });

  test("do not show in the streams of others", async () => {
    const { client, thread } = await started(connect);
    const events = await all(
      client.runs.stream(thread, "order", {
        input: {},
        streamMode: ["values", "updates", "tasks", "checkpoints", "debug"],
      }),
    );
    expect(events.filter(({ event }) => event.includes("|"))).toEqual([]);
  });

  test("have a history of their own, whose last state is that in which they ended; a child that begins anew has another", async () => {
    const data = await directory();
    const { app, client, thread } = await started(connect, data);
    await client.runs.wait(thread, "order", { input: {} });
    const first =
      childOf((await client.threads.getState(thread)) as unknown as State)?.checkpoint?.checkpoint_ns ?? "";
    await client.runs.wait(thread, "order", { command: { resume: { type: "ANEW" } } });
    const second =
      childOf((await client.threads.getState(thread)) as unknown as State)?.checkpoint?.checkpoint_ns ?? "";
    expect(second).toMatch(NS);
    expect(second).not.toBe(first);
    // The event is for the parent alone: the child stays as it is.
    await client.runs.wait(thread, "order", { command: { resume: { type: "NOTHING" } } });
    await app.close();
    const again = connect((await serve({ graphs, data })).url);
    await again.runs.wait(thread, "order", { command: { resume: { type: "PAY" } } });
    const history = async (ns: string) =>
      (await again.threads.getHistory(thread, {
        checkpoint: {
          thread_id: thread,
          checkpoint_ns: ns,
          checkpoint_map: null,
          checkpoint_id: null,
        } as never,
      })) as unknown as readonly State[];
    const made = await history(second);
    expect(made.map(({ values }) => values["__state__"])).toEqual(["paid", "charging", "asking"]);
    expect(made[0]).toMatchObject({ next: [], values: { receipt: "7 paid", __output__: "7 paid" } });
    expect(made[1]).toMatchObject({ next: ["charge"] });
    expect(made.map(({ parent_checkpoint }) => parent_checkpoint?.checkpoint_id ?? null)).toEqual([
      made[1]?.checkpoint.checkpoint_id,
      made[2]?.checkpoint.checkpoint_id,
      null,
    ]);
    expect((await history(first)).map(({ next }) => next)).toEqual([[], ["xstate.wait"]]);
    const done = (await again.threads.getState(thread)) as unknown as State;
    expect(done).toMatchObject({ values: { receipt: "7 paid", __state__: "over" }, tasks: [] });
  });

  test("an earlier state of the thread has the child as it was then; a fork goes on from it in the same namespace", async () => {
    const { client, thread } = await started(connect);
    await client.runs.wait(thread, "order", { input: {} });
    const before = (await client.threads.getState(thread)) as unknown as State;
    await client.runs.wait(thread, "order", { command: { resume: { type: "PAY" } } });
    const then = (await client.threads.getState(thread, before.checkpoint.checkpoint_id, {
      subgraphs: true,
    })) as unknown as State;
    expect(childOf(then)?.state?.values).toMatchObject({ __state__: "asking" });
    await client.runs.wait(thread, "order", { input: null, checkpointId: before.checkpoint.checkpoint_id });
    const fork = (await client.threads.getState(thread, undefined, { subgraphs: true })) as unknown as State;
    expect(childOf(fork)?.state?.values).toMatchObject({ __state__: "asking" });
    await client.runs.wait(thread, "order", { command: { resume: { type: "PAY" } } });
    expect((await client.threads.getState(thread)).values).toMatchObject({ receipt: "7 paid" });
  });

  test("with durability exit, their last state is stored with the run's", async () => {
    const { client, thread } = await started(connect);
    await client.runs.wait(thread, "order", { input: {}, durability: "exit" } as never);
    const deep = (await client.threads.getState(thread, undefined, { subgraphs: true })) as unknown as State;
    expect(childOf(deep)?.state?.values).toMatchObject({ __state__: "asking" });
  });

  test("have their promise actors as tasks of their own, in states and in streams", async () => {
    const { work, calls } = heldCalls<string>();
    const machine = order.provide({
      actors: {
        payment: payment.provide({
          actors: {
            charge: fromPromise(async (given) => {
              given.emit({ type: "charging" });
              return work(given);
            }),
          },
        }),
      },
    });
    const { client, thread } = await started(connect, undefined, { order: machine } as unknown as Graphs);
    await client.runs.wait(thread, "order", { input: {} });
    const events: { event: string; data: unknown }[] = [];
    const follow = async () => {
      const stream = client.runs.stream(thread, "order", {
        command: { resume: { type: "PAY" } },
        streamMode: ["updates", "tasks", "debug", "checkpoints", "custom"],
        streamSubgraphs: true,
      });
      for await (const { event, data } of stream) events.push({ event: plain(event), data });
    };
    const following = follow();
    await calls(1);
    const state = (await client.threads.getState(thread, undefined, { subgraphs: true })) as unknown as State;
    expect([state.next, state.tasks.map(({ name }) => name)]).toEqual([["payment"], ["payment"]]);
    const child = childOf(state)?.state as State;
    expect(child.next).toEqual(["charge"]);
    expect(child.tasks.map(({ name }) => name)).toEqual(["charge", "counter"]);
    const [call] = await calls(1);
    call?.open("7 paid");
    await following;
    const of = (name: string) =>
      events.filter(({ event }) => event === name).map(({ data }) => data as Record<string, unknown>);
    const charges = (all: readonly Record<string, unknown>[]) =>
      all.filter((one) => (one["name"] ?? (one["payload"] as Task | undefined)?.name) === "charge");
    const id = childOf(child, "charge")?.id;
    expect(charges(of("tasks|payment"))).toMatchObject([{ id }, { id, result: { __events__: [{}] } }]);
    expect(charges(of("debug|payment")).map(({ type }) => type)).toEqual(["task", "task_result"]);
    expect(of("updates|payment").flatMap((update) => Object.keys(update))).toEqual([
      "xstate.transition",
      "charge",
      "xstate.transition",
    ]);
    expect(of("custom|payment")).toEqual([{ type: "charging" }]);
    expect(charges([...of("tasks"), ...of("debug")])).toEqual([]);
    const planned = of("checkpoints").find(({ next }) => (next as string[]).includes("payment"));
    const { id: own } = childOf(state) as Task;
    expect(planned).toMatchObject({
      next: ["payment"],
      tasks: [{ id: own, name: "payment", checkpoint: {} }],
    });
  });

  test("show an actor that goes on as one task, until an event of its own begins another", async () => {
    const { work, calls } = heldCalls<string>();
    const child = setup({ actors: { first: fromPromise(work), second: fromPromise(work) } }).createMachine({
      type: "parallel",
      on: { NOTE: { actions: () => undefined } },
      states: {
        one: { invoke: { src: "first", input: "first" } },
        two: { invoke: { src: "second", input: "second" } },
      },
    });
    const machine = setup({ actors: { child, own: fromPromise(work) } }).createMachine({
      type: "parallel",
      states: {
        own: {
          initial: "at work",
          states: {
            "at work": { invoke: { src: "own", input: "own", onDone: "done" } },
            done: { type: "final" },
          },
        },
        kept: {
          initial: "on",
          states: { on: { invoke: { src: "child" }, on: { STOP: "off" } }, off: { type: "final" } },
        },
      },
    });
    const { app, client, thread, states } = await started(connect, undefined, {
      order: machine,
    } as unknown as Graphs);
    const events: { event: string; data: { name: string; result?: unknown } }[] = [];
    const follow = async () => {
      const stream = client.runs.stream(thread, "order", {
        input: {},
        streamMode: ["tasks"],
        streamSubgraphs: true,
      } as never);
      for await (const { event, data } of stream)
        events.push({ event: plain(event), data: data as { name: string } });
    };
    const following = follow();
    const at = await calls(3);
    const childNow = async () => childOf((await states("state")) as unknown as State, "child")?.checkpoint;
    // The actors begin before the checkpoint of their step is stored.
    await expect.poll(childNow).toBeDefined();
    const child_ns = (await childNow())?.checkpoint_ns;
    at.find(({ input }) => input === "own")?.open("own");
    await expect
      .poll(async () => ((await states("state")) as State).values["__state__"])
      .toMatchObject({ own: "done" });
    expect((await post(`${app.url}/threads/${thread}/events`, { type: "STOP" })).status).toBe(202);
    await following;
    const own = events.filter(
      ({ event, data }) => event === "tasks|child" && data.name !== "xstate.transition",
    );
    expect(own.map(({ data }) => [data.name, "result" in data])).toEqual([
      ["first", false],
      ["second", false],
      ["first", true],
      ["second", true],
    ]);
    // The parent has stopped it: the last state of its namespace says that nothing waits there any more.
    const [last, before] = (await client.threads.getHistory(thread, {
      checkpoint: {
        thread_id: thread,
        checkpoint_ns: child_ns,
        checkpoint_map: null,
        checkpoint_id: null,
      } as never,
    })) as unknown as readonly State[];
    expect(last?.next).toEqual([]);
    expect(before?.next).toEqual(["first", "second"]);
  });

  test("show what they emit in their namespace", async () => {
    const child = createMachine({ on: { SAY: { actions: emit({ type: "said" }) } } });
    const adder = fromTransition((sum: number, _: unknown, { emit: tell }) => {
      tell({ type: "added" });
      return sum + 1;
    }, 0);
    const machine = setup({ actors: { child, adder } }).createMachine({
      invoke: [
        { src: "child", id: "child" },
        { src: "adder", id: "adder" },
      ],
      on: {
        SAY: {
          actions: [emit({ type: "own" }), forwardTo("child"), sendTo("adder", { type: "ADD" })],
        },
      },
    } as never);
    const { client, thread } = await started(connect, undefined, { order: machine } as unknown as Graphs);
    await client.runs.wait(thread, "order", { input: {} });
    const said = async (streamSubgraphs: boolean) => {
      const command = { resume: { type: "SAY" } };
      const events = await all(
        client.runs.stream(thread, "order", { command, streamMode: ["custom"], streamSubgraphs }),
      );
      return events
        .slice(1)
        .map(({ event, data }) => [plain(event), (data as { readonly type: string }).type]);
    };
    expect(await said(true)).toEqual([
      ["custom", "own"],
      ["custom|child", "said"],
      ["custom", "added"],
    ]);
    expect(await said(false)).toEqual([
      ["custom", "own"],
      ["custom", "said"],
      ["custom", "added"],
    ]);
  });

  test("end with a state that waits for nothing, also when their machine begins anew", async () => {
    const { client, thread } = await started(connect);
    const namespace = async () =>
      childOf((await client.threads.getState(thread)) as unknown as State)?.checkpoint?.checkpoint_ns;
    const statesOf = async (ns: string | undefined) =>
      (await client.threads.getHistory(thread, {
        checkpoint: {
          thread_id: thread,
          checkpoint_ns: ns,
          checkpoint_map: null,
          checkpoint_id: null,
        } as never,
      })) as unknown as readonly State[];
    await client.runs.wait(thread, "order", { input: {} });
    const first = await namespace();
    await client.runs.wait(thread, "order", { command: { resume: { type: "ANEW" } } });
    const second = await namespace();
    await client.runs.wait(thread, "order", { input: {} });
    for (const ns of [first, second]) {
      const found = await statesOf(ns);
      expect(found.map(({ next }) => next)).toEqual([[], ["xstate.wait"]]);
      expect(found[0]?.values).toEqual(found[1]?.values);
    }
    expect((await statesOf(await namespace())).map(({ next }) => next)).toEqual([["xstate.wait"]]);
  });

  test("their state cannot be changed there: it is a part of that of the machine above all", async () => {
    const { client, thread } = await started(connect);
    await client.runs.wait(thread, "order", { input: {} });
    const ns =
      childOf((await client.threads.getState(thread)) as unknown as State)?.checkpoint?.checkpoint_ns ?? "";
    const at = { thread_id: thread, checkpoint_ns: ns, checkpoint_map: null, checkpoint_id: undefined };
    await expect(
      client.threads.updateState(thread, { values: { amount: 1 }, checkpoint: at as never }),
    ).rejects.toThrow(/names no subgraph in progress/);
  });
});
