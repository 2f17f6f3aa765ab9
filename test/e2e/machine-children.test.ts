import { describe, expect, test } from "vitest";
import {
  type AnyActorRef,
  assign,
  createMachine,
  emit,
  type EventObject,
  forwardTo,
  fromCallback,
  fromPromise,
  fromTransition,
  raise,
  sendParent,
  sendTo,
  setup,
  stopChild,
} from "xstate";
import { lines } from "./support/clients.ts";
import { heldCalls } from "./support/latches.ts";
import { directory, serve } from "./support/server.ts";
import { ShiftedTime } from "./support/shifted-time.ts";

const connect = (lines[0] as (typeof lines)[number])[1];

const MINUTE = 60_000;

type Graphs = NonNullable<NonNullable<Parameters<typeof serve>[0]>["graphs"]>;
type Values = Readonly<Record<string, unknown>>;

async function serving(machine: unknown, data?: string, time = new ShiftedTime()) {
  const app = await serve({
    graphs: { machine } as Graphs,
    ...(data !== undefined && { data }),
    ...time,
  });
  const client = connect(app.url);
  const on = (thread: string) => {
    const wait = (payload: object) =>
      client.runs.wait(thread, "machine", payload as never) as Promise<Values>;
    const values = async () => (await client.threads.get(thread)).values as Values;
    return {
      thread,
      wait,
      values,
      state: async () => (await values())["__state__"],
      send: (resume: object) => wait({ command: { resume } }),
      child: async (id: string) => childOf(await values(), id),
      left: async () => (await values())["__snapshot__"] as { timers: unknown[]; work: unknown[] },
    };
  };
  return { app, client, time, on, thread: async () => on((await client.threads.create()).thread_id) };
}

/** The stored snapshot of a child. */
function childOf(values: Values, id: string) {
  const { rest } = values["__snapshot__"] as { rest: { children: Record<string, { snapshot: Values }> } };
  return rest.children[id]?.snapshot;
}

async function begun(machine: unknown, data?: string) {
  const made = await serving(machine, data);
  const thread = await made.thread();
  await thread.wait({ input: {} });
  return { ...made, ...thread };
}

/** Adds what it is sent. */
const sum = fromTransition(
  (state: { total: number }, event: { type: string; by: number }) => ({ total: state.total + event.by }),
  ({ input }: { input: { from: number } }) => ({ total: input.from }),
);

describe("a transition actor", () => {
  const counting = setup({ actors: { sum } }).createMachine({
    context: { last: 0 },
    initial: "on",
    states: {
      on: {
        invoke: {
          src: "sum",
          id: "sum",
          input: { from: 10 },
          onSnapshot: {
            actions: assign({ last: ({ event }) => (event.snapshot.context as { total: number }).total }),
          },
        },
        on: { ADD: { actions: forwardTo("sum") }, STOP: "off" },
      },
      off: { on: { START: "on" } },
    },
  } as never);

  test("is kept in the snapshot, takes events, and its snapshots are followed, also after a restart", async () => {
    const data = await directory();
    const { app, thread, send, child, values } = await begun(counting, data);
    expect(await values()).toMatchObject({ last: 10 });
    await send({ type: "ADD", by: 5 });
    expect(await child("sum")).toMatchObject({ status: "active", context: { total: 15 } });
    await app.close();
    const again = (await serving(counting, data)).on(thread);
    expect(await again.send({ type: "ADD", by: 1 })).toMatchObject({ last: 16 });
    expect(await again.send({ type: "STOP" })).toMatchObject({ __state__: "off" });
    expect(await again.child("sum")).toBeUndefined();
    expect(await again.send({ type: "START" })).toMatchObject({ last: 10 });
  });

  test("that throws gives its parent the error", async () => {
    const broken = fromTransition((total: number): number => {
      throw new RangeError(`more than ${total}`);
    }, 0);
    const machine = setup({ actors: { broken } }).createMachine({
      context: { why: "" },
      initial: "on",
      states: {
        on: {
          invoke: {
            src: "broken",
            id: "broken",
            onError: {
              target: "off",
              actions: assign({ why: ({ event }) => (event.error as Error).message }),
            },
          },
          on: { ADD: { actions: forwardTo("broken") } },
        },
        off: { on: { END: "off" } },
      },
    });
    const { send } = await begun(machine);
    expect(await send({ type: "ADD" })).toMatchObject({ __state__: "off", why: "more than 0" });
  });
});

