import { describe, expect, test } from "vitest";
import { and, assign, emit, fromCallback, fromPromise, raise, sendTo, setup, createMachine } from "xstate";
import demo from "../../src/demo/order.ts";
import { type Client, lines } from "./support/clients.ts";
import { heldCalls } from "./support/latches.ts";
import { directory, serve } from "./support/server.ts";
import { get, newThread, post, postJson } from "./support/wire.ts";

interface Receipt {
  readonly receipt: string;
}

/** An order: approved by a human, charged by a promise actor. */
const order = (
  charge: (given: { readonly input: unknown; readonly signal: AbortSignal }) => Promise<Receipt>,
) =>
  setup({
    types: {
      context: {} as { amount: number; receipt: string | null },
      input: {} as { amount: number },
      events: {} as { type: "APPROVE"; by?: string } | { type: "REJECT" },
    },
    actors: { charge: fromPromise<Receipt, { amount: number }>(charge) },
    guards: { isAffordable: ({ context }) => context.amount < 1_000 },
  }).createMachine({
    id: "order",
    initial: "reviewing",
    context: ({ input }) => ({ amount: input.amount, receipt: null }),
    output: ({ context }) => ({ receipt: context.receipt }),
    states: {
      reviewing: {
        tags: ["human"],
        meta: { question: "Approve?" },
        on: { APPROVE: { target: "charging", guard: "isAffordable" }, REJECT: "rejected" },
      },
      charging: {
        invoke: {
          src: "charge",
          input: ({ context }) => ({ amount: context.amount }),
          onDone: { target: "paid", actions: assign({ receipt: ({ event }) => event.output.receipt }) },
          onError: "failed",
        },
      },
      paid: { type: "final" },
      rejected: { type: "final" },
      failed: { type: "final" },
    },
  });

const paying = order(async () => ({ receipt: "r1" }));

type Values = Record<string, unknown> & {
  readonly __interrupt__?: readonly { readonly id: string; readonly value: Record<string, unknown> }[];
};

const wait = async (client: Client, thread: string, graph: string, payload: object) =>
  (await client.runs.wait(thread, graph, payload as never)) as Values;

const begin = async (client: Client, graph: string, input: object) => {
  const { thread_id } = await client.threads.create();
  return { thread_id, values: await wait(client, thread_id, graph, { input }) };
};

describe.each(lines)("a machine, over %s", (_, connect) => {
  test("waits for an event as an interrupt, takes it as its answer, and ends with its output", async () => {
    const client = connect((await serve({ graphs: { order: paying } })).url);
    const { thread_id, values } = await begin(client, "order", { amount: 5 });
    expect(values).toMatchObject({ amount: 5, receipt: null, __state__: "reviewing" });
    const thread = await client.threads.get(thread_id);
    expect(thread.status).toBe("interrupted");
    expect(Object.values(thread.interrupts).flat()).toMatchObject([
      {
        value: {
          state: "reviewing",
          tags: ["human"],
          meta: { "order.reviewing": { question: "Approve?" } },
          events: ["APPROVE", "REJECT"],
        },
      },
    ]);
    const ended = await wait(client, thread_id, "order", { command: { resume: { type: "APPROVE" } } });
    expect(ended).toMatchObject({ __state__: "paid", receipt: "r1", __output__: { receipt: "r1" } });
    expect((await client.threads.get(thread_id)).status).toBe("idle");
    const runs = await client.runs.list(thread_id);
    expect(runs.map(({ status }) => status)).toEqual(["success", "success"]);
  });

  test("takes the other way", async () => {
    const client = connect((await serve({ graphs: { order: paying } })).url);
    const { thread_id } = await begin(client, "order", { amount: 5 });
    const ended = await wait(client, thread_id, "order", { command: { resume: { type: "REJECT" } } });
    expect(ended).toMatchObject({ __state__: "rejected", __output__: { receipt: null } });
  });
});

