import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  assign,
  createMachine,
  fromPromise,
  log,
  type PromiseActorLogic,
  raise,
  sendTo,
  setup,
} from "xstate";
import { heldCalls } from "./support/latches.ts";
import { directory, serve } from "./support/server.ts";
import { post } from "./support/wire.ts";
import { serveMachine } from "./support/served-machine.ts";

type Graphs = NonNullable<NonNullable<Parameters<typeof serve>[0]>["graphs"]>;
type Values = Readonly<Record<string, unknown>>;

/** Errors that no part of the server has caught: they would end its process. */
const uncaught: unknown[] = [];
const note = (error: unknown) => void uncaught.push(error);
beforeEach(() => void process.on("uncaughtException", note));
afterEach(() => {
  process.off("uncaughtException", note);
  const [first] = uncaught.splice(0);
  if (first !== undefined) throw first;
});

const noted = assign({
  seen: ({ context, event }: { context: { seen: string[] }; event: { type: string } }) => [
    ...context.seen,
    event.type,
  ],
});

const turns = async (count: number) => {
  for (let i = 0; i < count; i++) await new Promise((next) => setImmediate(next));
};

/** Promise actors side by side, each in a region of its own. */
const sideBySide = (actors: Record<string, PromiseActorLogic<string>>) =>
  setup({ actors }).createMachine({
    type: "parallel",
    states: Object.fromEntries(
      Object.keys(actors).map((src) => [
        src,
        {
          initial: "working",
          states: { working: { invoke: { src, input: src, onDone: "done" } }, done: { type: "final" } },
        },
      ]),
    ) as never,
  });

describe("what a promise actor emits", () => {
  test("is streamed also after another actor has ended, and while none waits for it", async () => {
    const { work, calls } = heldCalls<string>();
    const machine = sideBySide({
      first: fromPromise(work),
      second: fromPromise(async (given) => {
        given.emit({ type: "early" });
        await work(given);
        given.emit({ type: "late" });
        return "second";
      }),
    });
    const { client, thread } = await serveMachine(machine);
    const seen: unknown[] = [];
    const release = async () => {
      const [first, second] = await calls(2);
      first?.open("first");
      await turns(20);
      second?.open("go on");
    };
    void release();
    const stream = client.runs.stream(thread, "machine", { input: {}, streamMode: ["custom"] });
    for await (const { event, data } of stream) if (event === "custom") seen.push(data);
    expect(seen).toEqual([{ type: "early" }, { type: "late" }]);
  });

  test("fails the actor where it is no JSON, and the process goes on", async () => {
    const machine = setup({
      actors: {
        emitting: fromPromise(async ({ emit }) => {
          emit({ type: "big", n: 1n } as never);
          await turns(3);
        }),
      },
    }).createMachine({
      context: { why: "" },
      initial: "working",
      states: {
        working: {
          invoke: {
            src: "emitting",
            onDone: "done",
            onError: {
              target: "failed",
              actions: assign({ why: ({ event }) => (event.error as Error).message }),
            },
          },
        },
        done: { type: "final" },
        failed: { type: "final" },
      },
    });
    const { wait } = await serveMachine(machine);
    expect(await wait({ input: {} })).toMatchObject({
      __state__: "failed",
      why: "emit.n cannot be stored: it is a bigint",
    });
  });
});

describe("a promise actor that never settles is stopped", () => {
  test("when the run fails because of another", async () => {
    const { work, calls } = heldCalls<string>();
    const { wait } = await serveMachine(sideBySide({ first: fromPromise(work), second: fromPromise(work) }));
    const run = wait({ input: {} });
    const [first, second] = await calls(2);
    first?.fail(new Error("nobody handles this"));
    await expect(run).rejects.toThrow("nobody handles this");
    expect(second?.signal.aborted).toBe(true);
  });

  test("when the run is cancelled while no task waits for the actor", async () => {
    const { work, calls } = heldCalls<string>();
    const { work: act, calls: acts } = heldCalls<void>();
    const machine = setup({
      actors: { work: fromPromise(work) },
      actions: { act: act as never },
    }).createMachine({
      on: { ACT: { actions: "act" } },
      initial: "working",
      states: { working: { invoke: { src: "work" } } },
    });
    const { client, thread, path } = await serveMachine(machine);
    const { run_id } = await client.runs.create(thread, "machine", { input: {} });
    const [actor] = await calls(1);
    await post(`${path}/events`, { type: "ACT" });
    await acts(1);
    await client.runs.cancel(thread, run_id, true);
    expect(actor?.signal.aborted).toBe(true);
  });
});