/** A payment: charged by a promise actor, unless the parent cancels it, or an hour passes. */
const payment = (charge: (given: never) => Promise<string>) =>
  setup({
    types: { context: {} as { amount: number; receipt: string | null }, input: {} as { amount: number } },
    actors: { charge: fromPromise<string, number>(charge as never) },
  }).createMachine({
    id: "payment",
    initial: "asking",
    context: ({ input }) => ({ amount: input.amount, receipt: null }),
    output: ({ context }) => context.receipt,
    states: {
      asking: {
        entry: sendParent({ type: "PAYMENT.ASKED" }),
        on: { PAY: "charging", CANCEL: "cancelled" },
        after: { [60 * MINUTE]: "cancelled" },
      },
      charging: {
        invoke: {
          src: "charge",
          input: ({ context }) => context.amount,
          onDone: { target: "paid", actions: assign({ receipt: ({ event }) => event.output }) },
        },
      },
      paid: { type: "final" },
      cancelled: { type: "final" },
    },
  });

/** An order with a payment as its child. */
const order = (child: unknown) =>
  setup({ actors: { payment: child as ReturnType<typeof payment> } }).createMachine({
    id: "order",
    context: { log: [] as string[], receipt: "" as string | null },
    initial: "paying",
    on: {
      "PAYMENT.ASKED": {
        actions: assign({ log: ({ context }: { context: { log: string[] } }) => [...context.log, "asked"] }),
      },
    },
    states: {
      paying: {
        invoke: {
          src: "payment",
          id: "payment",
          input: { amount: 7 },
          onDone: {
            target: "over",
            actions: assign({ receipt: ({ event }) => event.output as string | null }),
          },
          onError: "failed",
        },
        on: {
          PAY: { actions: sendTo("payment", { type: "PAY" }) },
          CANCEL: { actions: forwardTo("payment") },
          LEAVE: "left",
        },
      },
      over: { type: "final" },
      left: { on: { BACK: "paying" } },
      failed: { type: "final" },
    },
  } as never);

