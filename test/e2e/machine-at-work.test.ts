import { describe, expect, test } from "vitest";
import * as fc from "fast-check";
import {
  type AnyActor,
  type AnyStateMachine,
  assign,
  createActor,
  fromPromise,
  raise,
  setup,
  SimulatedClock,
} from "xstate";
import { lines } from "./support/clients.ts";
import { heldCalls } from "./support/latches.ts";
import { directory, serve } from "./support/server.ts";
import { ShiftedTime } from "./support/shifted-time.ts";
import { get, post, postJson } from "./support/wire.ts";

const connect = (lines[0] as (typeof lines)[number])[1];
const MINUTE = 60_000;

type Values = Readonly<Record<string, unknown>>;
type Graphs = NonNullable<NonNullable<Parameters<typeof serve>[0]>["graphs"]>;
type Held = ReturnType<typeof heldCalls<string>>;

const noted = assign({
  log: ({ context, event }: { context: { log: string[] }; event: { type: string } }) => [
    ...context.log,
    event.type,
  ],
});

/** Fetches a file; may be cancelled, begun anew and talked to meanwhile, and is late after a while. */
const download = ({ work }: Pick<Held, "work">) =>
  setup({
    types: { context: {} as { log: string[] } },
    actors: { fetch: fromPromise<string, string>(work) },
  }).createMachine({
    id: "download",
    context: { log: [] },
    initial: "working",
    on: { NOTE: { actions: noted as never } },
    states: {
      working: {
        entry: raise({ type: "NOTE" }, { delay: MINUTE / 2 }),
        invoke: {
          src: "fetch",
          input: ({ context }) => context.log.join(),
          onDone: "done",
          onError: "failed",
        },
        on: {
          CANCEL: { target: "cancelled", actions: noted as never },
          AGAIN: { target: "working", reenter: true, actions: noted as never },
          NEVER: { guard: () => false, target: "done" },
        },
        after: { [3 * MINUTE]: { target: "late", actions: noted as never } },
      },
      cancelled: { on: { AGAIN: { target: "working", actions: noted as never } } },
      late: { on: { AGAIN: "working", ARCHIVE: "done" } },
      failed: { after: { [MINUTE]: "working" } },
      done: { type: "final" },
    },
  });

/** Two things at a time: a switch, and a fetch that a child does. */
const both = ({ work }: Pick<Held, "work">) => {
  const child = setup({ actors: { fetch: fromPromise<string, string>(work) } }).createMachine({
    id: "child",
    initial: "working",
    states: {
      working: { invoke: { src: "fetch", input: "child", onDone: "done" }, after: { [2 * MINUTE]: "done" } },
      done: { type: "final" },
    },
  });
  return setup({
    types: { context: {} as { log: string[] } },
    actors: { child, fetch: fromPromise<string, string>(work) },
  }).createMachine({
    id: "both",
    type: "parallel",
    context: { log: [] },
    on: { NOTE: { actions: noted as never } },
    states: {
      light: {
        initial: "off",
        states: {
          off: { on: { AGAIN: { target: "on", actions: noted as never } } },
          on: {
            invoke: { src: "fetch", input: "light", onDone: "off", onError: "off" },
            on: { AGAIN: { target: "off", actions: noted as never } },
          },
        },
      },
      file: {
        initial: "fetching",
        states: {
          fetching: {
            invoke: { src: "child", onDone: "idle", onError: "idle" },
            on: { CANCEL: { target: "idle", actions: noted as never } },
          },
          idle: { on: { CANCEL: { target: "fetching", actions: noted as never } } },
        },
      },
    },
  });
};

interface Deed {
  readonly kind: "send" | "open" | "fail" | "pass";
  readonly type: string;
  readonly which: number;
}

const turn = () => new Promise<void>((next) => void setImmediate(next));

/** The machine in an actor of XState, with a clock by hand. */
function liveActor(make: (held: Held) => AnyStateMachine) {
  const held = heldCalls<string>();
  const clock = new SimulatedClock();
  const actor: AnyActor = createActor(make(held), { clock });
  actor.start();
  const seen = () => {
    const { value, context } = actor.getSnapshot() as { value: unknown; context: { log: string[] } };
    return { state: value, log: context.log, calls: callsOf(held) };
  };
  return { actor, held, clock, seen };
}

const callsOf = ({ waiting }: Held) => waiting.map(({ input, signal }) => [input, signal.aborted]);