test("a run that is cancelled while an actor works leaves its task to be done: the thread goes on from there", async () => {
  const { work, calls } = heldCalls<string>();
  const machine = setup({ actors: { work: fromPromise(work) } }).createMachine({
    context: { kept: "yes" },
    initial: "working",
    states: { working: { invoke: { src: "work", onDone: "done" } }, done: { type: "final" } },
  });
  const { client, thread } = await serveMachine(machine);
  const { run_id } = await client.runs.create(thread, "machine", { input: {} });
  await calls(1);
  await client.runs.cancel(thread, run_id, true);
  const { next, tasks } = await client.threads.getState(thread);
  expect([next, tasks.map(({ name }) => name)]).toEqual([["work"], ["work"]]);
  const { run_id: second } = await client.runs.create(thread, "machine", { input: null });
  const [, again] = await calls(2);
  again?.open("file");
  expect(await client.runs.join(thread, second)).toMatchObject({ __state__: "done", kept: "yes" });
});

describe("a machine that never comes to rest fails its run", () => {
  const circle = createMachine({
    initial: "a",
    states: { a: { always: "b" }, b: { always: "a" } },
  });
  const raising = createMachine({
    entry: raise({ type: "MORE" }),
    on: { MORE: { actions: raise({ type: "MORE" }) } },
  });

  test.each([
    ["always", circle],
    ["raise", raising],
  ])("because of %s", async (_, machine) => {
    const { wait, path } = await serveMachine(machine);
    await expect(wait({ input: {} })).rejects.toThrow("does not come to rest: it made 10000 transitions");
    expect((await fetch(path)).status).toBe(200);
  });

  test("and a child gives its parent that error", async () => {
    const machine = setup({ actors: { circle } }).createMachine({
      initial: "on",
      states: { on: { invoke: { src: "circle", onError: "failed" } }, failed: { type: "final" } },
    });
    await expect((await serveMachine(machine)).wait({ input: {} })).rejects.toThrow("does not come to rest");
  });

  test("one that makes thousands of transitions, and then rests, is none", async () => {
    const counting = createMachine({
      context: { n: 0 },
      initial: "counting",
      states: {
        counting: {
          always: [
            { guard: ({ context }) => context.n === 5_000, target: "done" },
            { actions: assign({ n: ({ context }) => context.n + 1 }) },
          ],
        },
        done: { type: "final" },
      },
    });
    expect(await (await serveMachine(counting)).wait({ input: {} })).toMatchObject({ n: 5_000 });
  });
});

test("an event whose guard throws is stored while an actor works, and its own run fails", async () => {
  const { work, calls } = heldCalls<string>();
  const guard = () => {
    throw new Error("guard!");
  };
  const machine = setup({ actors: { work: fromPromise(work) } }).createMachine({
    initial: "working",
    on: { GO: { guard, actions: raise({ type: "OK" }) } },
    states: {
      working: { invoke: { src: "work", onDone: "waiting" } },
      waiting: { on: { OK: "done" } },
      done: { type: "final" },
    },
  });
  const { client, thread, wait, path } = await serveMachine(machine);
  const run = wait({ input: {} });
  const [actor] = await calls(1);
  const sent = await post(`${path}/events`, { type: "GO" });
  expect(sent.status).toBe(202);
  const { run_id } = (await sent.json()) as { run_id: string };
  actor?.open("worked");
  await run;
  await client.runs.join(thread, run_id).catch(() => undefined);
  expect(await client.runs.get(thread, run_id)).toMatchObject({ status: "error" });
  expect(await wait({ command: { resume: { type: "OK" } } })).toMatchObject({ __state__: "done" });
});