describe("an event that the machine cannot take", () => {
  const connect = (lines[0] as (typeof lines)[number])[1];

  test("is refused with the events that it can take, and the thread waits as before", async () => {
    const { url } = await serve({ graphs: { order: paying } });
    const client = connect(url);
    const { thread_id } = await begin(client, "order", { amount: 5 });
    for (const resume of [{ type: "SHIP" }, "yes"]) {
      // oxlint-disable-next-line no-await-in-loop -- a thread takes one answer at a time
      const response = await fetch(`${url}/threads/${thread_id}/runs`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ assistant_id: "order", command: { resume } }),
      });
      expect(response.status).toBe(422);
      // oxlint-disable-next-line no-await-in-loop -- a thread takes one answer at a time
      expect(await response.text()).toMatch(/the machine can take APPROVE, REJECT/);
    }
    expect((await client.threads.get(thread_id)).status).toBe("interrupted");
  });

  test("because of its guard fails the run, and the thread waits as before", async () => {
    const client = connect((await serve({ graphs: { order: paying } })).url);
    const { thread_id } = await begin(client, "order", { amount: 5_000 });
    const ended = await wait(client, thread_id, "order", {
      command: { resume: { type: "APPROVE" } },
    }).catch((error: Error) => error.message);
    expect(JSON.stringify(ended)).toMatch(/its guard does not hold/);
    expect((await client.threads.get(thread_id)).status).toBe("interrupted");
    await client.threads.updateState(thread_id, { values: { amount: 1 } });
    // An update drops the question; the next run asks it anew.
    await wait(client, thread_id, "order", { input: null });
    const paid = await wait(client, thread_id, "order", { command: { resume: { type: "APPROVE" } } });
    expect(paid).toMatchObject({ __state__: "paid", amount: 1 });
  });
});

describe("the actors of a machine", () => {
  const connect = (lines[0] as (typeof lines)[number])[1];

  test("a stored result is not made again after a restart", async () => {
    const data = await directory();
    const calls: unknown[] = [];
    const counted = order(async ({ input }) => {
      calls.push(input);
      return { receipt: `r${calls.length}` };
    });
    const first = await serve({ data, graphs: { order: counted } });
    const { thread_id } = await begin(connect(first.url), "order", { amount: 7 });
    await first.close();
    const second = await serve({ data, graphs: { order: counted } });
    const paid = await wait(connect(second.url), thread_id, "order", {
      command: { resume: { type: "APPROVE" } },
    });
    expect(paid).toMatchObject({ receipt: "r1" });
    await second.close();
    const third = await serve({ data, graphs: { order: counted } });
    expect((await connect(third.url).threads.getState(thread_id)).values).toMatchObject({ receipt: "r1" });
    expect(calls).toEqual([{ amount: 7 }]);
  });

  test("an actor that a restart cuts off is started again with its input", async () => {
    const data = await directory();
    const one = heldCalls<Receipt>();
    const first = await serve({ data, graphs: { order: order(one.work) } });
    const { thread_id } = await begin(connect(first.url), "order", { amount: 7 });
    await connect(first.url).runs.create(thread_id, "order", { command: { resume: { type: "APPROVE" } } });
    await one.calls(1);
    await first.close(0);
    const two = heldCalls<Receipt>();
    const second = await serve({ data, graphs: { order: order(two.work) } });
    const [again] = await two.calls(1);
    expect(again?.input).toEqual({ amount: 7 });
    again?.open({ receipt: "late" });
    const client = connect(second.url);
    const [run] = await client.runs.list(thread_id);
    expect(await client.runs.join(thread_id, run?.run_id ?? "")).toMatchObject({ receipt: "late" });
  });

  test("a cancelled run stops them, and a run without input starts them again", async () => {
    const one = heldCalls<Receipt>();
    const client = connect((await serve({ graphs: { order: order(one.work) } })).url);
    const { thread_id } = await begin(client, "order", { amount: 7 });
    const { run_id } = await client.runs.create(thread_id, "order", {
      command: { resume: { type: "APPROVE" } },
    });
    const [first] = await one.calls(1);
    await client.runs.cancel(thread_id, run_id, true);
    expect(first?.signal.aborted).toBe(true);
    const ended = wait(client, thread_id, "order", { input: null });
    const [, again] = await one.calls(2);
    again?.open({ receipt: "r2" });
    expect(await ended).toMatchObject({ __state__: "paid", receipt: "r2" });
  });

  test("the first of two results is taken while the other actor works, which is stopped when its state is left", async () => {
    const [fast, slow] = [heldCalls<string>(), heldCalls<string>()];
    const race = setup({
      actors: { fast: fromPromise(fast.work), slow: fromPromise(slow.work) },
    }).createMachine({
      initial: "racing",
      context: {},
      states: {
        racing: {
          invoke: [
            { src: "fast", onDone: "won" },
            { src: "slow", onDone: "lost" },
          ],
        },
        won: { type: "final" },
        lost: { type: "final" },
      },
    });
    const client = connect((await serve({ graphs: { race } })).url);
    const ended = begin(client, "race", {});
    const [[quick], [other]] = await Promise.all([fast.calls(1), slow.calls(1)]);
    quick?.open("first");
    expect((await ended).values).toMatchObject({ __state__: "won" });
    expect(other?.signal.aborted).toBe(true);
  });

  test("an actor goes on while the machine takes the result of another", async () => {
    const [a, b] = [heldCalls<string>(), heldCalls<string>()];
    const both = setup({ actors: { a: fromPromise(a.work), b: fromPromise(b.work) } }).createMachine({
      type: "parallel",
      context: { log: [] as string[] },
      states: Object.fromEntries(
        (["a", "b"] as const).map((src) => [
          src,
          {
            initial: "working",
            states: {
              working: {
                invoke: {
                  src,
                  onDone: {
                    target: "done",
                    actions: assign({ log: ({ context, event }) => [...context.log, event.output] }),
                  },
                },
              },
              done: { type: "final" as const },
            },
          },
        ]),
      ),
    } as never);
    const client = connect((await serve({ graphs: { both } })).url);
    const ended = begin(client, "both", {});
    const [[one], [two]] = await Promise.all([a.calls(1), b.calls(1)]);
    two?.open("b");
    const threads = () => client.threads.search();
    // oxlint-disable-next-line no-await-in-loop -- polls until the checkpoint is stored
    for (let log: unknown; JSON.stringify(log) !== '["b"]';) {
      const [thread] = await threads();
      log = thread && ((await client.threads.getState(thread.thread_id)).values as Values)["log"];
    }
    one?.open("a");
    expect((await ended).values).toMatchObject({ log: ["b", "a"], __state__: { a: "done", b: "done" } });
    expect([a.waiting.length, b.waiting.length]).toEqual([1, 1]);
    expect(one?.signal.aborted).toBe(false);
  });

  test("an error that the machine does not catch fails the run, and the state before it is kept", async () => {
    const broken = setup({
      actors: {
        fail: fromPromise(async () => {
          throw new RangeError("no such card");
        }),
      },
    }).createMachine({ initial: "a", context: { n: 1 }, states: { a: { invoke: { src: "fail" } } } });
    const client = connect((await serve({ graphs: { broken } })).url);
    const { thread_id } = await client.threads.create();
    await client.runs.wait(thread_id, "broken", { input: {} }).catch(() => undefined);
    const [run] = await client.runs.list(thread_id);
    expect(run?.status).toBe("error");
    expect(await client.threads.getState(thread_id)).toMatchObject({ values: { __state__: "a", n: 1 } });
    expect(JSON.stringify(await client.threads.get(thread_id))).toMatch(/no such card/);
  });
});

