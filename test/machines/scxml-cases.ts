import {
  and,
  assign,
  cancel,
  createMachine,
  not,
  raise,
  sendTo,
  stateIn,
  type AnyStateMachine,
} from "xstate";

/** What happens to a machine, and the state that follows: an event, or time that passes (milliseconds). */
type Happening = readonly [event: string | number, value: unknown];

/** A case of the SCXML test suites, by what it checks, as a machine of XState. */
export interface ScxmlCase {
  /** The group of the suite, and what is checked. */
  readonly name: string;
  readonly machine: AnyStateMachine;
  readonly first: unknown;
  readonly steps: readonly Happening[];
  /** What was entered, exited and done, in order. */
  readonly log?: readonly string[];
}

interface Log {
  readonly log: readonly string[];
  readonly n: number;
}

const note = (text: string) => assign(({ context }) => ({ log: [...(context as Log).log, text] })) as never;
const count = (by: number) => assign(({ context }) => ({ n: (context as Log).n + by })) as never;
const has = (n: number) => (({ context }: { readonly context: Log }) => context.n === n) as never;
const context: Log = { log: [], n: 0 };
/** A state that notes its entry and exit. */
const noting = (name: string, more: object = {}) => ({
  entry: note(`+${name}`),
  exit: note(`-${name}`),
  ...more,
});
const machine = (config: object): AnyStateMachine => createMachine({ id: "m", context, ...config } as never);
const toSelf = (event: object) => sendTo((({ self }: { self: unknown }) => self) as never, event as never);
/** A region of a parallel state that goes from `a` to `b`. */
const region = (event: string, more: object = {}) => ({
  initial: "a",
  states: { a: { on: { [event]: "b" } }, b: {} },
  ...more,
});

