import { describe, expect, test } from "vitest";
import { assign, createMachine, fromPromise, setup } from "xstate";
import type { InlineGraph, MachineSnapshot } from "../../src/index.ts";
import { pairedId } from "../../src/model/ids.ts";
import { lines } from "./support/clients.ts";
import { gated, heldCalls } from "./support/latches.ts";
import { directory, serve } from "./support/server.ts";
import { ShiftedTime } from "./support/shifted-time.ts";
import { get, post, postJson } from "./support/wire.ts";

const connect = (lines[0] as (typeof lines)[number])[1];

type Graphs = NonNullable<NonNullable<Parameters<typeof serve>[0]>["graphs"]>;
type Values = Readonly<Record<string, unknown>>;

/** A document that is sent at once in version 1, and reviewed first in version 2. */
const v1 = createMachine({
  id: "doc",
  version: "1",
  context: { title: "t" },
  initial: "draft",
  states: { draft: { on: { SEND: "sent" } }, sent: { type: "final" } },
});
const v2 = createMachine({
  id: "doc",
  version: "2",
  context: { name: "n" },
  initial: "open",
  states: { open: { on: { SEND: "review" } }, review: { on: { OK: "sent" } }, sent: { type: "final" } },
});

/** Starts a server with a graph "doc", and what a test does with a thread on it. */
async function serving(doc: unknown, data?: string) {
  const app = await serve({ graphs: { doc } as Graphs, ...(data !== undefined && { data }) });
  const client = connect(app.url);
  const on = (thread: string) => {
    const wait = (payload: object) => client.runs.wait(thread, "doc", payload as never) as Promise<Values>;
    return {
      thread,
      wait,
      values: async () => (await client.threads.get(thread)).values as Values,
      send: (type: string) => wait({ command: { resume: { type } } }),
      fails: async (payload: object) => {
        const run = await client.runs.create(thread, "doc", payload as never);
        const result = await client.runs.join(thread, run.run_id).catch((thrown: unknown) => String(thrown));
        const { status } = await client.runs.get(thread, run.run_id);
        return { status, result, record: await client.threads.get(thread) };
      },
      mend: (values: object) => client.threads.updateState(thread, { values }),
    };
  };
  const begun = async () => {
    const one = on((await client.threads.create()).thread_id);
    await one.wait({ input: {} });
    return one;
  };
  return { app, client, on, begun };
}

/** A thread that waits in version 1, and the next server. */
async function waitingIn1(next: unknown, machine: unknown = v1) {
  const data = await directory();
  const first = await serving(machine, data);
  const { thread } = await first.begun();
  await first.app.close();
  const second = await serving(next, data);
  return { ...second, ...second.on(thread) };
}

const SEND = { command: { resume: { type: "SEND" } } };

describe("a thread whose machine declares a version", () => {
  test("stores it, and is driven by that version while the graph has it; new threads begin with the last", async () => {
    const { values, send, begun, client, thread } = await waitingIn1({ versions: [v1, v2] });
    expect(await values()).toMatchObject({ __version__: "1", __state__: "draft" });
    expect(await send("SEND")).toMatchObject({ __version__: "1", __state__: "sent" });
    const fresh = await begun();
    expect(await fresh.values()).toMatchObject({ __version__: "2", __state__: "open", name: "n" });
    const again = await client.runs.wait(thread, "doc", { input: {} });
    expect(again).toMatchObject({ __version__: "2", __state__: "open", title: null, name: "n" });
  });

  test("rests where the graph has another version alone: the error names both, and nothing is lost", async () => {
    const { fails, wait, values } = await waitingIn1(v2);
    const { status, result, record } = await fails(SEND);
    // The question is still open, so the thread waits for an answer.
    expect([status, record.status]).toEqual(["error", "interrupted"]);
    expect(JSON.stringify(result)).toMatch(
      /The machine of this thread has version \\"1\\", those of the graph have version \\"2\\"/,
    );
    expect(await values()).toMatchObject({ __version__: "1", __state__: "draft", title: "t" });
    // The next run begins anew.
    expect(await wait({ input: {} })).toMatchObject({ __version__: "2", __state__: "open" });
  });

  test("goes on after a state update that names a version and its state", async () => {
    const { fails, wait, send, mend } = await waitingIn1(v2);
    expect((await fails(SEND)).status).toBe("error");
    await mend({ __version__: "2", __state__: "open" });
    await wait({ input: null });
    expect(await send("SEND")).toMatchObject({ __state__: "review", title: "t" });
  });

  test("is never driven by a machine without a version, nor the other way round", async () => {
    const bare = createMachine({ ...v1.config, version: undefined } as never);
    expect((await (await waitingIn1(bare)).fails(SEND)).status).toBe("error");
    const { fails } = await waitingIn1(v1, bare);
    const { status, result } = await fails(SEND);
    expect(status).toBe("error");
    expect(JSON.stringify(result)).toMatch(/has no version, those of the graph have version/);
    const both = await waitingIn1({ versions: [bare, v2] }, bare);
    expect(await both.send("SEND")).toMatchObject({ __state__: "sent" });
  });
});