describe("a child machine", () => {
  test("takes events of its parent and sends it some; its promise actor is a node, and its output ends the child", async () => {
    const { client, values, child, state, thread, wait } = await begun(
      order(payment(async ({ input }: { input: number }) => `${input} paid`)),
    );
    expect(await values()).toMatchObject({ log: ["asked"], __state__: "paying" });
    expect(await child("payment")).toMatchObject({ value: "asking", context: { amount: 7 } });
    const nodes = new Set<string>();
    const stream = client.runs.stream(thread, "machine", {
      command: { resume: { type: "PAY" } },
      streamMode: "updates",
      streamSubgraphs: true,
    });
    for await (const { event, data } of stream)
      if (event.startsWith("updates|payment:"))
        for (const node of Object.keys(data as object)) nodes.add(node);
    expect(nodes).toContain("charge");
    expect(await state()).toBe("over");
    expect(await values()).toMatchObject({ receipt: "7 paid" });
    await wait({ input: {} });
    expect(await values()).toMatchObject({ log: ["asked"], __state__: "paying" });
  });

  test("is restored after a restart, and an actor of its own that was cut off starts again with its input", async () => {
    const data = await directory();
    const one = heldCalls<string>();
    const first = await begun(order(payment(one.work as never)), data);
    const run = await first.client.runs.create(first.thread, "machine", {
      command: { resume: { type: "PAY" } },
    });
    await one.calls(1);
    await first.app.close(0);
    const two = heldCalls<string>();
    const second = await serving(order(payment(two.work as never)), data);
    const [call] = await two.calls(1);
    expect(call?.input).toBe(7);
    call?.open("late");
    await second.client.runs.join(first.thread, run.run_id);
    expect(await second.on(first.thread).values()).toMatchObject({ __state__: "over", receipt: "late" });
  });

  test("has durable timers, which go when it is stopped or done", async () => {
    const data = await directory();
    const machine = order(payment(async () => "paid"));
    const { app, thread, send, left } = await begun(machine, data);
    expect((await left()).timers).toMatchObject([{ from: ["payment"], to: ["payment"] }]);
    await send({ type: "LEAVE" });
    expect((await left()).timers).toEqual([]);
    await send({ type: "BACK" });
    expect((await left()).timers).toHaveLength(1);
    await app.close();
    const time = new ShiftedTime();
    const again = (await serving(machine, data, time)).on(thread);
    time.advance(59 * MINUTE);
    expect(await again.state()).toBe("paying");
    time.advance(MINUTE);
    await expect.poll(again.state).toBe("over");
    expect(await again.values()).toMatchObject({ receipt: null, __snapshot__: { timers: [] } });
  });

  test("that its parent leaves is stopped with its actors", async () => {
    const { work, calls } = heldCalls<string>();
    const child = setup({ actors: { work: fromPromise<string>(work) } }).createMachine({
      initial: "working",
      states: { working: { invoke: { src: "work", onDone: "done" } }, done: {} },
    });
    const quick = heldCalls<string>();
    const machine = setup({ actors: { child, quick: fromPromise<string>(quick.work) } }).createMachine({
      initial: "both",
      states: { both: { invoke: [{ src: "child" }, { src: "quick", onDone: "left" }] }, left: {} },
    });
    const { client, thread } = await serving(machine);
    const one = await thread();
    const run = await client.runs.create(one.thread, "machine", { input: {} });
    const [[held], [other]] = await Promise.all([calls(1), quick.calls(1)]);
    other?.open("");
    await client.runs.join(one.thread, run.run_id);
    expect(held?.signal.aborted).toBe(true);
    expect(await one.left()).toMatchObject({ work: [] });
    expect(await one.state()).toBe("left");
  });

  test("that fails gives its parent the error, and without a handler fails the run", async () => {
    const child = payment(async () => {
      throw new Error("declined");
    });
    const handled = await begun(order(child));
    expect(await handled.send({ type: "PAY" })).toMatchObject({ __state__: "failed" });
    const open = setup({ actors: { child } }).createMachine({
      initial: "on",
      states: {
        on: {
          invoke: { src: "child", id: "child", input: { amount: 1 } },
          on: { PAY: { actions: forwardTo("child") } },
        },
      },
    });
    const { client, thread, send, state } = await begun(open);
    await send({ type: "PAY" }).catch(() => undefined);
    const [run] = await client.runs.list(thread);
    expect(run?.status).toBe("error");
    expect(JSON.stringify(await client.threads.get(thread))).toMatch(/declined/);
    expect(await state()).toBe("on");
  });

  test("whose state is gone after a change fails the run, which names it", async () => {
    const data = await directory();
    const { app, thread } = await begun(order(payment(async () => "")), data);
    await app.close();
    const other = createMachine({ id: "payment", initial: "open", states: { open: {} } });
    const { client, on } = await serving(order(other), data);
    await on(thread)
      .send({ type: "CANCEL" })
      .catch(() => undefined);
    expect((await client.runs.list(thread))[0]?.status).toBe("error");
    expect(JSON.stringify(await client.threads.get(thread))).toMatch(/asking/);
  });
});