/** The machine on a server, with a run that has begun. */
async function served(make: (held: Held) => AnyStateMachine, options: object = {}, data?: string) {
  const held = heldCalls<string>();
  const time = new ShiftedTime();
  const graphs = { machine: make(held) } as Graphs;
  const app = await serve({ graphs, ...(data !== undefined && { data }), ...time });
  const client = connect(app.url);
  const { thread_id } = await client.threads.create();
  const run = await client.runs.create(thread_id, "machine", { input: {}, ...options });
  return { app, client, held, time, run: run.run_id, ...on(app.url, thread_id, held) };
}

/** What a test does with one thread. */
function on(url: string, thread: string, held: Held) {
  const client = connect(url);
  const path = `${url}/threads/${thread}`;
  const values = async () => (await client.threads.getState(thread)).values as Values;
  const send = async (event: string | object) =>
    (
      await postJson<{ run_id: string }>(
        `${path}/events`,
        typeof event === "string" ? { type: event } : event,
      )
    ).run_id;
  return {
    thread,
    values,
    state: async () => (await values())["__state__"],
    seen: async () => {
      const { __state__: state, log } = await values();
      return { state, log, calls: callsOf(held) };
    },
    send,
    refused: async (event: string) => {
      const answer = await post(`${path}/events`, { type: event });
      return [answer.status, ((await answer.json()) as { detail: string }).detail];
    },
    possible: async () =>
      (await (await get(`${path}/events/possible`)).json()) as { events: { type: string }[] },
    join: (id: string) => client.runs.join(thread, id) as Promise<Values>,
    taken: async (event: string | object) => (await client.runs.join(thread, await send(event))) as Values,
    runs: async () => (await client.runs.list(thread)).map(({ status }) => status).reverse(),
  };
}

const deed: fc.Arbitrary<Deed> = fc.record({
  kind: fc.constantFrom("send", "send", "send", "open", "fail", "pass", "pass"),
  type: fc.constantFrom("NOTE", "CANCEL", "AGAIN", "NEVER"),
  which: fc.nat(5),
});

describe.each([
  ["download", download],
  ["both", both],
])("as in an actor of XState: %s", (_, make) => {
  test("whatever is sent, ends and is due while actors work", { timeout: 120_000 }, async () => {
    const sample = fc.sample(fc.array(deed, { minLength: 3, maxLength: 10 }), { numRuns: 12, seed: 7 });
    const complaints = await Promise.all(sample.map((deeds) => compare(make, deeds)));
    expect(complaints.flat()).toEqual([]);
  });
});

/** Does the same to both, and compares them after each deed. Returns what the server complained of. */
async function compare(make: (held: Held) => AnyStateMachine, deeds: readonly Deed[]) {
  const live = liveActor(make);
  const here = await served(make);
  const isEqual = () => expect.poll(here.seen).toEqual(live.seen());
  await isEqual();
  for (const { kind, type, which } of deeds) {
    const snapshot = live.actor.getSnapshot() as { status: string; can(event: object): boolean };
    if (snapshot.status !== "active") break;
    if (kind === "send") {
      // XState drops an event that its state does not handle, and here it waits.
      if (!snapshot.can({ type })) continue;
      live.actor.send({ type });
      // oxlint-disable-next-line no-await-in-loop -- one deed after the other
      await here.send(type);
    } else if (kind === "pass") {
      live.clock.increment(MINUTE);
      here.time.advance(MINUTE);
    } else {
      for (const { waiting } of [live.held, here.held]) {
        const call = waiting[which % Math.max(1, waiting.length)];
        if (kind === "open") call?.open("file");
        else call?.fail(new Error("no"));
      }
    }
    // oxlint-disable-next-line no-await-in-loop -- one deed after the other
    await turn();
    // oxlint-disable-next-line no-await-in-loop -- one deed after the other
    await isEqual();
  }
  live.actor.stop();
  return here.app.complaints;
}