describe("actions of a machine", () => {
  const connect = (lines[0] as (typeof lines)[number])[1];

  test("custom ones run, emitted events are streamed, and raised and sent ones are taken", async () => {
    const seen: unknown[] = [];
    const busy = setup({
      actions: { note: ({ context }, params: { to: string }) => void seen.push([context, params]) },
    }).createMachine({
      initial: "a",
      context: { n: 0 },
      states: {
        a: { entry: raise({ type: "NEXT" }), on: { NEXT: "b" } },
        b: {
          entry: [
            assign({ n: 1 }),
            { type: "note", params: { to: "ops" } },
            emit({ type: "noted", n: 1 }),
            sendTo(({ self }) => self, { type: "END" }),
          ],
          on: { END: "c" },
        },
        c: { on: { GO: "d" } },
        d: { type: "final" },
      },
    } as never);
    const client = connect((await serve({ graphs: { busy } })).url);
    const { thread_id } = await client.threads.create();
    const custom: unknown[] = [];
    const stream = client.runs.stream(thread_id, "busy", { input: {}, streamMode: ["custom", "values"] });
    for await (const { event, data } of stream) if (event === "custom") custom.push(data);
    expect(custom).toEqual([{ type: "noted", n: 1 }]);
    expect(seen).toEqual([[{ n: 1 }, { to: "ops" }]]);
    expect(await client.threads.get(thread_id)).toMatchObject({
      status: "interrupted",
      values: { __state__: "c", n: 1 },
    });
  });
});