describe("migrate", () => {
  test("converts the snapshot of a version that is gone, and the thread goes on in the current one", async () => {
    const asked: unknown[] = [];
    const graph: InlineGraph = {
      versions: [v2],
      migrate(snapshot: MachineSnapshot, from: string | null) {
        asked.push(from);
        return { ...snapshot, value: "open", context: { name: snapshot.context["title"] } };
      },
    };
    const { wait, send, values } = await waitingIn1(graph);
    expect(await send("SEND")).toMatchObject({
      __version__: "2",
      __state__: "review",
      name: "t",
      title: null,
    });
    expect(new Set(asked)).toEqual(new Set(["1"]));
    const calls = asked.length;
    expect(await send("OK")).toMatchObject({ __state__: "sent" });
    expect(asked).toHaveLength(calls);
    await wait({ input: {} });
    expect(await values()).toMatchObject({ __state__: "open", name: "n" });
  });

  test("comes before the question that a run without input asks anew", async () => {
    const migrate = (snapshot: MachineSnapshot) => ({
      ...snapshot,
      value: "review",
      context: { name: "m" },
    });
    const { client, thread, wait, send } = await waitingIn1({ versions: [v2], migrate });
    await wait({ input: null });
    const asked = Object.values((await client.threads.get(thread)).interrupts).flat();
    expect(asked).toMatchObject([{ value: { state: "review", events: ["OK"] } }]);
    expect(await send("OK")).toMatchObject({ __version__: "2", __state__: "sent", name: "m" });
  });

  test("that fails, or returns a state that the current version does not have, fails the run, and nothing is lost", async () => {
    const failing = await waitingIn1({
      versions: [v2],
      migrate: () => {
        throw new Error("no title");
      },
    });
    const first = await failing.fails(SEND);
    expect(first.status).toBe("error");
    expect(JSON.stringify(first.result)).toMatch(/its migration to version \\"2\\" failed: no title/);
    const keeping = await waitingIn1({ versions: [v2], migrate: (snapshot: MachineSnapshot) => snapshot });
    const second = await keeping.fails(SEND);
    expect(second.status).toBe("error");
    expect(JSON.stringify(second.result)).toMatch(/draft/);
    expect(await keeping.values()).toMatchObject({ __version__: "1", __state__: "draft" });
  });

  test("comes before an actor whose work a restart has cut off, which then starts in the current version", async () => {
    const working = (version: string, key: string, work: (given: never) => Promise<string>) =>
      setup({ actors: { work: fromPromise<string>(work as never) } }).createMachine({
        id: "doc",
        version,
        context: { [key]: "" },
        initial: "working",
        states: {
          working: {
            invoke: {
              src: "work",
              onDone: { target: "done", actions: assign({ [key]: ({ event }) => event.output }) },
            },
          },
          done: { type: "final" },
        },
      } as never);
    const [one, two] = [heldCalls<string>(), heldCalls<string>()];
    const data = await directory();
    const first = await serving(working("1", "a", one.work as never), data);
    const { thread_id } = await first.client.threads.create();
    const run = await first.client.runs.create(thread_id, "doc", { input: {} });
    await one.calls(1);
    await first.app.close(0);
    const migrate = (snapshot: object) => ({ ...snapshot, context: { b: "moved" } });
    const second = await serving({ versions: [working("2", "b", two.work as never)], migrate }, data);
    const [call] = await two.calls(1);
    call?.open("result");
    await second.client.runs.join(thread_id, run.run_id);
    expect(await second.on(thread_id).values()).toMatchObject({
      __version__: "2",
      __state__: "done",
      b: "result",
      a: null,
    });
  });
});

