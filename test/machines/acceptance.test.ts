import { describe, expect, test } from "vitest";
import { assign, createMachine, fromPromise, log, raise, sendParent, sendTo, setup } from "xstate";
import { lines } from "../e2e/support/clients.ts";
import { directory, serve } from "../e2e/support/server.ts";
import { ShiftedTime } from "../e2e/support/shifted-time.ts";

/**
 * The scenarios with which other durable hosts of XState are tested (payment with approval, lending, auctions, vitals, orders, timers, subflows,
 * versions), each as a machine of its own. The server is restarted between any two steps.
 */
type Graphs = NonNullable<NonNullable<Parameters<typeof serve>[0]>["graphs"]>;
type Values = Readonly<Record<string, unknown>>;

const connect = (lines[0] as (typeof lines)[number])[1];

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const DAY = 24 * 60 * MINUTE;

/** An event, or the milliseconds that pass; and the values that the thread has then. */
type Step = readonly [event: { readonly type: string } | string | number, values: object];

interface Scenario {
  readonly machine: unknown;
  readonly input?: Record<string, unknown>;
  readonly begins: object;
  readonly steps: readonly Step[];
}

async function play({ machine, input = {}, begins, steps }: Scenario): Promise<Values> {
  const data = await directory();
  let shift = 0;
  let thread = "";
  const visit = async (
    act: (client: ReturnType<typeof connect>, time: ShiftedTime) => Promise<unknown>,
    then: object,
  ) => {
    const time = new ShiftedTime(shift);
    const app = await serve({ graphs: { machine } as Graphs, data, ...time });
    const client = connect(app.url);
    await act(client, time);
    const values = async () => (await client.threads.get(thread)).values as Values;
    await expect.poll(values).toMatchObject(then);
    const last = await values();
    await app.close();
    return last;
  };
  let last = await visit(async (client) => {
    thread = (await client.threads.create()).thread_id;
    await client.runs.wait(thread, "machine", { input });
  }, begins);
  for (const [step, then] of steps) {
    const act = async (client: ReturnType<typeof connect>, time: ShiftedTime) => {
      if (typeof step !== "number") {
        const resume = typeof step === "string" ? { type: step } : step;
        await client.runs.wait(thread, "machine", { command: { resume } });
      } else {
        shift += step;
        time.advance(step);
      }
    };
    // oxlint-disable-next-line no-await-in-loop -- each step begins where the last has ended
    last = await visit(act, then);
  }
  return last;
}

/** A payment that debits one account and credits the other, and refunds the first if that fails. */
const payment = (fails: readonly string[]) =>
  setup({
    types: {
      context: {} as { amount: number; booked: readonly string[] },
      input: {} as { amount: number },
    },
    actors: {
      book: fromPromise<string, string>(async ({ input }) => {
        if (fails.includes(input)) throw new Error(`no ${input}`);
        return input;
      }),
    },
    actions: { mail: log("mail") },
  }).createMachine({
    id: "payment",
    context: ({ input }) => ({ amount: input.amount, booked: [] }),
    initial: "asking",
    states: {
      asking: {
        always: { guard: ({ context }) => context.amount < 100, target: "debiting" },
        on: { APPROVE: "debiting", REJECT: "cancelled" },
        after: { [10 * SECOND]: "asking by hand" },
      },
      "asking by hand": { entry: "mail", on: { APPROVE: "debiting", REJECT: "cancelled" } },
      debiting: {
        invoke: {
          src: "book",
          input: "debit",
          onDone: {
            target: "crediting",
            actions: assign({ booked: ({ context, event }) => [...context.booked, event.output] }),
          },
          onError: "cancelled",
        },
      },
      crediting: {
        invoke: {
          src: "book",
          input: "credit",
          onDone: {
            target: "succeeded",
            actions: assign({ booked: ({ context, event }) => [...context.booked, event.output] }),
          },
          onError: "refunding",
        },
      },
      refunding: {
        invoke: {
          src: "book",
          input: "refund",
          onDone: {
            target: "cancelled",
            actions: assign({ booked: ({ context, event }) => [...context.booked, event.output] }),
          },
        },
      },
      succeeded: { type: "final" },
      cancelled: { type: "final" },
    },
  });

/** A stopwatch that ticks by a timer that each tick sets anew. */
const stopwatch = setup({ types: { context: {} as { elapsed: number } } }).createMachine({
  id: "stopwatch",
  context: { elapsed: 0 },
  initial: "stopped",
  states: {
    stopped: { on: { START: "running" } },
    running: {
      after: {
        [MINUTE]: {
          target: "running",
          reenter: true,
          actions: assign({ elapsed: ({ context }) => context.elapsed + 1 }),
        },
      },
      on: { STOP: "stopped" },
    },
  },
});