describe("machines of XState's documentation", () => {
  const connect = (lines[0] as (typeof lines)[number])[1];

  const drive = async (machine: unknown, input: object, events: readonly object[]) => {
    const client = connect((await serve({ graphs: { machine: machine as never } })).url);
    const { thread_id, values } = await begin(client, "machine", input);
    const states = [values["__state__"]];
    for (const resume of events) {
      // oxlint-disable-next-line no-await-in-loop -- each event is for the state that the one before led to
      states.push((await wait(client, thread_id, "machine", { command: { resume } }))["__state__"]);
    }
    return states;
  };

  test("a toggle", async () => {
    const toggle = createMachine({
      initial: "off",
      states: { off: { on: { TOGGLE: "on" } }, on: { on: { TOGGLE: "off" } } },
    });
    expect(await drive(toggle, {}, [{ type: "TOGGLE" }, { type: "TOGGLE" }])).toEqual(["off", "on", "off"]);
  });

  test("a traffic light by events, with its pedestrians as states of their own, and history", async () => {
    const light = createMachine({
      initial: "green",
      states: {
        green: { on: { TIMER: "yellow" } },
        yellow: { on: { TIMER: "red" } },
        red: {
          initial: "walk",
          states: { walk: { on: { COUNTDOWN: "wait" } }, wait: {}, hist: { type: "history" } },
          on: { TIMER: "green", POWER: "dark" },
        },
        dark: { on: { POWER: "red.hist" } },
      },
    });
    const events = ["TIMER", "TIMER", "COUNTDOWN", "POWER", "POWER"].map((type) => ({ type }));
    expect(await drive(light, {}, events)).toEqual([
      "green",
      "yellow",
      { red: "walk" },
      { red: "wait" },
      "dark",
      { red: "wait" },
    ]);
  });

  test("a fetch with retries", async () => {
    let tries = 0;
    const fetching = setup({
      actors: {
        load: fromPromise(async () => {
          if (++tries < 3) throw new Error("busy");
          return "data";
        }),
      },
      guards: { isLeft: ({ context }) => (context as { retries: number }).retries < 5 },
    }).createMachine({
      initial: "loading",
      context: { retries: 0, data: null as string | null },
      states: {
        loading: {
          invoke: {
            src: "load",
            onDone: { target: "success", actions: assign({ data: ({ event }) => event.output }) },
            onError: "failure",
          },
        },
        failure: {
          always: [
            {
              guard: and(["isLeft"]),
              target: "loading",
              actions: assign({ retries: ({ context }) => context.retries + 1 }),
            },
            { target: "broken" },
          ],
        },
        success: { type: "final" },
        broken: { type: "final" },
      },
    });
    expect(await drive(fetching, {}, [])).toEqual(["success"]);
    expect(tries).toBe(3);
  });

  test("a parallel word processor", async () => {
    const word = createMachine({
      type: "parallel",
      states: {
        bold: { initial: "off", states: { on: { on: { BOLD: "off" } }, off: { on: { BOLD: "on" } } } },
        list: { initial: "none", states: { none: { on: { LIST: "bullets" } }, bullets: {} } },
      },
    });
    expect(await drive(word, {}, [{ type: "BOLD" }, { type: "LIST" }])).toEqual([
      { bold: "off", list: "none" },
      { bold: "on", list: "none" },
      { bold: "on", list: "bullets" },
    ]);
  });

  test("a trip that undoes its bookings when the payment fails", async () => {
    const trip = setup({
      actors: {
        book: fromPromise(async ({ input }: { input: string }) => `${input} booked`),
        pay: fromPromise(async () => {
          throw new Error("declined");
        }),
        cancel: fromPromise(async ({ input }: { input: string }) => `${input} cancelled`),
      },
    }).createMachine({
      initial: "booking",
      context: { log: [] as string[] },
      states: {
        booking: {
          invoke: {
            src: "book",
            input: "car",
            onDone: {
              target: "paying",
              actions: assign({ log: ({ context, event }) => [...context.log, event.output] }),
            },
          },
        },
        paying: { invoke: { src: "pay", onDone: "booked", onError: "cancelling" } },
        cancelling: {
          invoke: {
            src: "cancel",
            input: "car",
            onDone: {
              target: "cancelled",
              actions: assign({ log: ({ context, event }) => [...context.log, event.output] }),
            },
          },
        },
        booked: { type: "final" },
        cancelled: { type: "final" },
      },
    });
    expect(await drive(trip, {}, [])).toEqual(["cancelled"]);
  });

  test("callbacks are refused, each with its path", async () => {
    const src = fromCallback(() => undefined);
    const light = createMachine({
      id: "light",
      initial: "red",
      states: { red: { invoke: { src } }, green: { invoke: { src } } },
    });
    await expect(serve({ graphs: { light } })).rejects.toThrow(
      /#light\.red\.invoke starts .*callback or observable logic; #light\.green\.invoke starts /,
    );
  });
});