test.each([Number.MAX_VALUE, 8.64e15, 2 ** 31, -5, Number.NaN, Number.POSITIVE_INFINITY, 0, 0.5])(
  "a delay of %d milliseconds is due at a time that exists",
  async (delay) => {
    const machine = createMachine({
      initial: "on",
      states: {
        on: { entry: raise({ type: "GO" }, { delay }), on: { GO: "off" } },
        off: { type: "final" },
      },
    });
    const { timers } = (await (await serveMachine(machine)).wait({ input: {} }))["__snapshot__"] as {
      timers: readonly [{ readonly due: number }];
    };
    const { due } = timers[0];
    expect(Number.isNaN(new Date(due).getTime())).toBe(false);
    expect(due > Date.now() + 2 ** 31 - 60_000).toBe(delay >= 2 ** 31 && delay < Number.POSITIVE_INFINITY);
  },
);

test.each([Number.POSITIVE_INFINITY, Number.NaN, "endless"])(
  "an after of %s is refused where the file is loaded, with its place",
  async (delay) => {
    const machine = createMachine(
      { id: "m", initial: "a", states: { a: { after: { [delay]: "b" } }, b: {} } },
      { delays: { endless: Number.POSITIVE_INFINITY } },
    );
    await expect(serve({ graphs: { machine } as Graphs })).rejects.toThrow(
      `#m.a.after has the delay ${delay}, which is no number of milliseconds`,
    );
  },
);

describe("a context", () => {
  test.each([
    ["a list", [1]],
    ["a text", "abc"],
    ["a number", 5],
  ])("that is %s is refused, not changed", async (_, context) => {
    const { wait } = await serveMachine(createMachine({ context: context as never }));
    await expect(wait({ input: {} })).rejects.toThrow('context of the machine "(machine)" must be an object');
  });

  test.each(["__state__", "__snapshot__", "__output__", "__events__", "__version__"])(
    "with the key %s is refused: it would be lost",
    async (key) => {
      const { wait } = await serveMachine(createMachine({ context: { [key]: 1 } }));
      await expect(wait({ input: {} })).rejects.toThrow(`a key ${key}, which Heddle keeps for itself`);
    },
  );

  test.each([
    ["a Map", { at: new Map() }],
    ["NaN", { at: Number.NaN }],
    ["a function", { at: () => 1 }],
  ])("that holds %s fails the run, which names the place", async (_, context) => {
    const { wait } = await serveMachine(createMachine({ context: context as object }));
    await expect(wait({ input: {} })).rejects.toThrow("context.at cannot be stored");
  });

  test("with keys of Object.prototype, and events of such types, are kept", async () => {
    const machine = createMachine({
      context: { constructor: 1, toString: 2, seen: [] } as never,
      on: { "*": { actions: noted as never } },
    });
    const { client, thread, wait, path } = await serveMachine(machine);
    await wait({ input: {} });
    for (const type of ["__proto__", "constructor", "hasOwnProperty"]) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const { run_id } = (await (await post(`${path}/events`, { type })).json()) as { run_id: string };
      // oxlint-disable-next-line no-await-in-loop -- as above
      await client.runs.join(thread, run_id);
    }
    const { values } = (await client.threads.getState(thread)) as { values: Values };
    expect(values).toMatchObject({ seen: ["__proto__", "constructor", "hasOwnProperty"] });
    expect([values["constructor"], values["toString"]]).toEqual([1, 2]);
  });
});

test("an event type of more than 256 characters is refused", async () => {
  const { wait, path } = await serveMachine(createMachine({ on: { "*": { actions: () => undefined } } }));
  await wait({ input: {} });
  expect((await post(`${path}/events`, { type: "x".repeat(256) })).status).toBe(202);
  const refused = await post(`${path}/events`, { type: "x".repeat(257) });
  expect(refused.status).toBe(422);
  expect(await refused.text()).toContain("has 257 characters, more than 256");
});

test.each([1n, circular(), Symbol("s"), undefined])("logging %s does not fail the run", async (logged) => {
  const { wait } = await serveMachine(createMachine({ entry: log(() => logged), on: { GO: {} } }));
  expect(await wait({ input: {} })).toHaveProperty("__state__");
});

function circular() {
  const one: { self?: unknown } = {};
  one.self = one;
  return one;
}

