import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type AnyStateMachine,
  and,
  assign,
  createMachine,
  enqueueActions,
  fromCallback,
  fromPromise,
  initialTransition,
  raise,
  sendParent,
  sendTo,
  setup,
  stateIn,
  transition,
} from "xstate";
import order from "../../src/demo/order.ts";
import { proveClaim } from "../../src/machines/prove-claim.ts";
import type { Machine } from "../../src/machines/xstate-types.ts";

const prove = (machine: AnyStateMachine, claim: string, maxConfigurations?: number) =>
  proveClaim(machine as unknown as Machine, claim, [import.meta.filename], maxConfigurations);
const resultOf = (machine: AnyStateMachine, claim: string) => prove(machine, claim).result;
const final = { type: "final" } as const;

describe("an order", () => {
  test.each([
    ["never paid without APPROVE", "proved"],
    ["never paid without APPROVE or RETRY", "proved"],
    ["never paid without REJECT", "refuted"],
    ["never paid", "refuted"],
    ["never declined without APPROVE", "proved"],
    ["reachable paid", "proved"],
    ["reachable #order.declined", "proved"],
    ["eventually paid", "refuted"],
    ["eventually paid or rejected or expired", "proved"],
    ["eventually reviewing", "proved"],
  ])("%s: %s", (claim, result) => {
    expect(resultOf(order, claim)).toBe(result);
  });

  test("a counterexample is a numbered list of events and states", () => {
    expect(prove(order, "never expired without APPROVE").lines).toEqual([
      "refuted: never expired without APPROVE (6 combinations of active states)",
      "1. the machine begins: reviewing",
      "2. after threeDays: expired",
    ]);
    expect(prove(order, "reachable declined").lines.slice(1)).toEqual([
      "1. the machine begins: reviewing",
      "2. APPROVE: charging",
      "3. charge fails: declined",
    ]);
    expect(prove(order, "eventually paid").lines.slice(1)).toEqual([
      "1. the machine begins: reviewing",
      "2. REJECT: rejected",
      "from here on, it cannot be entered any more",
    ]);
  });

  test("the chart has the example marked", () => {
    const { chart } = prove(order, "never expired without APPROVE");
    const lines = chart.split("\n");
    const edges = lines.filter((line) => line.includes("->"));
    expect(lines[0]).toBe("flowchart LR");
    const [, marked = ""] = /linkStyle ([\d,]+) /.exec(chart) ?? [];
    expect(marked.split(",").map((index) => edges[Number(index)]?.trim())).toEqual([
      "n0 --> n1",
      'n1 -->|"after threeDays"| n6',
    ]);
    expect(chart).toMatch(/ class n1,n6 path$/m);
    expect(prove(order, "never paid without APPROVE").chart).not.toContain("linkStyle");
  });
});

describe("what is wrong with a claim is named", () => {
  const machine = createMachine({
    initial: "card",
    states: {
      card: { initial: "idle", states: { idle: {} } },
      bank: { initial: "idle", states: { idle: {} } },
    },
  });
  test.each([
    [order, "never payed without APPROVE", 'no state "payed"; did you mean "paid"? (it has: reviewing, '],
    [
      order,
      "never paid without APROVE",
      'no event "APROVE"; did you mean "APPROVE"? (it has: APPROVE, REJECT',
    ],
    [order, "never xyz", 'no state "xyz" (it has: reviewing, charging'],
    [order, "always paid", '"always paid" is no claim: a claim is "never STATE without EVENT"'],
    [order, "reachable paid without APPROVE", 'only never takes "without"'],
    [machine, "never idle", 'several states are named "idle": card.idle, bank.idle'],
  ])("%#", (of, claim, message) => {
    expect(() => prove(of, claim)).toThrow(message);
  });
  test("a state is found by its own name, its path and its id", () => {
    for (const name of ["card.idle", "#(machine).card.idle", "card"])
      expect(resultOf(machine, `reachable ${name}`)).toBe("proved");
    expect(resultOf(machine, "reachable bank.idle")).toBe("refuted");
  });
});