describe("an event that comes while an actor works", () => {
  test("is taken at once: its run ends, and the actor goes on", async () => {
    const { held, taken, join, run, runs, values } = await served(download);
    const [call] = await held.calls(1);
    expect(await taken("NOTE")).toMatchObject({ __state__: "working", log: ["NOTE"] });
    expect(await taken("NOTE")).toMatchObject({ log: ["NOTE", "NOTE"] });
    expect(await runs()).toEqual(["running", "success", "success"]);
    expect(call?.signal.aborted).toBe(false);
    call?.open("file");
    expect(await join(run)).toMatchObject({ __state__: "done", log: ["NOTE", "NOTE"] });
    expect([held.waiting.length, await runs()]).toEqual([1, ["success", "success", "success"]]);
    expect((await values())["__events__"]).toEqual([]);
  });

  test("stops the actor when its state is left", async () => {
    const { held, taken, join, run, runs } = await served(download);
    const [call] = await held.calls(1);
    expect(await taken("CANCEL")).toMatchObject({ __state__: "cancelled" });
    expect(await join(run)).toMatchObject({ __state__: "cancelled", __interrupt__: [{}] });
    expect([call?.signal.aborted, await runs()]).toEqual([true, ["success", "success"]]);
  });

  test("and is not handled waits for a later state; one that is handled overtakes it", async () => {
    const { held, send, taken, join, run, runs } = await served(download);
    await held.calls(1);
    const archive = await send("ARCHIVE");
    await send("NEVER");
    expect(await runs()).toEqual(["running", "pending", "pending"]);
    expect(await taken("NOTE")).toMatchObject({ log: ["NOTE"] });
    held.waiting[0]?.open("file");
    await join(run);
    await expect.poll(runs).toEqual(["success", "error", "error", "success"]);
    expect(await join(archive)).toMatchObject({ __error__: {} });
  });

  test("is for the run before it, and never overtakes a run that begins the machine anew", async () => {
    const { client, thread, held, send, runs, state, values } = await served(download);
    await held.calls(1);
    await client.runs.create(thread, "machine", { input: {}, multitaskStrategy: "enqueue" });
    await send("CANCEL");
    expect(await runs()).toEqual(["running", "pending", "pending"]);
    held.waiting[0]?.open("file");
    await expect.poll(state).toBe("cancelled");
    expect([held.waiting.length, (await values())["log"]]).toEqual([2, ["CANCEL"]]);
  });

  test("is taken once, also when the server is killed after that", async () => {
    const data = await directory();
    const one = await served(download, {}, data);
    await one.held.calls(1);
    const archive = await one.send("ARCHIVE");
    await one.taken("NOTE");
    await one.app.close(0);
    const two = heldCalls<string>();
    const app = await serve({ data, graphs: { machine: download(two) } as Graphs });
    const again = on(app.url, one.thread, two);
    const [call] = await two.calls(1);
    expect(call?.input).toBe("");
    expect(await again.taken("NOTE")).toMatchObject({ log: ["NOTE", "NOTE"] });
    expect(await again.runs()).toEqual(["running", "pending", "success", "success"]);
    expect(await again.taken("CANCEL")).toMatchObject({ log: ["NOTE", "NOTE", "CANCEL"] });
    await expect.poll(again.runs).toEqual(["success", "error", "success", "success", "success"]);
    expect(await again.join(archive)).toMatchObject({ __error__: {} });
  });

  test("is stored at once also where other steps are stored at the end of the run", async () => {
    const { held, taken, join, run, runs, values, client, thread } = await served(download, {
      durability: "exit",
    });
    await held.calls(1);
    expect(await taken("NOTE")).toMatchObject({ log: ["NOTE"] });
    expect(await values()).toMatchObject({ log: ["NOTE"] });
    held.waiting[0]?.open("file");
    expect(await join(run)).toMatchObject({ __state__: "done", log: ["NOTE"] });
    expect(await runs()).toEqual(["success", "success"]);
    expect(await client.threads.getHistory(thread)).toHaveLength(2);
  });

  test("does not count to the limit of the run's steps", async () => {
    const { held, taken, join, run } = await served(download, { config: { recursion_limit: 6 } });
    await held.calls(1);
    // oxlint-disable-next-line no-await-in-loop -- one event after the other
    for (let n = 1; n <= 9; n++) await taken("NOTE");
    held.waiting[0]?.open("file");
    expect(await join(run)).toMatchObject({ __state__: "done" });
  });

  test("has its custom actions run once, before the next is taken", async () => {
    const ran: string[] = [];
    const make = ({ work }: Held) =>
      setup({ actors: { fetch: fromPromise<string>(work) } }).createMachine({
        initial: "working",
        states: {
          working: {
            invoke: { src: "fetch", onDone: "done" },
            on: { "SAY.*": { actions: ({ event }) => void ran.push(event.type) } },
          },
          done: { type: "final" },
        },
      });
    const { held, send, join, run } = await served(make);
    await held.calls(1);
    const sent = [await send("SAY.a"), await send("SAY.b"), await send("SAY.c")];
    await Promise.all(sent.map(join));
    held.waiting[0]?.open("file");
    await join(run);
    expect(ran).toEqual(["SAY.a", "SAY.b", "SAY.c"]);
  });

  test("goes with its run when that is rolled back", async () => {
    const { client, thread, run, held, taken, runs } = await served(download);
    await held.calls(1);
    await taken("NOTE");
    await client.runs.cancel(thread, run, true, "rollback");
    expect(await runs()).toEqual(["success"]);
    expect(await client.threads.getHistory(thread)).toEqual([]);
  });

  test("may be sent again with its Idempotency-Key when it was rolled back, and only then", async () => {
    const { app, client, thread, run, held, runs } = await served(download);
    const path = `${app.url}/threads/${thread}`;
    const sent = async (type: string) => {
      const headers = { "content-type": "application/json", "idempotency-key": type };
      const body = JSON.stringify({ type });
      const response = await fetch(`${path}/events`, { method: "POST", headers, body });
      expect(response.status).toBe(202);
      return ((await response.json()) as { run_id: string }).run_id;
    };
    await held.calls(1);
    const cancel = await sent("CANCEL");
    await client.runs.join(thread, run);
    expect(await runs()).toEqual(["success", "success"]);
    const again = await sent("AGAIN");
    await held.calls(2);
    const note = await sent("NOTE");
    await client.runs.join(thread, note);
    expect(await client.runs.get(thread, note)).toMatchObject({ kwargs: { taken_by: again } });
    expect([await sent("CANCEL"), await sent("NOTE")]).toEqual([cancel, note]);
    await client.runs.cancel(thread, again, true, "rollback");
    expect((await client.threads.get(thread)).values).toMatchObject({
      __state__: "cancelled",
      log: ["CANCEL"],
    });
    expect(await sent("CANCEL")).toBe(cancel);
    const second = await sent("NOTE");
    expect(second).not.toBe(note);
    await client.runs.join(thread, second);
    expect(await sent("NOTE")).toBe(second);
    expect((await client.threads.get(thread)).values).toMatchObject({ log: ["CANCEL", "NOTE"] });
    expect(app.complaints).toEqual([]);
  });

  test("is refused when the machine handles it in none of its states, and waits else", async () => {
    const { held, refused, runs } = await served(download);
    await held.calls(1);
    const names = "NOTE, CANCEL, AGAIN, NEVER, ARCHIVE";
    expect(await refused("SHIP")).toEqual([422, `type is "SHIP"; the machine takes ${names}`]);
    expect(await refused("xstate.stop")).toEqual([
      422,
      `type is "xstate.stop", a name that XState keeps for itself; the machine takes ${names}`,
    ]);
    expect(await refused("*")).toEqual([
      422,
      `type is "*", which stands for any event, and is none; the machine takes ${names}`,
    ]);
    expect(await runs()).toEqual(["running"]);
  });
});