test.each(["start", "user:load", "a|b", "__start__", "xstate.wait", "constructor", "", "tab\there"])(
  "a promise actor may be named %j",
  async (src) => {
    const machine = setup({ actors: { [src]: fromPromise(async () => 1) } }).createMachine({
      initial: "on",
      states: { on: { invoke: { src, id: "#x.y", onDone: "off" } }, off: { on: { GO: "on" } } },
    } as never);
    const { wait } = await serveMachine(machine);
    expect(await wait({ input: {} })).toMatchObject({ __state__: "off" });
    expect(await wait({ command: { resume: { type: "GO" } } })).toMatchObject({ __state__: "off" });
  },
);

test.each(["constructor", "a.b#c", "#(machine).on", "a|b:c"])("a child may have the id %j", async (id) => {
  const child = createMachine({ initial: "a", states: { a: { on: { GO: "b" } }, b: { type: "final" } } });
  const machine = setup({ actors: { child } }).createMachine({
    initial: "on",
    states: {
      on: {
        invoke: { src: "child", id, onDone: "off" },
        on: { GO: { actions: sendTo(id, { type: "GO" }) } },
      },
      off: { type: "final" },
    },
  });
  const { client, thread, wait } = await serveMachine(machine);
  await wait({ input: {} });
  const { tasks } = await client.threads.getState(thread, undefined, { subgraphs: true });
  expect(tasks.find(({ name }) => name === "child")?.state?.values).toMatchObject({ __state__: "a" });
  expect(await wait({ command: { resume: { type: "GO" } } })).toMatchObject({ __state__: "off" });
});

test("a migration may return a value and a context alone; events are taken after it", async () => {
  const data = await directory();
  const old = createMachine({ version: "1", on: { GO: ".on" }, initial: "on", states: { on: {} } });
  const first = await serveMachine(old, data);
  await first.wait({ input: {} });
  await first.app.close();
  const made = createMachine({
    version: "2",
    context: { n: 0 },
    initial: "a",
    states: { a: { on: { GO: "b" } }, b: { on: { GO: "a" } } },
  });
  const migrate = () => ({ value: "a", context: { n: 2 } });
  const { wait } = await serveMachine({ versions: [made], migrate }, data);
  await wait({ input: null }, first.thread);
  expect(await wait({ command: { resume: { type: "GO" } } }, first.thread)).toMatchObject({
    __state__: "b",
    n: 2,
  });
});

test("a state update that breaks the list of children is refused", async () => {
  const child = createMachine({});
  const machine = setup({ actors: { child } }).createMachine({ invoke: { src: "child" }, on: { GO: {} } });
  const { client, thread, wait } = await serveMachine(machine);
  const snapshot = (await wait({ input: {} }))["__snapshot__"] as object;
  for (const children of [5, [5], [{ start: 1 }]]) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    await expect(
      client.threads.updateState(thread, { values: { __snapshot__: { ...snapshot, children } } }),
    ).rejects.toThrow(/HTTP 422/);
  }
});

test("a state update that breaks a stored actor, timer or macrostep is refused in words", async () => {
  const { client, thread, wait } = await serveMachine(createMachine({ on: { GO: {} } }));
  const snapshot = (await wait({ input: {} }))["__snapshot__"] as object;
  const timer = { id: "1:later", at: 1, name: null, from: [], to: [], event: { type: "LATER" } };
  const message = { to: [], event: { type: "GO" } };
  const broken = [
    { work: [{ at: [], owner: [] }] },
    { work: [{ at: [], owner: [], src: 5 }] },
    { work: [{ at: [5], owner: [], src: "work", start: 1 }] },
    { work: [{ at: [], owner: [5], src: "work", start: 1 }] },
    { timers: [{ ...timer, to: [5] }] },
    { timers: [{ ...timer, from: undefined }] },
    { timers: [{ ...timer, event: 5 }] },
    { actions: [{ before: 5, message }] },
    { actions: [{ before: { value: "a", context: {}, rest: {} }, message: {} }] },
  ];
  for (const part of broken) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    await expect
      .soft(
        client.threads.updateState(thread, { values: { __snapshot__: { ...snapshot, ...part } } }),
        JSON.stringify(part),
      )
      .rejects.toThrow(/HTTP 422: .*__snapshot__ of this thread is no machine/);
  }
});