describe("guards may hold or not", () => {
  const guarded = setup({ guards: { isBig: () => false } }).createMachine({
    initial: "a",
    context: { amount: 0 },
    states: {
      a: {
        on: {
          GO: [{ guard: "isBig", target: "big" }, { target: "small" }],
          TRY: { guard: ({ context }) => context.amount > 3, target: "tried" },
        },
      },
      big: { on: { END: "done" } },
      small: { on: { END: "done" } },
      tried: {},
      done: final,
    },
  });
  test.each([
    ["reachable done", "proved"],
    ["reachable big", "undecided"],
    ["never big", "undecided"],
    ["never big without GO", "proved"],
    ["never tried", "undecided"],
    ["eventually done", "undecided"],
    ["eventually done or tried", "proved"],
  ])("%s: %s", (claim, result) => {
    expect(resultOf(guarded, claim)).toBe(result);
  });
  test("those of an example are named", () => {
    expect(prove(guarded, "never big").lines.slice(1)).toEqual([
      "1. the machine begins: a",
      "2. GO, if isBig holds: big",
      "it depends on guards",
    ]);
  });
  test("stateIn is no choice, and composite guards are one", () => {
    const machine = createMachine({
      type: "parallel",
      states: {
        door: { initial: "shut", states: { shut: { on: { OPEN: "open" } }, open: {} } },
        light: {
          initial: "off",
          states: {
            off: {
              on: {
                ON: { guard: stateIn({ door: "open" }), target: "on" },
                FLASH: { guard: and([stateIn({ door: "open" }), () => true]), target: "flash" },
              },
            },
            on: {},
            flash: {},
          },
        },
      },
    });
    expect(resultOf(machine, "never light.on without OPEN")).toBe("proved");
    expect(resultOf(machine, "never light.on without ON")).toBe("proved");
    expect(resultOf(machine, "reachable light.on")).toBe("proved");
    expect(resultOf(machine, "never flash without OPEN")).toBe("undecided");
  });
  test("a machine that comes to rest only if its guards say so is undecided", () => {
    const machine = createMachine({
      initial: "a",
      states: {
        a: { always: { guard: () => false, target: "b" } },
        b: { always: { guard: () => false, target: "a" } },
      },
    });
    expect(prove(machine, "never b").lines).toEqual([
      "undecided: never b",
      expect.stringContaining("asks guards more than 100 times"),
    ]);
  });
});

test("a machine that never comes to rest is undecided", () => {
  const machine = createMachine({
    initial: "a",
    states: {
      a: { on: { GO: "b" } },
      b: { entry: raise({ type: "AGAIN" }), on: { AGAIN: { target: "b", reenter: true } } },
    },
  });
  expect(prove(machine, "never b").lines[1]).toMatch(
    /does not come to rest: one event takes more than 1000 transitions$/,
  );
});

test("a state that is left within the same macrostep counts", () => {
  const machine = createMachine({
    initial: "idle",
    states: { idle: { on: { GO: "charged" } }, charged: { always: "receipt" }, receipt: final },
  });
  expect(prove(machine, "never charged").lines.slice(1)).toEqual([
    "1. the machine begins: idle",
    "2. GO: receipt (by way of charged)",
  ]);
});

test("hierarchy, history and states that are done", () => {
  const machine = createMachine({
    initial: "work",
    states: {
      work: {
        initial: "one",
        on: { PAUSE: "paused" },
        onDone: "finished",
        states: {
          one: { on: { NEXT: "two" } },
          two: { on: { NEXT: "end" } },
          end: final,
          last: { type: "history" },
        },
      },
      paused: { on: { RESUME: "work.last", RESTART: "work" } },
      finished: final,
    },
  });
  expect(resultOf(machine, "never finished without NEXT")).toBe("proved");
  expect(resultOf(machine, "never paused without PAUSE")).toBe("proved");
  expect(resultOf(machine, "eventually finished")).toBe("proved");
  // What the history remembers counts: two configurations before it remembers any, three for each of `one` and `two`, and the end.
  expect(prove(machine, "reachable finished").lines[0]).toContain("(9 combinations of active states)");
});

test("wildcards stand for all other events", () => {
  const machine = createMachine({
    initial: "a",
    states: {
      a: { on: { "order.paid": "paid", "order.*": "other", "*": "any" } },
      paid: {},
      other: {},
      any: {},
    },
  });
  expect(resultOf(machine, "never paid without order.paid")).toBe("proved");
  expect(resultOf(machine, "never other without order.paid")).toBe("refuted");
  expect(resultOf(machine, "never other without order.*")).toBe("proved");
  expect(resultOf(machine, "never any without order.*")).toBe("refuted");
  expect(resultOf(machine, "never any without SOMETHING")).toBe("refuted");
});