describe("a machine that has changed under a waiting thread", () => {
  const connect = (lines[0] as (typeof lines)[number])[1];
  const version = (states: object) =>
    createMachine({ id: "doc", initial: Object.keys(states)[0], states } as never);

  test("goes on where its state is still there, and names it where it is gone", async () => {
    const data = await directory();
    const first = await serve({
      data,
      graphs: { doc: version({ draft: { on: { SEND: "sent" } }, sent: {} }) },
    });
    const { thread_id } = await begin(connect(first.url), "doc", {});
    const other = await begin(connect(first.url), "doc", {});
    await first.close();

    const second = await serve({
      data,
      graphs: {
        doc: version({ draft: { on: { SEND: "review" } }, review: { on: { OK: "sent" } }, sent: {} }),
      },
    });
    const client = connect(second.url);
    const resume = { type: "SEND" };
    expect(await wait(client, thread_id, "doc", { command: { resume } })).toMatchObject({
      __state__: "review",
    });
    expect((await client.threads.getState(thread_id)).metadata).toMatchObject({ graph_changed: true });
    await second.close();

    const third = await serve({
      data,
      graphs: { doc: version({ open: { on: { SEND: "sent" } }, sent: {} }) },
    });
    const last = connect(third.url);
    await wait(last, other.thread_id, "doc", { command: { resume } }).catch(() => undefined);
    const [run] = await last.runs.list(other.thread_id);
    expect(run?.status).toBe("error");
    expect(JSON.stringify(await last.threads.get(other.thread_id))).toMatch(/draft/);
    await last.threads.updateState(other.thread_id, {
      values: { __state__: "open" },
      asNode: "xstate.transition",
    });
    await wait(last, other.thread_id, "doc", { input: null });
    expect(await wait(last, other.thread_id, "doc", { command: { resume } })).toMatchObject({
      __state__: "sent",
    });
  });
});

test("a stored machine in a form that is not read fails its run, which says so; an input begins it anew", async () => {
  const client = (lines[0] as (typeof lines)[number])[1]((await serve({ graphs: { order: paying } })).url);
  const { thread_id } = await begin(client, "order", { amount: 7 });
  const snapshot = {
    rest: {},
    work: [],
    started: 1,
    // Not due: the run of a due timer could come first.
    timers: [{ id: "1:a", due: Date.now() + 3_600_000 }],
    actions: [],
    unset: [],
  };
  await client.threads.updateState(thread_id, {
    values: { __snapshot__: snapshot },
    asNode: "xstate.wait",
  });
  const failed = client.runs.wait(thread_id, "order", { input: null });
  await expect(failed).rejects.toThrow("begin the machine anew");
  const [run] = await client.runs.list(thread_id);
  expect(run?.status).toBe("error");
  expect(JSON.stringify(await client.threads.get(thread_id))).toMatch(/begin the machine anew/);
  expect(await wait(client, thread_id, "order", { input: { amount: 7 } })).toMatchObject({
    __state__: "reviewing",
  });
});

describe("the history of a machine", () => {
  const connect = (lines[0] as (typeof lines)[number])[1];

  test("goes back to an earlier checkpoint, where another event is taken", async () => {
    const client = connect((await serve({ graphs: { order: paying } })).url);
    const { thread_id } = await begin(client, "order", { amount: 5 });
    const { checkpoint } = await client.threads.getState(thread_id);
    await wait(client, thread_id, "order", { command: { resume: { type: "APPROVE" } } });
    expect((await client.threads.getState(thread_id)).values).toMatchObject({ __state__: "paid" });
    const checkpoint_id = checkpoint.checkpoint_id;
    const asked = await wait(client, thread_id, "order", {
      input: null,
      config: { configurable: { checkpoint_id } },
    });
    expect(asked).toMatchObject({ __state__: "reviewing", receipt: null });
    const other = await wait(client, thread_id, "order", { command: { resume: { type: "REJECT" } } });
    expect(other).toMatchObject({ __state__: "rejected", receipt: null });
  });

  test("an input begins it anew, without what the earlier context had", async () => {
    const keeping = setup({ types: { input: {} as { key: string } } }).createMachine({
      initial: "a",
      context: ({ input }) => ({ [input.key]: 1 }),
      states: { a: { on: { GO: "a" } } },
    });
    const client = connect((await serve({ graphs: { keeping } })).url);
    const { thread_id } = await begin(client, "keeping", { key: "x" });
    expect(await wait(client, thread_id, "keeping", { input: { key: "y" } })).toMatchObject({
      x: null,
      y: 1,
    });
  });
});