export const scxmlCases: readonly ScxmlCase[] = [
  {
    name: "basic: an event without a transition changes nothing",
    machine: machine({ initial: "a", states: { a: { on: { t: "b" } }, b: {} } }),
    first: "a",
    steps: [
      ["other", "a"],
      ["t", "b"],
      ["t", "b"],
    ],
  },
  {
    name: "documentOrder: of two enabled transitions the first is taken",
    machine: machine({
      initial: "a",
      states: { a: { on: { t: [{ target: "b" }, { target: "c" }] } }, b: {}, c: {} },
    }),
    first: "a",
    steps: [["t", "b"]],
  },
  {
    name: "hierarchy: the inner state's transition comes before the outer one's",
    machine: machine({
      initial: "outer",
      states: {
        outer: {
          initial: "a",
          on: { t: "c", u: "c" },
          states: { a: { on: { t: "b" } }, b: {} },
        },
        c: {},
      },
    }),
    first: { outer: "a" },
    steps: [
      ["t", { outer: "b" }],
      ["t", "c"],
    ],
  },
  {
    name: "hierarchy+documentOrder: a disabled inner transition leaves the event to the outer state",
    machine: machine({
      initial: "outer",
      states: {
        outer: {
          initial: "a",
          on: { t: [{ guard: has(9), target: "d" }, { target: "c" }] },
          states: { a: { on: { t: { guard: has(9), target: "b" } } }, b: {} },
        },
        c: {},
        d: {},
      },
    }),
    first: { outer: "a" },
    steps: [["t", "c"]],
  },
  {
    name: "entry and exit run outside in and inside out, the transition's action between them",
    machine: machine({
      initial: "a",
      states: {
        a: noting("a", {
          initial: "a1",
          states: { a1: noting("a1", { on: { t: { target: "#m.b.b1", actions: note("t") } } }) },
        }),
        b: noting("b", { initial: "b0", states: { b0: noting("b0"), b1: noting("b1") } }),
      },
    }),
    first: { a: "a1" },
    steps: [["t", { b: "b1" }]],
    log: ["+a", "+a1", "-a1", "-a", "t", "+b", "+b1"],
  },
  {
    name: "default-initial-state and deep-initial: the initial transition leads down, and its action runs",
    machine: machine({
      initial: { target: "a", actions: note("initial") },
      states: {
        a: noting("a", {
          initial: "b",
          states: { b: noting("b", { initial: "c", states: { c: noting("c") } }) },
        }),
      },
    }),
    first: { a: { b: "c" } },
    steps: [],
    log: ["initial", "+a", "+b", "+c"],
  },
  {
    name: "internal-transitions: a transition to a child neither exits nor enters its own state, unless it reenters",
    machine: machine({
      initial: "a",
      states: {
        a: noting("a", {
          initial: "a1",
          on: { inside: ".a2", outside: { target: ".a2", reenter: true } },
          states: { a1: noting("a1"), a2: noting("a2") },
        }),
      },
    }),
    first: { a: "a1" },
    steps: [
      ["inside", { a: "a2" }],
      ["outside", { a: "a2" }],
    ],
    log: ["+a", "+a1", "-a1", "+a2", "-a2", "-a", "+a", "+a2"],
  },
  {
    name: "targetless-transition: only its actions run, and an inner one keeps the event from the outer state",
    machine: machine({
      initial: "a",
      states: {
        a: noting("a", {
          initial: "a1",
          on: { t: "b", u: { actions: note("u") } },
          states: { a1: noting("a1", { on: { t: { actions: note("t") } } }) },
        }),
        b: {},
      },
    }),
    first: { a: "a1" },
    steps: [
      ["t", { a: "a1" }],
      ["u", { a: "a1" }],
    ],
    log: ["+a", "+a1", "t", "u"],
  },
  {
    name: "history: shallow history restores the child, and its own initial state below it",
    machine: machine({
      initial: "out",
      states: {
        out: { on: { back: "in.last" } },
        in: {
          initial: "a",
          on: { leave: "out" },
          states: {
            last: { type: "history", target: "b" },
            a: {},
            b: { initial: "b1", states: { b1: { on: { next: "b2" } }, b2: { on: { next: "#m.in.a" } } } },
          },
        },
      },
    }),
    first: "out",
    steps: [
      ["back", { in: { b: "b1" } }],
      ["next", { in: { b: "b2" } }],
      ["leave", "out"],
      ["back", { in: { b: "b1" } }],
      ["next", { in: { b: "b2" } }],
      ["next", { in: "a" }],
      ["leave", "out"],
      ["back", { in: "a" }],
    ],
  },
  {
    name: "history: deep history restores the innermost states, also those of regions",
    machine: machine({
      initial: "in",
      states: {
        in: {
          initial: "work",
          on: { leave: "out" },
          states: {
            last: { type: "history", history: "deep" },
            work: {
              type: "parallel",
              states: { p: region("t"), q: region("u") },
            },
          },
        },
        out: { on: { back: "in.last" } },
      },
    }),
    first: { in: { work: { p: "a", q: "a" } } },
    steps: [
      ["u", { in: { work: { p: "a", q: "b" } } }],
      ["leave", "out"],
      ["back", { in: { work: { p: "a", q: "b" } } }],
    ],
  },
  {
    name: "parallel: one event moves every region that handles it",
    machine: machine({ type: "parallel", states: { p: region("t"), q: region("t"), r: region("u") } }),
    first: { p: "a", q: "a", r: "a" },
    steps: [
      ["t", { p: "b", q: "b", r: "a" }],
      ["u", { p: "b", q: "b", r: "b" }],
    ],
  },
  {
    name: "parallel+interrupt: a transition out of the parallel state ends all regions; the first region in the document wins",
    machine: machine({
      initial: "both",
      states: {
        both: {
          type: "parallel",
          states: {
            p: { initial: "a", states: { a: noting("pa", { on: { t: "#m.out" } }) } },
            q: { initial: "a", states: { a: noting("qa", { on: { t: "b" } }), b: noting("qb") } },
          },
        },
        out: noting("out"),
      },
    }),
    first: { both: { p: "a", q: "a" } },
    steps: [["t", "out"]],
    log: ["+pa", "+qa", "-qa", "-pa", "+out"],
  },
  {
    name: "more-parallel: a region's transition from within preempts that of the parallel state",
    machine: machine({
      initial: "both",
      states: {
        both: {
          type: "parallel",
          on: { t: "out" },
          states: { p: region("t"), q: region("u") },
        },
        out: {},
      },
    }),
    first: { both: { p: "a", q: "a" } },
    steps: [
      ["t", { both: { p: "b", q: "a" } }],
      ["t", "out"],
    ],
  },
  {
    name: "w3c: a parallel state is done when all its regions are, and a compound state when its final child is entered",
    machine: machine({
      initial: "both",
      states: {
        both: {
          type: "parallel",
          onDone: "ready",
          states: {
            p: {
              initial: "a",
              onDone: { actions: note("p") },
              states: { a: { on: { t: "z" } }, z: { type: "final" } },
            },
            q: {
              initial: "a",
              onDone: { actions: note("q") },
              states: { a: { on: { u: "z" } }, z: { type: "final" } },
            },
          },
        },
        ready: {},
      },
    }),
    first: { both: { p: "a", q: "a" } },
    steps: [
      ["t", { both: { p: "z", q: "a" } }],
      ["u", "ready"],
    ],
    log: ["p", "q"],
  },
  {
    name: "w3c: eventless transitions are taken before the events that were raised, and those before the next event",
    machine: machine({
      initial: "a",
      states: {
        a: { on: { t: { target: "b", actions: [raise({ type: "raised" } as never), note("t")] } } },
        b: { entry: note("b"), always: "c", on: { raised: "wrong" } },
        c: { entry: note("c"), on: { raised: { target: "d", actions: note("raised") }, u: "wrong" } },
        d: { on: { u: "e" } },
        e: {},
        wrong: {},
      },
    }),
    first: "a",
    steps: [
      ["t", "d"],
      ["u", "e"],
    ],
    log: ["t", "b", "c", "raised"],
  },
  {
    name: "actionSend: raised events are taken in order, from exit, transition and entry",
    machine: machine({
      initial: "a",
      states: {
        a: {
          exit: raise({ type: "one" } as never),
          on: { t: { target: "b", actions: raise({ type: "two" } as never) } },
        },
        b: { entry: raise({ type: "three" } as never) },
      },
      on: {
        one: { actions: note("one") },
        two: { actions: note("two") },
        three: { actions: [note("three"), raise({ type: "four" } as never)] },
        four: { actions: note("four") },
      },
    }),
    first: "a",
    steps: [["t", "b"]],
    log: ["one", "two", "three", "four"],
  },
  {
    name: "actionSend: an event that a machine sends to itself comes after the macrostep",
    machine: machine({
      initial: "a",
      states: {
        a: {
          on: { t: { target: "b", actions: [toSelf({ type: "sent" }), raise({ type: "raised" } as never)] } },
        },
        b: { on: { raised: { target: "c", actions: note("raised") }, sent: "wrong" } },
        c: { on: { sent: { target: "d", actions: note("sent") } } },
        d: {},
        wrong: {},
      },
    }),
    first: "a",
    steps: [["t", "d"]],
    log: ["raised", "sent"],
  },
  {
    name: "assign-current-small-step: a guard of the next microstep sees what was assigned",
    machine: machine({
      initial: "a",
      states: {
        a: { on: { t: { target: "b", actions: count(1) } } },
        b: { always: [{ guard: has(1), target: "c", actions: count(2) }, { target: "wrong" }] },
        c: { always: [{ guard: has(3), target: "d" }, { target: "wrong" }] },
        d: {},
        wrong: {},
      },
    }),
    first: "a",
    steps: [["t", "d"]],
  },
  {
    name: "assign-current-small-step: a loop of microsteps counts until its guard ends it",
    machine: machine({
      initial: "a",
      states: {
        a: { on: { t: "b" } },
        b: {
          entry: count(1),
          always: [
            { guard: has(5), target: "c" },
            { target: "b", reenter: true },
          ],
        },
        c: {},
      },
    }),
    first: "a",
    steps: [["t", "c"]],
  },
  {
    name: "cond: guards decide among the transitions of one event",
    machine: machine({
      initial: "a",
      states: {
        a: {
          on: {
            add: { actions: count(1) },
            t: [
              { guard: and([has(1), not(has(2))]), target: "one" },
              { guard: has(2), target: "two" },
            ],
          },
        },
        one: {},
        two: {},
      },
    }),
    first: "a",
    steps: [
      ["t", "a"],
      ["add", "a"],
      ["add", "a"],
      ["t", "two"],
    ],
  },
  {
    name: "in: a guard asks for the state of another region",
    machine: machine({
      type: "parallel",
      states: {
        p: region("t"),
        q: {
          initial: "a",
          states: { a: { on: { u: { guard: stateIn({ p: "b" }), target: "b" } } }, b: {} },
        },
      },
    }),
    first: { p: "a", q: "a" },
    steps: [
      ["u", { p: "a", q: "a" }],
      ["t", { p: "b", q: "a" }],
      ["u", { p: "b", q: "b" }],
    ],
  },
  {
    name: "scxml-prefix-event-name-matching: a descriptor matches whole tokens, and the exact one comes first",
    machine: machine({
      initial: "a",
      states: {
        a: { on: { "foo.*": "prefix", "foo.bar": "exact", "*": "any" } },
        prefix: { on: { again: "a" } },
        exact: { on: { again: "a" } },
        any: { on: { again: "a" } },
      },
    }),
    first: "a",
    steps: [
      ["foo.bar", "exact"],
      ["again", "a"],
      ["foo.zoo", "prefix"],
      ["again", "a"],
      ["foot", "any"],
    ],
  },
  {
    name: "delayedSend: an event comes after its delay, and not before",
    machine: machine({
      initial: "a",
      states: {
        a: { on: { t: { target: "b", actions: raise({ type: "s" } as never, { delay: 10 }) } } },
        b: { on: { s: "c" } },
        c: {},
      },
    }),
    first: "a",
    steps: [
      ["t", "b"],
      [9, "b"],
      [1, "c"],
    ],
  },
  {
    name: "delayedSend: events come in the order of their times, not of their sending",
    machine: machine({
      initial: "a",
      states: { a: {} },
      entry: [
        raise({ type: "late" } as never, { delay: 20 }),
        raise({ type: "soon" } as never, { delay: 5 }),
      ],
      on: { late: { actions: note("late") }, soon: { actions: note("soon") } },
    }),
    first: "a",
    steps: [[30, "a"]],
    log: ["soon", "late"],
  },
  {
    name: "w3c: a delayed event that is cancelled does not come",
    machine: machine({
      initial: "a",
      entry: raise({ type: "s" } as never, { delay: 10, id: "timer" }),
      states: { a: { on: { s: "wrong", stop: { actions: cancel("timer") } } }, wrong: {} },
    }),
    first: "a",
    steps: [
      ["stop", "a"],
      [20, "a"],
    ],
  },
  {
    name: "delayed transitions end with their state, and begin anew when it is entered again",
    machine: machine({
      initial: "a",
      states: {
        a: { after: { 10: "wrong" }, on: { t: "b" } },
        b: { after: { 10: "c" }, on: { again: { target: "b", reenter: true } } },
        c: {},
        wrong: {},
      },
    }),
    first: "a",
    steps: [
      [5, "a"],
      ["t", "b"],
      [6, "b"],
      ["again", "b"],
      [9, "b"],
      [1, "c"],
    ],
  },
  {
    name: "w3c: the machine is done when its final state is entered, and takes no event after that",
    machine: machine({
      initial: "a",
      output: ({ context: { n } }: { readonly context: Log }) => ({ n }),
      states: {
        a: { on: { t: { target: "z", actions: count(7) } } },
        z: { type: "final", entry: note("z") },
      },
      on: { t: { actions: note("wrong") } },
    }),
    first: "a",
    steps: [
      ["t", "z"],
      ["t", "z"],
    ],
    log: ["z"],
  },
];