/** Bids are taken, beside the clock that ends the auction. */
const auction = setup({
  types: {
    context: {} as { bids: readonly number[] },
    events: {} as { type: "BID"; amount: number } | { type: "CLOSE" },
  },
}).createMachine({
  id: "auction",
  context: { bids: [] },
  type: "parallel",
  states: {
    bidding: {
      initial: "open",
      states: {
        open: {
          on: {
            BID: {
              guard: ({ context, event }) => event.amount > (context.bids.at(-1) ?? 0),
              actions: assign({ bids: ({ context, event }) => [...context.bids, event.amount] }),
            },
            CLOSE: "closed",
          },
        },
        closed: { type: "final" },
      },
    },
    clock: {
      initial: "runs",
      states: {
        runs: { after: { [DAY]: { target: "over", actions: raise({ type: "CLOSE" }) } } },
        over: { type: "final" },
      },
    },
  },
  output: ({ context }) => context.bids.at(-1) ?? null,
});

/** A book is lent for two weeks, then asked for again each week until it is back. */
const lending = setup({ types: { context: {} as { asked: number } } }).createMachine({
  id: "lending",
  context: { asked: 0 },
  initial: "asked for",
  states: {
    "asked for": { on: { LEND: "lent", DECLINE: "declined" } },
    lent: { after: { [14 * DAY]: "overdue" }, on: { RETURN: "returned" } },
    overdue: {
      entry: assign({ asked: ({ context }) => context.asked + 1 }),
      after: { [7 * DAY]: { target: "overdue", reenter: true } },
      on: { RETURN: "returned" },
    },
    returned: { type: "final" },
    declined: { type: "final" },
  },
});

/** Vitals are checked by a child each minute while the car is on. */
const vitals = setup({
  actors: { check: fromPromise<string>(async () => "fine") },
}).createMachine({
  id: "vitals",
  initial: "checking",
  states: {
    checking: {
      invoke: { src: "check", onDone: { target: "waiting", actions: sendParent({ type: "FINE" }) } },
    },
    waiting: { after: { [MINUTE]: "checking" } },
  },
});
const car = setup({ types: { context: {} as { fine: number } }, actors: { vitals } }).createMachine({
  id: "car",
  context: { fine: 0 },
  initial: "off",
  states: {
    off: { on: { ON: "on", SCRAP: "gone" } },
    on: {
      invoke: { src: "vitals" },
      on: { FINE: { actions: assign({ fine: ({ context }) => context.fine + 1 }) }, OFF: "off" },
    },
    gone: { type: "final" },
  },
});

/** The reason why an order is refused chooses where it goes. */
const provision = setup({
  types: { context: {} as { order: Values; why: string }, input: {} as { order: Values } },
  actors: {
    provision: fromPromise<string, Values>(async ({ input }) => {
      for (const key of ["id", "item", "quantity"])
        if (input[key] === undefined) throw new Error(`missing ${key}`);
      return "provisioned";
    }),
  },
  actions: { note: assign({ why: ({ event }) => (event as unknown as { error: Error }).error.message }) },
}).createMachine({
  id: "provision",
  context: ({ input }) => ({ order: input.order, why: "" }),
  initial: "provisioning",
  states: {
    provisioning: {
      invoke: {
        src: "provision",
        input: ({ context }) => context.order,
        onDone: "done",
        onError: [
          {
            guard: ({ event }) => (event.error as Error).message === "missing id",
            target: "no id",
            actions: "note",
          },
          { target: "refused", actions: "note" },
        ],
      },
    },
    done: { type: "final" },
    "no id": {
      on: {
        ID: {
          target: "provisioning",
          actions: assign({ order: ({ context }) => ({ ...context.order, id: 1 }) }),
        },
      },
    },
    refused: { type: "final" },
  },
});

/** A flow that starts another, does not wait for it, and is told by it later. */
const onboarding = setup({ types: { input: {} as { name: string } } }).createMachine({
  id: "onboarding",
  initial: "mailing",
  states: {
    mailing: { after: { [DAY]: "mailed" } },
    mailed: { entry: sendParent({ type: "ONBOARDED" }), type: "final" },
  },
});
const customer = setup({
  types: { context: {} as { told: boolean } },
  actors: { onboarding },
}).createMachine({
  id: "customer",
  context: { told: false },
  initial: "new",
  states: {
    new: { on: { SIGN: "served" } },
    served: {
      invoke: { src: "onboarding", id: "flow", input: { name: "Ada" } },
      on: { ONBOARDED: { actions: assign({ told: true }) }, LEAVE: "gone" },
    },
    gone: { type: "final" },
  },
});

/** A credit check that asks another actor, which answers when it is told to. */
const checker = createMachine({
  id: "checker",
  initial: "idle",
  states: { idle: { on: { DECIDE: { actions: sendParent({ type: "DECIDED", score: 700 } as never) } } } },
});
const credit = setup({
  types: { context: {} as { score: number | null } },
  actors: { checker },
}).createMachine({
  id: "credit",
  context: { score: null },
  initial: "checking",
  states: {
    checking: {
      invoke: { src: "checker", id: "checker" },
      on: {
        DECIDE: { actions: sendTo("checker", { type: "DECIDE" }) },
        DECIDED: {
          target: "decided",
          actions: assign({ score: ({ event }) => (event as unknown as { score: number }).score }),
        },
      },
      after: { [30 * DAY]: "given up" },
    },
    decided: {
      tags: ["over"],
      always: [
        { guard: ({ context }) => (context.score ?? 0) >= 600, target: "approved" },
        { target: "refused" },
      ],
    },
    approved: { type: "final" },
    refused: { type: "final" },
    "given up": { type: "final" },
  },
});