describe("a question that was asked in a version that is missing now", () => {
  /** A letter that counts the events that it has taken. */
  const letter = (version: string | undefined, state = "draft") =>
    createMachine({
      id: "doc",
      ...(version !== undefined && { version }),
      context: { notes: 0 },
      initial: state,
      states: {
        [state]: {
          on: {
            NOTE: { actions: assign({ notes: ({ context }) => context["notes"] + 1 }) },
            SEND: "sent",
          },
        },
        sent: { type: "final" },
      },
    } as never);
  const [one, two] = [letter("1"), letter("2", "open")];
  const migrate = (snapshot: MachineSnapshot) => ({ ...snapshot, value: "open" });

  /** What a client sees of a thread, and a run for an event that it sends. */
  const clientOf = ({ app, client }: Awaited<ReturnType<typeof serving>>, thread: string) => {
    const path = `${app.url}/threads/${thread}`;
    const json = async (of: string) => (await (await get(path + of)).json()) as Values;
    const ended = async (run: string) => {
      const result = await client.runs.join(thread, run).catch((thrown: unknown) => String(thrown));
      return { status: (await client.runs.get(thread, run)).status, result };
    };
    const run = async (payload: object) => {
      const { run_id } = await client.runs.create(thread, "doc", payload as never);
      return ended(run_id);
    };
    return {
      run,
      event: async (type: string) => {
        const { run_id } = await postJson<{ run_id: string }>(`${path}/events`, { type });
        return ended(run_id);
      },
      asks: async () => ({
        status: (await client.threads.get(thread)).status,
        interrupts: await json("/interrupts"),
        possible: await json("/events/possible"),
      }),
      values: async () => (await client.threads.get(thread)).values as Values,
    };
  };

  /** A thread that waits in a machine; then servers with other graphs for it, one after the other. */
  async function waiting(machine: unknown) {
    const data = await directory();
    let server = await serving(machine, data);
    const { thread } = await server.begun();
    return {
      thread,
      here: clientOf(server, thread),
      next: async (graph: unknown) => {
        await server.app.close();
        server = await serving(graph, data);
        return { ...clientOf(server, thread), server };
      },
    };
  }

  const failures = {
    "an event": { command: { resume: { type: "NOTE" } } },
    "a run without input": { input: null },
    "an update of the context": { command: { update: { notes: 7 } } },
    "an answer with an update": { command: { resume: { type: "NOTE" }, update: { notes: 7 } } },
  };

  test.each(Object.entries(failures))(
    "stays open when %s fails: listed again, the version takes the next event, and not the failed one",
    async (_name, payload) => {
      const { here, next } = await waiting(one);
      const asked = await here.asks();
      expect(asked).toMatchObject({ status: "interrupted", possible: { state: "draft" } });
      const without = await next(two);
      const failed = await without.run(payload);
      expect(failed.status).toBe("error");
      expect(await without.asks()).toEqual(asked);
      const back = await next({ versions: [one, two] });
      expect(await back.asks()).toEqual(asked);
      expect((await back.event("NOTE")).status).toBe("success");
      expect(await back.values()).toMatchObject({ __version__: "1", __state__: "draft", notes: 1 });
    },
  );

  test("stays open with a migration that is given later, which changes it to the question of the last version", async () => {
    const { next } = await waiting(one);
    const without = await next(two);
    expect((await without.event("NOTE")).status).toBe("error");
    const migrating = await next({ versions: [two], migrate });
    expect(await migrating.asks()).toMatchObject({ possible: { state: "open", events: [{}, {}] } });
    expect((await migrating.event("NOTE")).status).toBe("success");
    expect(await migrating.values()).toMatchObject({ __version__: "2", __state__: "open", notes: 1 });
  });

  test.each([
    ["the version is back", { versions: [one, two] }],
    ["a migration is given", { versions: [two], migrate }],
  ])("is asked again by a run without input once %s: the failed event is not taken", async (_name, graph) => {
    const { next } = await waiting(one);
    expect((await (await next(two)).event("NOTE")).status).toBe("error");
    const back = await next(graph);
    expect((await back.run({ input: null })).status).toBe("success");
    expect(await back.asks()).toMatchObject({ status: "interrupted" });
    expect(await back.values()).toMatchObject({ notes: 0 });
    expect((await back.event("NOTE")).status).toBe("success");
    expect(await back.values()).toMatchObject({ notes: 1 });
  });

  test("stays open when the migration fails", async () => {
    const failing = () => {
      throw new Error("no title");
    };
    const { here, next } = await waiting(one);
    const asked = await here.asks();
    const broken = await next({ versions: [two], migrate: failing });
    expect((await broken.event("NOTE")).status).toBe("error");
    expect(await broken.asks()).toEqual(asked);
    expect((await (await next(one)).event("NOTE")).status).toBe("success");
  });

  test("stays open when the state of a machine without a version is gone", async () => {
    const { here, next } = await waiting(letter(undefined));
    const asked = await here.asks();
    const changed = await next(letter(undefined, "open"));
    const failed = await changed.event("NOTE");
    expect([failed.status, JSON.stringify(failed.result)]).toEqual([
      "error",
      expect.stringContaining("draft"),
    ]);
    expect(await changed.asks()).toEqual(asked);
    const back = await next(letter(undefined));
    expect((await back.event("NOTE")).status).toBe("success");
    expect(await back.values()).toMatchObject({ notes: 1 });
  });

  test("is answered by an answer whose update names a version that the graph has", async () => {
    const { next } = await waiting(one);
    const without = await next(two);
    const update = { __version__: "2", __state__: "open" };
    const sent = await without.run({ command: { resume: { type: "NOTE" }, update } });
    expect(sent.status).toBe("success");
    expect(await without.values()).toMatchObject({ __version__: "2", __state__: "open", notes: 1 });
  });

  test("stays open when a run from an earlier checkpoint fails: no branch begins", async () => {
    const { here, next, thread } = await waiting(one);
    expect((await here.event("NOTE")).status).toBe("success");
    const asked = await here.asks();
    const without = await next(two);
    const history = await without.server.client.threads.getHistory(thread);
    const waits = history.filter((state) => state.next.includes("xstate.wait"));
    const { checkpoint_id } = waits.at(-1)?.checkpoint ?? {};
    const failed = await without.run({ input: null, checkpoint: { checkpoint_id, checkpoint_ns: "" } });
    expect(failed.status).toBe("error");
    expect(await without.asks()).toEqual(asked);
  });
});