test("an event that the machine raises for itself is not one that it was sent", () => {
  const machine = (action: ReturnType<typeof raise<never, never, never, never, never>>) =>
    createMachine({
      initial: "a",
      states: {
        a: { on: { TICK: { actions: action as never }, APPROVE: "paid" } },
        paid: final,
      },
    });
  const at = { type: "APPROVE" } as never;
  expect(resultOf(machine(raise(at)), "never paid without APPROVE")).toBe("refuted");
  const later = prove(machine(raise(at, { delay: 10 })), "never paid without APPROVE");
  expect(later.lines).toEqual([
    expect.stringMatching(/^undecided/),
    "1. the machine begins: a",
    "2. APPROVE, sent by the machine itself or by a child: paid",
    "it depends on when the machine sends events to itself",
  ]);
  const toSelf = sendTo((({ self }: { self: unknown }) => self) as never, at) as never;
  expect(resultOf(machine(toSelf), "never paid without APPROVE")).toBe("undecided");
  expect(resultOf(machine(assign({}) as never), "never paid without APPROVE")).toBe("proved");
});

test("an event that a child sends is not one that the machine was sent, however it is sent", () => {
  const approve = { type: "APPROVE" };
  const children = {
    sending: createMachine({ entry: sendParent(approve) }),
    late: createMachine({ initial: "a", states: { a: { after: { 10: { actions: sendParent(approve) } } } } }),
    deep: createMachine({ invoke: { src: createMachine({ entry: sendParent({ type: "OTHER" }) }) } }),
    forwarding: createMachine({ on: { "*": { actions: sendParent(({ event }) => event) } } }),
    named: createMachine({ entry: sendTo("#_parent", approve) }),
  };
  const invoking = (child: AnyStateMachine) =>
    setup({ actors: { child } }).createMachine({
      invoke: { src: "child" },
      initial: "a",
      states: { a: { on: { APPROVE: "x" } }, x: {} },
    });
  const claim = "never x without APPROVE";
  for (const src of ["sending", "late", "forwarding", "named"] as const) {
    const { result, lines } = prove(invoking(children[src]), claim);
    expect.soft([src, result]).toEqual([src, "undecided"]);
    expect.soft(lines[2]).toBe("2. APPROVE, sent by the machine itself or by a child: x");
  }
  expect(resultOf(invoking(children.deep), claim)).toBe("proved");
});

test("a machine, or a state, may have an id with dots", () => {
  const machine = createMachine({
    id: "my.order.v1",
    initial: "a",
    states: {
      a: { on: { GO: "b" } },
      b: {
        id: "the.b",
        initial: "c",
        states: { c: { on: { END: "d" } }, d: { type: "final" } },
        onDone: "e",
      },
      e: { on: { BACK: "b" } },
    },
  });
  expect(prove(machine, "never e without END").lines).toEqual([
    "proved: never e without END (3 combinations of active states)",
  ]);
  expect(resultOf(machine, "reachable #my.order.v1.e")).toBe("proved");
  expect(resultOf(machine, "reachable #the.b")).toBe("proved");
});

test("actors of any kind may succeed or fail, and nothing of the machine's own runs", () => {
  const fail = () => {
    throw new Error("it ran");
  };
  const machine = setup({
    actors: { load: fromPromise(fail), poll: fromCallback(fail) },
    actions: { note: fail },
    guards: { isOk: fail },
  }).createMachine({
    context: fail,
    output: fail,
    initial: "loading",
    entry: "note",
    states: {
      loading: {
        invoke: [
          {
            src: "load",
            input: fail,
            onDone: "loaded",
            onError: { target: "failed", actions: assign(fail) },
          },
          { src: "poll", id: "poller", onDone: { guard: "isOk", target: "polled" } },
        ],
      },
      loaded: {},
      failed: {},
      polled: final,
    },
  });
  expect(prove(machine, "reachable failed").lines.at(-1)).toBe("2. load fails: failed");
  expect(prove(machine, "never polled").lines[2]).toBe("2. poll is done, if isOk holds: polled");
});