const scenarios: Readonly<Record<string, Scenario>> = {
  "a small payment needs no approval": {
    machine: payment([]),
    input: { amount: 5 },
    begins: { __state__: "succeeded", booked: ["debit", "credit"] },
    steps: [],
  },
  "a payment is approved": {
    machine: payment([]),
    input: { amount: 500 },
    begins: { __state__: "asking" },
    steps: [["APPROVE", { __state__: "succeeded", booked: ["debit", "credit"] }]],
  },
  "a payment that nobody approves is asked for by hand, and rejected": {
    machine: payment([]),
    input: { amount: 500 },
    begins: { __state__: "asking" },
    steps: [
      [9 * SECOND, { __state__: "asking" }],
      [25 * SECOND, { __state__: "asking by hand" }],
      ["REJECT", { __state__: "cancelled", booked: [] }],
    ],
  },
  "a payment that cannot be credited is refunded": {
    machine: payment(["credit"]),
    input: { amount: 500 },
    begins: { __state__: "asking" },
    steps: [["APPROVE", { __state__: "cancelled", booked: ["debit", "refund"] }]],
  },
  "a stopwatch ticks through restarts": {
    machine: stopwatch,
    begins: { __state__: "stopped" },
    steps: [
      ["START", { elapsed: 0 }],
      [MINUTE, { elapsed: 1 }],
      [MINUTE, { elapsed: 2 }],
      ["STOP", { __state__: "stopped" }],
      [5 * MINUTE, { elapsed: 2 }],
    ],
  },
  "an auction takes bids until its day is over": {
    machine: auction,
    begins: { bids: [] },
    steps: [
      [{ type: "BID", amount: 10 } as never, { bids: [10] }],
      [{ type: "BID", amount: 20 } as never, { bids: [10, 20] }],
      [DAY, { __output__: 20 }],
    ],
  },
  "a book that is not returned is asked for each week": {
    machine: lending,
    begins: { __state__: "asked for" },
    steps: [
      ["LEND", { __state__: "lent" }],
      [14 * DAY, { __state__: "overdue", asked: 1 }],
      [7 * DAY, { asked: 2 }],
      ["RETURN", { __state__: "returned" }],
    ],
  },
  "a car's vitals are checked by a child while it is on": {
    machine: car,
    begins: { __state__: "off" },
    steps: [
      ["ON", { __state__: "on", fine: 1 }],
      [MINUTE, { fine: 2 }],
      [MINUTE, { fine: 3 }],
      ["OFF", { __state__: "off" }],
      [5 * MINUTE, { fine: 3 }],
      ["SCRAP", { __state__: "gone" }],
    ],
  },
  "an order without an id is mended": {
    machine: provision,
    input: { order: { item: "tea", quantity: 2 } },
    begins: { __state__: "no id", why: "missing id" },
    steps: [["ID", { __state__: "done" }]],
  },
  "an order without an item is refused": {
    machine: provision,
    input: { order: { id: 1, quantity: 2 } },
    begins: { __state__: "refused", why: "missing item" },
    steps: [],
  },
  "a subflow goes on beside its parent, and tells it when it is over": {
    machine: customer,
    begins: { __state__: "new" },
    steps: [
      ["SIGN", { __state__: "served", told: false }],
      [DAY, { told: true }],
      ["LEAVE", { __state__: "gone" }],
    ],
  },
  "a credit check waits for the answer of another actor": {
    machine: credit,
    begins: { __state__: "checking" },
    steps: [["DECIDE", { __state__: "approved", score: 700 }]],
  },
  "a credit check that nobody answers is given up": {
    machine: credit,
    begins: { __state__: "checking" },
    steps: [[30 * DAY, { __state__: "given up" }]],
  },
};

describe("a scenario, with a restart between any two of its steps", () => {
  test.each(Object.entries(scenarios))("%s", async (_, scenario) => {
    const { begins, steps } = scenario;
    expect(await play(scenario)).toMatchObject(steps.at(-1)?.[1] ?? begins);
  });
});

describe("waiting for a machine", () => {
  test("a client waits for a state by the values of its run, and for the end by joining the run", async () => {
    const app = await serve({ graphs: { machine: payment([]) } as unknown as Graphs });
    const client = connect(app.url);
    const { thread_id } = await client.threads.create();
    await client.runs.wait(thread_id, "machine", { input: { amount: 500 } });
    const answer = await fetch(`${app.url}/threads/${thread_id}/events`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ type: "APPROVE" }),
    });
    const { run_id } = (await answer.json()) as { run_id: string };
    const states: unknown[] = [];
    for await (const { event, data } of client.runs.joinStream(thread_id, run_id, {
      streamMode: "values",
    } as never))
      if (event === "values") states.push((data as Values)["__state__"]);
    expect([...new Set(states)]).toEqual(["asking", "debiting", "crediting", "succeeded"]);
    expect(await client.runs.join(thread_id, run_id)).toMatchObject({ __state__: "succeeded" });
  });
});