test("promise actors of a version that is missing start again by a run without input, once it is back", async () => {
  const { work, calls } = heldCalls<string>();
  const working = (version: string) =>
    setup({ actors: { work: fromPromise<string>(work) } }).createMachine({
      id: "doc",
      version,
      context: { made: "" },
      initial: "working",
      states: {
        working: {
          on: { STOP: "done" },
          invoke: {
            src: "work",
            onDone: { target: "done", actions: assign({ made: ({ event }) => event.output }) },
          },
        },
        done: { type: "final" },
      },
    });
  const data = await directory();
  const first = await serving(working("1"), data);
  const { thread_id } = await first.client.threads.create();
  const { run_id } = await first.client.runs.create(thread_id, "doc", { input: {} });
  await calls(1);
  const queued = await postJson<{ run_id: string }>(`${first.app.url}/threads/${thread_id}/runs`, {
    assistant_id: "doc",
    input: null,
    multitask_strategy: "enqueue",
  });
  await first.app.close(0);
  const without = await serving(working("2"), data);
  const statuses = async () => {
    const { runs } = without.client;
    return Promise.all([run_id, queued.run_id].map(async (id) => (await runs.get(thread_id, id)).status));
  };
  await expect.poll(statuses).toEqual(["error", "error"]);
  await without.app.close();
  const back = await serving({ versions: [working("1"), working("2")] }, data);
  const again = await back.client.runs.create(thread_id, "doc", { input: null });
  (await calls(2)).at(-1)?.open("result");
  await back.client.runs.join(thread_id, again.run_id);
  expect(await back.on(thread_id).values()).toMatchObject({
    __version__: "1",
    __state__: "done",
    made: "result",
  });
});