test("the demo's order is approved, declined, and rejected", async () => {
  const client = (lines[0] as (typeof lines)[number])[1]((await serve({ graphs: { demo } })).url);
  const { thread_id } = await begin(client, "demo", { amount: 2_000 });
  const answer = (type: string) => wait(client, thread_id, "demo", { command: { resume: { type } } });
  expect(await answer("APPROVE")).toMatchObject({ __state__: "declined", receipt: null });
  expect(await answer("REJECT")).toMatchObject({ __state__: "rejected" });
  const small = await begin(client, "demo", {});
  const paid = await wait(client, small.thread_id, "demo", { command: { resume: { type: "APPROVE" } } });
  expect(paid).toMatchObject({ __state__: "paid", __output__: "Received: 20" });
});

describe("data that XState would take for a reference to an actor", () => {
  const reference = { deep: [{ xstate$$type: 1, id: "worker" }] };
  const reserved = expect.stringMatching(/"xstate\$\$type", which XState reserves/) as unknown;
  const worker = fromPromise(async ({ input }: { input: unknown }) => input);
  const holder = setup({
    types: { context: {} as { held: unknown; child: unknown }, events: {} as { type: "SET"; data: unknown } },
    actors: { worker, child: createMachine({}) },
  }).createMachine({
    context: ({ spawn }) => ({ held: null, child: spawn("child", { id: "child" }) }),
    initial: "idle",
    states: {
      idle: { on: { SET: { actions: assign({ held: ({ event }) => event.data }) }, WORK: "working" } },
      working: {
        invoke: {
          src: "worker",
          input: { xstate$$type: 1, id: "child" },
          onDone: "idle",
          onError: {
            target: "idle",
            actions: assign({ held: ({ event }) => (event.error as Error).message }),
          },
        },
      },
    },
  });

  test("is refused as an input, in an event and in a change of the state, unless the actor is the machine's own", async () => {
    const { url } = await serve({ graphs: { holder } });
    const ask = async (path: string, body: object) => {
      const response = await post(`${url}/threads/${path}`, body);
      return [response.status, await response.json()] as const;
    };
    const thread = await newThread(url);
    const started = { assistant_id: "holder" };
    expect(await ask(`${thread}/runs/wait`, { ...started, input: reference })).toMatchObject([
      422,
      { errors: [{ at: "input", message: reserved }] },
    ]);
    const [, begun] = await ask(`${thread}/runs/wait`, { ...started, input: {} });
    const child = { xstate$$type: 1, id: "child" };
    expect(begun).toMatchObject({ held: null, child });
    const event = { type: "SET", data: reference };
    for (const [path, body] of [
      ["events", event],
      ["runs", { ...started, command: { resume: event } }],
      ["state", { values: { held: reference } }],
      ["runs", { ...started, command: { update: { held: reference } } }],
    ] as const) {
      // oxlint-disable-next-line no-await-in-loop -- a thread takes one at a time
      const [status, refused] = await ask(`${thread}/${path}`, body);
      expect([path, status]).toEqual([path, 422]);
      expect(JSON.stringify(refused)).toMatch(/which XState reserves/);
    }
    const [changed] = await ask(`${thread}/state`, { values: { held: { ours: child } } });
    expect(changed).toBe(200);
    await ask(`${thread}/runs/wait`, { ...started, input: null });
    expect(await (await get(`${url}/threads/${thread}/state`)).json()).toMatchObject({
      values: { held: { ours: child }, child },
    });
  });

  test("fails the promise actor that returns it", async () => {
    const client = (lines[0] as (typeof lines)[number])[1]((await serve({ graphs: { holder } })).url);
    const { thread_id } = await begin(client, "holder", {});
    const ended = await wait(client, thread_id, "holder", { command: { resume: { type: "WORK" } } });
    expect(ended["held"]).toEqual(reserved);
  });
});