describe("what cannot be explored is undecided, with its reason", () => {
  test.each([
    [enqueueActions(() => undefined), "#(machine).a has enqueueActions, and what they raise depends on data"],
    [raise(() => ({ type: "GO" })), "#(machine).a raises an event that a function makes"],
  ])("%#", (action, why) => {
    const machine = createMachine({ initial: "a", states: { a: { entry: action as never } } });
    expect(prove(machine, "reachable a")).toMatchObject({
      result: "undecided",
      lines: [expect.anything(), why],
    });
  });
  test("more combinations of states than the bound", () => {
    const region = (name: string) => ({
      initial: "a",
      states: { a: { on: { [`SET_${name}`]: "b" } }, b: { on: { [`CLEAR_${name}`]: "a" } } },
    });
    const names = Array.from({ length: 8 }, (_, index) => `r${index}`);
    const states = Object.fromEntries(names.map((name) => [name, region(name)]));
    const bits = createMachine({ type: "parallel", states });
    expect(prove(bits, "reachable r0.b", 200).lines[1]).toBe(
      "the machine has more than 200 combinations of active states",
    );
    expect(prove(bits, "never r0.b without SET_r0").lines).toEqual([
      "proved: never r0.b without SET_r0 (256 combinations of active states)",
    ]);
  });
});

/** A step of a generated machine: from a state, by an event, to another; its guard is for even or odd counts. */
const steps = fc.array(
  fc.record({
    from: fc.nat(5),
    event: fc.constantFrom("A", "B", "always", "after"),
    to: fc.nat(5),
    guard: fc.constantFrom(undefined, 0, 1),
    raises: fc.constantFrom(undefined, undefined, "A"),
  }),
  { minLength: 1, maxLength: 12 },
);

interface Walked {
  readonly n: number;
  readonly entered: readonly string[];
}

test("what a machine does is never proved impossible", () => {
  const walk = fc.array(fc.constantFrom("A", "B", "after"), { maxLength: 8 });
  fc.assert(
    fc.property(steps, walk, fc.boolean(), (all, events, isParallel) => {
      const count = assign(({ context }) => ({ n: (context as Walked).n + 1 })) as never;
      const state = (index: number) => {
        const on = (event: string) =>
          all
            // Those without an event only lead on, so that the machine comes to rest.
            .filter(
              (one) => one.from === index && one.event === event && (event !== "always" || one.to > index),
            )
            .map(({ to, guard, raises }) => ({
              target: `s${to}`,
              ...(guard !== undefined && {
                guard: ({ context }: { context: Walked }) => context.n % 2 === guard,
              }),
              actions: [
                count,
                ...(raises === undefined || event === "always" || to <= index
                  ? []
                  : [raise({ type: raises } as never)]),
              ],
            }));
        const note = assign(({ context }) => ({ entered: [...(context as Walked).entered, `s${index}`] }));
        return {
          entry: note,
          on: { A: on("A"), B: on("B") },
          always: on("always"),
          after: { 10: on("after") },
        };
      };
      const region = {
        initial: "s0",
        states: Object.fromEntries(Array.from({ length: 6 }, (_, index) => [`s${index}`, state(index)])),
      };
      const context: Walked = { n: 0, entered: [] };
      const root = isParallel
        ? { type: "parallel", states: { p: region, q: { initial: "x", states: { x: {} } } } }
        : region;
      const machine = createMachine({
        id: "m",
        context,
        on: { A: { actions: count }, B: { actions: count } },
        ...root,
      } as never);
      let [snapshot] = initialTransition(machine);
      for (const event of events) {
        const at = (snapshot.value as { p?: string }).p ?? (snapshot.value as string);
        const type = event === "after" ? `xstate.after.10.m.${isParallel ? "p." : ""}${at}` : event;
        [snapshot] = transition(machine, snapshot, { type });
      }
      const sent = new Set(events);
      for (const name of new Set((snapshot.context as Walked).entered)) {
        expect(resultOf(machine, `never ${name}`)).not.toBe("proved");
        expect(resultOf(machine, `reachable ${name}`)).not.toBe("refuted");
        if (!sent.has("A")) expect(resultOf(machine, `never ${name} without A`)).not.toBe("proved");
        if (!sent.has("B")) expect(resultOf(machine, `never ${name} without B`)).not.toBe("proved");
      }
    }),
    { numRuns: 30 },
  );
});