describe("the timers of a version that is missing", () => {
  const MINUTE = 60_000;
  const light = (version: string) =>
    createMachine({
      id: "doc",
      version,
      context: { turns: 0 },
      initial: "green",
      states: {
        green: {
          on: { NOTE: { actions: () => undefined } },
          after: { [MINUTE]: { actions: assign({ turns: ({ context }) => context["turns"] + 1 }) } },
        },
      },
    } as never);
  const [one, two] = [light("1"), light("2")];
  const migrate = (snapshot: MachineSnapshot) => snapshot;

  async function begun() {
    const data = await directory();
    const on = async (graph: unknown, minutes: number, more: Graphs = {}) => {
      const time = new ShiftedTime(minutes * MINUTE);
      // The run of a timer waits while a run of another thread takes the only slot.
      const limits = { concurrent: { all: 1, perTenant: Infinity, perGraph: {} } };
      const app = await serve({ data, limits, graphs: { ...more, doc: graph } as Graphs, ...time });
      const client = connect(app.url);
      const runs = async () => (await client.runs.list(thread_id)).map(({ status }) => status).reverse();
      const values = async () => (await client.threads.get(thread_id)).values as Values;
      const status = async () => (await client.threads.get(thread_id)).status;
      return { app, client, time, runs, values, status };
    };
    let thread_id = "";
    const first = async (more: Graphs = {}) => {
      const server = await on(one, 0, more);
      ({ thread_id } = await server.client.threads.create());
      await server.client.runs.wait(thread_id, "doc", { input: {} });
      return server;
    };
    return { first, on, thread: () => thread_id };
  }

  test.each([
    ["the version is listed again", { versions: [one, two] }],
    ["a migration is given", { versions: [two], migrate }],
  ])("stay when they fall due, and fire once %s", async (_name, graph) => {
    const { first, on } = await begun();
    await (await first()).app.close();
    const without = await on(two, 1);
    await expect
      .poll(() => without.app.complaints.join())
      .toMatch(/a timer cannot be started.*has version \\"1\\"/);
    expect([await without.status(), await without.runs()]).toEqual(["interrupted", ["success"]]);
    await without.app.close();
    const back = await on(graph, 1);
    await expect.poll(back.values).toMatchObject({ turns: 1 });
    await expect.poll(back.runs).toEqual(["success", "success"]);
    expect(await back.status()).toBe("interrupted");
  });

  test("fire without a restart, once a state update has named a version that the graph has", async () => {
    const { first, on, thread } = await begun();
    await (await first()).app.close();
    const { app, client, values, runs } = await on(two, 1);
    await expect.poll(() => app.complaints.join()).toMatch(/a timer cannot be started/);
    await client.threads.updateState(thread(), { values: { __version__: "2", __state__: "green" } });
    await expect.poll(values).toMatchObject({ turns: 1 });
    await expect.poll(runs).toEqual(["success", "success"]);
  });

  test("fire after an event has failed too", async () => {
    const { first, on, thread } = await begun();
    await (await first()).app.close();
    const without = await on(two, 0);
    const { run_id } = await postJson<{ run_id: string }>(`${without.app.url}/threads/${thread()}/events`, {
      type: "NOTE",
    });
    await without.client.runs.join(thread(), run_id).catch(() => undefined);
    await without.app.close();
    const back = await on({ versions: [one, two] }, 1);
    await expect.poll(back.values).toMatchObject({ turns: 1 });
    await expect.poll(back.runs).toEqual(["success", "error", "success"]);
  });

  test("fire once more when their run was queued before, and has failed", async () => {
    const { first, on, thread } = await begun();
    const { held, waits } = gated();
    const server = await first({ held });
    // In the same shard, because each shard has slots of its own.
    const other = await server.client.threads.create({ threadId: pairedId(thread()) });
    await server.client.runs.create(other.thread_id, "held", { input: { name: "n" } });
    await waits("n");
    server.time.advance(MINUTE);
    await expect.poll(server.runs).toEqual(["success", "pending"]);
    await server.app.close(0);
    const without = await on(two, 1);
    await expect.poll(without.runs).toEqual(["success", "error"]);
    await expect.poll(() => without.app.complaints.join()).toMatch(/a timer cannot be started/);
    expect(await without.status()).toBe("interrupted");
    await without.app.close();
    const back = await on({ versions: [one, two] }, 1);
    await expect.poll(back.values).toMatchObject({ turns: 1 });
    await expect.poll(back.runs).toEqual(["success", "error", "success"]);
  });
});