test("a child whose namespace is not known, because a client has edited the state, gets no checkpoint", async () => {
  const child = createMachine({
    context: { n: 0 },
    on: { GO: { actions: assign({ n: ({ context }) => context.n + 1 }) } },
  });
  const machine = setup({ actors: { child } }).createMachine({
    invoke: { src: "child", id: "child" },
    on: { GO: { actions: sendTo("child", { type: "GO" }) } },
  });
  const { client, thread, wait } = await serveMachine(machine);
  const snapshot = (await wait({ input: {} }))["__snapshot__"] as object;
  const children = [{ start: 99, parent: null, at: ["child"], src: "child" }];
  await client.threads.updateState(thread, { values: { __snapshot__: { ...snapshot, children } } });
  await wait({ input: null });
  expect(await wait({ command: { resume: { type: "GO" } } })).toHaveProperty(
    "__snapshot__.rest.children.child",
  );
  const history = await client.threads.getHistory(thread);
  expect(history.filter(({ values }) => Object.hasOwn(values as object, "n"))).toEqual([]);
});

test("a Date in the context is text from the next step on, and what JSON does not know fails the run", async () => {
  const machine = createMachine({
    context: { at: new Date(0), kind: "" },
    on: { LOOK: { actions: assign({ kind: ({ context }) => typeof context.at }) } },
  });
  const { wait } = await serveMachine(machine);
  expect(await wait({ input: {} })).toMatchObject({ at: "1970-01-01T00:00:00.000Z" });
  expect(await wait({ command: { resume: { type: "LOOK" } } })).toMatchObject({ kind: "string" });
  const other = await serveMachine(createMachine({ context: { seen: new Set([1]) }, on: { LOOK: {} } }));
  await expect(other.wait({ input: {} })).rejects.toThrow("context.seen cannot be stored: it is a Set");
});

test("an output of a promise that contains itself fails the run, and one with a reference to an actor is the actor's error", async () => {
  const round: Record<string, unknown> = {};
  round["self"] = round;
  const outputs: Record<string, unknown> = {
    round,
    reference: { toJSON: () => ({ xstate$$type: 1, id: "w" }) },
  };
  const machine = setup({
    types: { input: {} as { readonly kind: string }, context: {} as { kind: string; message: string } },
    actors: { work: fromPromise<unknown, string>(async ({ input }) => outputs[input]) },
  }).createMachine({
    context: ({ input }) => ({ kind: input.kind, message: "" }),
    initial: "working",
    states: {
      working: {
        invoke: {
          id: "w",
          src: "work",
          input: ({ context }) => context.kind,
          onDone: "done",
          onError: {
            target: "done",
            actions: assign({ message: ({ event }) => (event.error as Error).message }),
          },
        },
      },
      done: { on: { GO: {} } },
    },
  });
  const { wait } = await serveMachine(machine);
  await expect(wait({ input: { kind: "round" } })).rejects.toThrow(
    /the output of w\.\S+ cannot be stored: it contains itself/,
  );
  expect(await wait({ input: { kind: "reference" } })).toMatchObject({
    __state__: "done",
    message: expect.stringContaining('contains a member "xstate$$type"'),
  });
});

describe("an actor with the id __proto__", () => {
  const child = createMachine({});

  test("is refused where the file is loaded, with its place", async () => {
    const machine = setup({ actors: { child } }).createMachine({
      id: "m",
      initial: "a",
      states: { a: { invoke: { src: "child", id: "__proto__" } } },
    });
    await expect(serve({ graphs: { machine } as Graphs })).rejects.toThrow(
      '#m.a.invoke has the id "__proto__", which JavaScript reserves',
    );
  });

  test("fails its run where it is spawned, instead of being lost", async () => {
    const machine = setup({ actors: { child } }).createMachine({
      context: ({ spawn }) => ({ ref: spawn("child", { id: "__proto__" }) }),
      on: { GO: {} },
    });
    const { wait } = await serveMachine(machine);
    await expect(wait({ input: {} })).rejects.toThrow(/spawned with the id "__proto__"/);
  });
});