describe("the input of a machine", () => {
  const needy = setup({
    types: { context: {} as { name: string }, input: {} as { name: string } },
  }).createMachine({
    context: ({ input }) => ({ name: input.name.toUpperCase() }),
    initial: "named",
    states: { named: { on: { END: "over" } }, over: { type: "final" } },
  });
  const content = createMachine({
    context: { count: 1 },
    initial: "counting",
    states: { counting: { on: { END: "over" } }, over: { type: "final" } },
  });
  const start = async () => {
    const { url } = await serve({ graphs: { needy, content } });
    return async (graph: string, payload: object) => {
      const thread = await newThread(url);
      const response = await post(`${url}/threads/${thread}/runs/wait`, { assistant_id: graph, ...payload });
      return [response.status, await response.json()] as const;
    };
  };

  test.each([[5], ["tea"], [[]]])(
    "is refused where it is %j, without the names of what is stored",
    async (input) => {
      const message = "input must be an object: it is the input of the machine";
      expect(await (await start())("content", { input })).toEqual([
        422,
        { detail: message, code: "validation.failed", errors: [{ at: "input", message }] },
      ]);
    },
  );

  test.each([[{}], [{ input: null }]])("may be missing where its context needs none: %j", async (payload) => {
    const asked = await start();
    expect(await asked("content", payload)).toMatchObject([200, { __state__: "counting", count: 1 }]);
    const [status, refused] = await asked("needy", payload);
    expect(status).toBe(422);
    expect(refused).toMatchObject({
      code: "validation.failed",
      errors: [
        { at: "input", message: expect.stringContaining("is required: the machine cannot begin without") },
      ],
    });
  });
});

describe("a machine's schemas", () => {
  test("have the context that it begins with, unless that depends on its input", async () => {
    const strict = createMachine({
      context: ({ input }) => ({ name: (input as { name: string }).name.trim() }),
    });
    const { url } = await serve({ graphs: { demo, strict } });
    const client = (lines[0] as (typeof lines)[number])[1](url);
    const schemasOf = async (graphId: string) => {
      const [assistant] = await client.assistants.search({ graphId });
      return client.assistants.getSchemas(assistant?.assistant_id ?? "");
    };
    const own = { __state__: {}, __output__: {}, __snapshot__: {}, __events__: {} };
    const { state_schema, output_schema } = await schemasOf("demo");
    for (const schema of [state_schema, output_schema])
      expect(schema?.properties).toMatchObject({
        amount: { default: 20 },
        receipt: { default: null },
        ...own,
      });
    expect(Object.keys((await schemasOf("strict")).state_schema?.properties ?? {}).toSorted()).toEqual(
      Object.keys(own).toSorted(),
    );
  });

  test("leave its input open, and describe the events that it waits for", async () => {
    const { url } = await serve({ graphs: { order: paying } });
    const client = (lines[0] as (typeof lines)[number])[1](url);
    const [assistant] = await client.assistants.search({ graphId: "order" });
    const schemas = await client.assistants.getSchemas(assistant?.assistant_id ?? "");
    expect(schemas.input_schema).toMatchObject({ type: "object", properties: {} });
    const { thread_id } = await begin(client, "order", { amount: 5 });
    expect(await (await get(`${url}/threads/${thread_id}/interrupts`)).json()).toMatchObject([
      {
        response_schema: {
          type: "object",
          required: ["type"],
          properties: { type: { type: "string", enum: ["APPROVE", "REJECT"] } },
        },
      },
    ]);
  });
});

describe("a machine's drawing", () => {
  test("has its states as nodes and its events on the edges", async () => {
    const { url } = await serve({ graphs: { order: paying } });
    const [assistant] = (await postJson(`${url}/assistants/search`, { graph_id: "order" })) as [
      { assistant_id: string },
    ];
    const drawn = (await (await get(`${url}/assistants/${assistant.assistant_id}/graph`)).json()) as {
      nodes: { id: string }[];
      edges: object[];
    };
    expect(drawn.nodes.map(({ id }) => id)).toEqual([
      "__start__",
      "reviewing",
      "charging",
      "paid",
      "rejected",
      "failed",
      "__end__",
    ]);
    expect(drawn.edges).toContainEqual({
      source: "reviewing",
      target: "rejected",
      conditional: false,
      data: "REJECT",
    });
  });
});