describe("the events that are possible after a migration", () => {
  const published = createMachine({
    id: "doc",
    version: "2",
    context: { name: "n" },
    initial: "open",
    states: {
      open: { meta: { question: "Publish?" }, on: { PUBLISH: "sent" } },
      sent: { type: "final" },
    },
  });
  const migrate = () => ({ value: "open", context: { name: "m" } });

  test("are those of the current version, before any run, and one of them is taken", async () => {
    const { app, client, thread, values } = await waitingIn1({ versions: [published], migrate });
    const path = `${app.url}/threads/${thread}`;
    const json = async (of: string) => (await (await get(path + of)).json()) as unknown;
    expect(await json("/events/possible")).toMatchObject({
      state: "open",
      events: [{ type: "PUBLISH", schema: { properties: { type: { const: "PUBLISH" } } } }],
    });
    expect(await json("/interrupts")).toMatchObject([
      {
        value: {
          state: "open",
          events: ["PUBLISH"],
          version: "2",
          meta: { "doc.open": { question: "Publish?" } },
        },
        response_schema: { properties: { type: { enum: ["PUBLISH"] } } },
      },
    ]);
    const old = await post(`${path}/events`, { type: "SEND" });
    expect([old.status, await old.text()]).toEqual([
      422,
      expect.stringContaining("the machine takes PUBLISH"),
    ]);
    const { run_id } = await postJson<{ run_id: string }>(`${path}/events`, { type: "PUBLISH" });
    await client.runs.join(thread, run_id);
    expect(await values()).toMatchObject({ __version__: "2", __state__: "sent", name: "m" });
  });

  test("are those of the old version where the migration fails: the next run says why", async () => {
    const failing = () => {
      throw new Error("no title");
    };
    const { app, thread } = await waitingIn1({ versions: [published], migrate: failing });
    const possible = (await (await get(`${app.url}/threads/${thread}/events/possible`)).json()) as object;
    expect(possible).toMatchObject({ state: "draft", events: [{ type: "SEND" }] });
  });
});

describe("a migration to a state that invokes an actor", () => {
  /** A machine that waits in `draft`, or works in a state named `state`. */
  const working = (
    version: string,
    state: string,
    work: (given: never) => Promise<string>,
    on: object = {},
  ) =>
    setup({ actors: { work: fromPromise<string>(work as never) } }).createMachine({
      id: "doc",
      version,
      context: { made: "" },
      initial: version === "1" ? state : "draft",
      states: {
        draft: {},
        [state]: {
          on,
          invoke: {
            src: "work",
            input: { of: version },
            onDone: { target: "done", actions: assign({ made: ({ event }) => event.output }) },
          },
        },
        done: { type: "final" },
        cancelled: { type: "final" },
      },
    } as never);

  test("starts it: the thread waited for an event before", async () => {
    const { work, calls } = heldCalls<string>();
    const machine = working("2", "working", work as never, { CANCEL: "cancelled" });
    const migrate = (snapshot: object) => ({ ...snapshot, value: "working", context: { made: "" } });
    const { client, thread, values } = await waitingIn1({ versions: [machine], migrate });
    const run = await client.runs.create(thread, "doc", { input: null });
    const [call] = await calls(1);
    expect(call?.input).toEqual({ of: "2" });
    call?.open("result");
    await client.runs.join(thread, run.run_id);
    expect(await values()).toMatchObject({ __version__: "2", __state__: "done", made: "result" });
  });

  test("takes an event that was sent before it starts", async () => {
    const { work } = heldCalls<string>();
    const machine = working("2", "working", work as never, { CANCEL: "cancelled" });
    const migrate = (snapshot: object) => ({ ...snapshot, value: "working", context: { made: "" } });
    const { send } = await waitingIn1({ versions: [machine], migrate });
    expect(await send("CANCEL")).toMatchObject({ __version__: "2", __state__: "cancelled" });
  });

  test("starts it under the name that its state has now, and not under the old one too", async () => {
    const [one, two] = [heldCalls<string>(), heldCalls<string>()];
    const data = await directory();
    const first = await serving(working("1", "working", one.work as never), data);
    const { thread_id } = await first.client.threads.create();
    const run = await first.client.runs.create(thread_id, "doc", { input: {} });
    await one.calls(1);
    await first.app.close(0);
    const migrate = (snapshot: object) => ({ ...snapshot, value: "processing" });
    const second = await serving(
      { versions: [working("2", "processing", two.work as never)], migrate },
      data,
    );
    const [call] = await two.calls(1);
    call?.open("result");
    await second.client.runs.join(thread_id, run.run_id);
    expect(await second.on(thread_id).values()).toMatchObject({ __state__: "done", made: "result" });
    expect(two.waiting).toHaveLength(1);
  });

  test("is refused where it is a machine that the snapshot does not have", async () => {
    const child = createMachine({});
    const machine = setup({ actors: { child } }).createMachine({
      id: "doc",
      version: "2",
      initial: "working",
      states: { working: { invoke: { src: "child", id: "inner" } } },
    });
    const migrate = () => ({ value: "working", context: {} });
    const { fails } = await waitingIn1({ versions: [machine], migrate });
    const { status, result } = await fails({ input: null });
    expect(status).toBe("error");
    expect(JSON.stringify(result)).toMatch(
      /\\"child\\" \(machine logic\) is invoked .* no child \\"inner\\"/,
    );
  });
});