describe("actors that talk to each other", () => {
  test("ping and pong, with the sender in the event, in one step", async () => {
    interface Sent extends EventObject {
      readonly sender: AnyActorRef;
    }
    const ponger = createMachine({
      on: { PING: { actions: sendTo(({ event }) => (event as Sent).sender, { type: "PONG" }) } },
    });
    const pinger = setup({ actors: { ponger } }).createMachine({
      context: { pongs: 0 },
      invoke: { src: "ponger", id: "ponger" },
      entry: sendTo("ponger", ({ self }) => ({ type: "PING", sender: self })),
      on: {
        PONG: [
          {
            guard: ({ context }) => context.pongs < 2,
            actions: [
              assign({ pongs: ({ context }) => context.pongs + 1 }),
              sendTo("ponger", ({ self }) => ({ type: "PING", sender: self })),
            ],
          },
          { actions: assign({ pongs: 99 }) },
        ],
      },
    });
    expect(await (await begun(pinger)).values()).toMatchObject({ pongs: 99 });
  });

  test("without an end fail their run", async () => {
    const echo = createMachine({ on: { "*": { actions: sendParent({ type: "BACK" }) } } });
    const machine = setup({ actors: { echo } }).createMachine({
      invoke: { src: "echo", id: "echo" },
      on: { "*": { actions: sendTo("echo", { type: "GO" }) } },
    });
    const { client, thread, send } = await begun(machine);
    await expect(send({ type: "GO" })).rejects.toThrow(/does not come to rest: it took 10000/);
    expect((await client.threads.get(thread)).status).toBe("interrupted");
  });

  test("are spawned in assign and in actions, at any depth, and stopped; the references in the context stay", async () => {
    const leaf = setup({ actors: { load: fromPromise(async () => "loaded") } }).createMachine({
      initial: "loading",
      states: {
        loading: { invoke: { src: "load", onDone: "ready" } },
        ready: { entry: [emit({ type: "leaf.ready" }), sendParent({ type: "READY" })], on: { "*": {} } },
      },
    });
    const branch = setup({ actors: { leaf } }).createMachine({
      invoke: { src: "leaf", id: "leaf", systemId: "the leaf" },
      on: { READY: { actions: sendParent({ type: "READY" }) } },
    });
    interface Context {
      readonly ready: number;
      readonly branch: AnyActorRef;
      readonly total: AnyActorRef | null;
    }
    const machine = setup({
      types: { context: {} as Context },
      actors: { branch, sum },
    }).createMachine({
      context: ({ spawn }) => ({ ready: 0, branch: spawn("branch", { id: "branch" }), total: null }),
      on: {
        READY: { actions: assign({ ready: ({ context }) => context.ready + 1 }) },
        SUM: { actions: assign({ total: ({ spawn }) => spawn("sum", { id: "total", input: { from: 1 } }) }) },
        ADD: {
          actions: sendTo(
            ({ context }) => context.total as AnyActorRef,
            () => ({ type: "ADD", by: 2 }),
          ),
        },
        DROP: { actions: stopChild(({ context }) => context.branch) },
      },
    });
    const { send, values, child } = await begun(machine);
    expect(await values()).toMatchObject({ ready: 1, branch: { id: "branch" } });
    await send({ type: "SUM" });
    await send({ type: "ADD" });
    expect(await child("total")).toMatchObject({ context: { total: 3 } });
    await send({ type: "DROP" });
    expect(await child("branch")).toBeUndefined();
  });

  test("a child that has itself replaced by its parent begins anew: the timers of the one before are gone", async () => {
    const child = createMachine({
      initial: "waiting",
      states: {
        waiting: { after: { [MINUTE]: "again" }, on: { AGAIN: "again" } },
        again: { entry: [sendParent({ type: "REPLACE" }), raise({ type: "LATE" }, { delay: 5 * MINUTE })] },
      },
    });
    const machine = setup({ actors: { child } }).createMachine({
      initial: "on",
      states: {
        on: {
          invoke: { src: "child", id: "child", systemId: "the child" },
          on: {
            REPLACE: { target: "on", reenter: true },
            AGAIN: { actions: forwardTo("child") },
          },
        },
      },
    });
    const { send, child: stored, left } = await begun(machine);
    await send({ type: "AGAIN" });
    expect(await stored("child")).toMatchObject({ value: "waiting", status: "active" });
    expect((await left()).timers).toMatchObject([{ name: expect.stringMatching(/after/) }]);
  });

  test("run the custom actions of children once they are stored, at least once", async () => {
    const seen: unknown[] = [];
    const child = setup({ actions: { note: ({ event }) => void seen.push(event.type) } }).createMachine({
      entry: "note",
      on: { GO: { actions: "note" } },
    });
    const machine = setup({ actors: { child } }).createMachine({
      invoke: { src: "child", id: "child" },
      on: { GO: { actions: forwardTo("child") } },
    });
    const { send } = await begun(machine);
    await send({ type: "GO" });
    expect(seen).toEqual(["xstate.init", "GO"]);
  });
});

test("callbacks in a child are refused, with their path", async () => {
  const child = createMachine({ id: "child", invoke: { src: fromCallback(() => undefined) } });
  const machine = setup({ actors: { child } }).createMachine({ id: "top", invoke: { src: "child" } });
  await expect(serve({ graphs: { machine } as Graphs })).rejects.toThrow(
    /#child\.invoke starts .*callback or observable logic/,
  );
});