test("the events that are possible are those of the state whose actor works", async () => {
  const { held, possible } = await served(download);
  await held.calls(1);
  const schema = (type: string) => ({
    type: "object",
    required: ["type"],
    properties: { type: { const: type } },
  });
  const types = ["NOTE", "CANCEL", "AGAIN", "NEVER"];
  // The actor starts while the state that it belongs to is still being stored.
  await expect.poll(possible).toEqual({
    state: "working",
    interrupt_id: null,
    events: types.map((type) => ({ type, schema: schema(type) })),
  });
});

describe("a timer that is due while an actor works", () => {
  test("fires at its time: its run ends, and the actor is stopped when its state is left", async () => {
    const { held, time, run, join, runs, state } = await served(download);
    const [call] = await held.calls(1);
    time.advance(MINUTE);
    await expect.poll(runs).toEqual(["running", "success"]);
    expect([await state(), call?.signal.aborted]).toEqual(["working", false]);
    time.advance(2 * MINUTE);
    expect(await join(run)).toMatchObject({
      __state__: "late",
      log: ["NOTE", "xstate.after.180000.download.working"],
    });
    expect(call?.signal.aborted).toBe(true);
    await expect.poll(runs).toEqual(["success", "success", "success"]);
  });

  test("that was due while the server was down fires when the actor has started again", async () => {
    const data = await directory();
    const one = await served(download, {}, data);
    await one.held.calls(1);
    await one.app.close(0);
    const two = heldCalls<string>();
    const app = await serve({
      data,
      graphs: { machine: download(two) } as Graphs,
      ...new ShiftedTime(5 * MINUTE),
    });
    const again = on(app.url, one.thread, two);
    expect(await again.join(one.run)).toMatchObject({ __state__: "late" });
    expect(app.complaints).toEqual([]);
  });
});