describe("a migration to a state with timers", () => {
  const second = setup({
    types: { context: {} as { minutes: number; rings: number } },
    delays: { later: ({ context }) => context.minutes * 60_000 },
  }).createMachine({
    id: "doc",
    version: "2",
    context: { minutes: 2, rings: 0 },
    initial: "draft",
    states: {
      draft: {},
      review: {
        initial: "open",
        after: { later: "late", 60_000: { actions: assign({ rings: ({ context }) => context.rings + 1 }) } },
        states: { open: {} },
        on: { OK: "sent" },
      },
      late: {},
      sent: { type: "final" },
    },
  });
  const migrate = () => ({ value: { review: "open" }, context: { minutes: 3, rings: 0 } });
  const timersOf = (values: Values) =>
    (values["__snapshot__"] as { timers: { name: string; due: number }[] }).timers;

  test("sets them, from the time of the run that migrates", async () => {
    const time = new ShiftedTime();
    const data = await directory();
    const { app, begun } = await serving(v1, data);
    const { thread } = await begun();
    await app.close();
    const next = await serve({ graphs: { doc: { versions: [second], migrate } } as Graphs, data, ...time });
    const client = connect(next.url);
    time.advance(10 * 60_000);
    const before = Date.now();
    await client.runs.wait(thread, "doc", { input: null });
    const values = async () => (await client.threads.get(thread)).values as Values;
    const set = timersOf(await values()).map(({ name, due }) => [name, Math.floor((due - before) / 60_000)]);
    expect(set.toSorted()).toEqual([
      ["xstate.after.60000.doc.review", 11],
      ["xstate.after.later.doc.review", 13],
    ]);
    expect((await client.threads.get(thread)).status).toBe("interrupted");
    time.advance(61_000);
    await expect.poll(async () => (await values())["rings"]).toBe(1);
    time.advance(2 * 60_000);
    await expect.poll(async () => (await values())["__state__"]).toBe("late");
  });

  test("leaves them to a state that an event leaves at once", async () => {
    const { send } = await waitingIn1({ versions: [second], migrate });
    const values = await send("OK");
    expect([values["__state__"], timersOf(values)]).toEqual(["sent", []]);
  });

  test("keeps those that the state had before, with their deadlines", async () => {
    const light = (version: string) =>
      createMachine({
        id: "light",
        version,
        initial: "green",
        states: { green: { after: { 60_000: "red" }, on: { WAIT: {} } }, red: {} },
      });
    const data = await directory();
    const first = await serving(light("1"), data);
    const { thread, values } = await first.begun();
    const set = timersOf(await values());
    await first.app.close();
    const second = await serving({ versions: [light("2")], migrate: (given: object) => given }, data);
    await second.on(thread).wait({ input: null });
    expect([set.length, timersOf(await second.on(thread).values())]).toEqual([1, set]);
  });
});

describe("the versions of a graph", () => {
  test.each([
    [/versions is empty/, { versions: [] }],
    [/versions\[1\] is no XState machine/, { versions: [v1, {}] }],
    [/two of its versions have version "1"/, { versions: [v1, v1] }],
    [/migrate must be a function/, { versions: [v1], migrate: "m" }],
    [/the version of the machine "doc" must be a text/, createMachine({ id: "doc", version: 1 } as never)],
  ])("are refused with %s", async (why, doc) => {
    await expect(serve({ graphs: { doc } as Graphs })).rejects.toThrow(why);
  });
});
