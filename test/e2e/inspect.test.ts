import { describe, expect, test } from "vitest";
import { createMachine, type AnyStateMachine } from "xstate";
import { graph, list } from "../../src/index.ts";
import { gated, latches } from "./support/latches.ts";
import { inspect, refused, type Inspected, type Inspecting } from "./support/inspected.ts";
import { differs } from "./support/suite-variant.ts";
import { directory, serve } from "./support/server.ts";
import { get, newThread, post, whenEnded } from "./support/wire.ts";
import { describeOverEachTransport } from "../transport/each.ts";

interface Node {
  readonly id: string;
  readonly kind: string;
  readonly value: unknown;
  readonly children: readonly Node[];
}

const json = async <T>(response: Promise<Response>): Promise<T> => (await response).json() as Promise<T>;
const statusOf = async (url: string) => (await json<{ status: string }>(get(url))).status;
const actorsOf = async (url: string, query: string) =>
  (await json<{ actors: readonly Node[] }>(get(`${url}/inspect/actors${query}`))).actors;

async function start(url: string, thread: string, body: object): Promise<string> {
  return (await json<{ run_id: string }>(post(`${url}/threads/${thread}/runs`, body))).run_id;
}

const stands = (id: string, value: unknown) => (message: Inspected) =>
  message.sessionId === id && JSON.stringify(message.snapshot?.value) === JSON.stringify(value);

const actors = (seen: Inspecting) => seen.messages.filter(({ type }) => type === "@xstate.actor");

/** Draws every chart as the vendor's viewer does, and applies every snapshot to it. */
function draw(messages: readonly Inspected[]): number {
  const machines = new Map<string, AnyStateMachine>();
  let drawn = 0;
  for (const { type, sessionId, definition, snapshot, kind } of messages) {
    if (type === "@xstate.actor") machines.set(sessionId, createMachine(JSON.parse(definition ?? "")));
    const machine = machines.get(sessionId);
    expect(machine, `${type} of ${sessionId} before its actor`).toBeDefined();
    if (snapshot === undefined || machine === undefined) continue;
    // Parallel nodes that are not in a parallel state are reported as a set.
    if (kind === "graph" && typeof snapshot.value === "object") continue;
    const { value } = machine.resolveState({ value: snapshot.value as string, context: {} });
    expect(value, sessionId).toEqual(snapshot.value);
    drawn++;
  }
  return drawn;
}

const review = { assistant_id: "approval", input: { topic: "tea" } };

describeOverEachTransport("/inspect", (transport) => {
  test("the vendor's receiver sees a run with an interrupt, and its resume, in the contract's words", async () => {
    const { url } = await serve({ transport });
    const thread = await newThread(url);
    const seen = inspect(url, `?thread_id=${thread}`);
    const first = await seen.until(({ type }) => type === "@xstate.actor");
    expect(first).toMatchObject({
      sessionId: thread,
      rootId: thread,
      name: "thread",
      id: null,
      _version: "0.7.2",
      snapshot: { value: "idle", status: "active" },
    });
    expect(first.createdAt).toMatch(/^\d{13}$/);
    expect(await statusOf(`${url}/threads/${thread}`)).toBe("idle");

    const run = await start(url, thread, review);
    await seen.until(stands(thread, "interrupted"));
    expect(await statusOf(`${url}/threads/${thread}`)).toBe("interrupted");
    expect(await statusOf(`${url}/threads/${thread}/runs/${run}`)).toBe("success");
    expect([seen.value(run), seen.value(`graph:${run}`)]).toEqual(["success", "review"]);

    const again = await start(url, thread, { assistant_id: "approval", command: { resume: { ok: true } } });
    await seen.until(stands(thread, "success"));
    expect(await statusOf(`${url}/threads/${thread}`)).toBe("idle");
    expect([seen.value(again), seen.value(`graph:${again}`)]).toEqual(["success", "__end__"]);

    const { messages } = seen;
    expect(messages.map(({ seq }) => seq)).toEqual(messages.map(({ seq }) => seq).toSorted((a, b) => a - b));
    expect(draw(messages)).toBeGreaterThan(30);
    // An actor's end is reported before the effects of that end.
    const at = (isIt: (message: Inspected) => boolean) => messages.findIndex(isIt);
    expect(at(stands(run, "success"))).toBeLessThan(at(stands(thread, "interrupted")));
    const task = messages.find(({ name }) => name === "write")?.sessionId ?? "";
    const told = messages.find(({ event }) => event?.type === `xstate.done.actor.task:${task}`);
    expect(told).toMatchObject({ sessionId: run, sourceId: task, run_id: run, thread_id: thread });
    expect(at(stands(task, "done"))).toBeLessThan(messages.indexOf(told as Inspected));
    // The messages contain no state of the graph, and no input or output of a node.
    expect(JSON.stringify(messages)).not.toMatch(/tea|Draft|Send it/);
  });

  test("who joins late is shown who lives, parents first, and what was told last; both see the same from then on", async () => {
    const { held, waits, open } = gated();
    const { url } = await serve({ transport, graphs: { held } });
    const thread = await newThread(url);
    const early = inspect(url, `?thread_id=${thread}`);
    await early.until(({ type }) => type === "@xstate.actor");
    const run = await start(url, thread, { assistant_id: "held", input: { name: "a" } });
    await waits("a");
    await early.until(stands(`graph:${run}`, "hold"));

    const late = inspect(url, `?thread_id=${thread}`);
    await late.until(({ kind, type }) => kind === "task" && type === "@xstate.actor");
    expect(actors(late).map(({ kind, snapshot }) => [kind, snapshot?.value])).toEqual([
      ["thread", { pending: "running" }],
      ["run", { running: "executing" }],
      ["graph", "hold"],
      ["task", "running"],
    ]);
    expect(actors(late).map(({ parentId }) => parentId)).toEqual([undefined, thread, run, run]);
    expect(await statusOf(`${url}/threads/${thread}`)).toBe("busy");
    expect(await statusOf(`${url}/threads/${thread}/runs/${run}`)).toBe("running");
    const last = early.messages.findLast(({ type }) => type === "@xstate.event");
    await late.until(({ seq }) => seq === last?.seq);
    const [tree] = await actorsOf(url, `?thread_id=${thread}`);
    expect(tree).toMatchObject({
      id: thread,
      value: { pending: "running" },
      children: [
        {
          id: run,
          value: { running: "executing" },
          children: [
            { id: `graph:${run}`, value: "hold" },
            { kind: "task", name: "hold", value: "running" },
          ],
        },
      ],
    });

    open("a");
    await Promise.all([early.until(stands(thread, "success")), late.until(stands(thread, "success"))]);
    const since = ({ messages }: Inspecting) =>
      messages.filter(({ seq }) => seq > (actors(late).at(-1)?.seq ?? 0));
    expect(since(late)).toEqual(since(early));
    expect(since(late).length).toBeGreaterThan(8);
    draw(late.messages);
  });

  test("all threads of a tenant, those of another not; a key or a token lets in", async () => {
    const { url } = await serve({ transport, keys: ["k", "acme:a"] });
    const post = async (address: string, body: object, key: string) => {
      const headers = { "content-type": "application/json", "x-api-key": key };
      return whenEnded(await fetch(address, { method: "POST", headers, body: JSON.stringify(body) }));
    };
    const made = async (key: string) => {
      const thread = await json<{ thread_id: string }>(post(`${url}/threads`, {}, key));
      return thread.thread_id;
    };
    const token = async (key: string) =>
      (await json<{ token: string }>(post(`${url}/auth/token`, {}, key))).token;
    const [ours, theirs] = [await made("k"), await made("a")];
    const seen = inspect(url, `?token=${await token("k")}`);
    await post(`${url}/threads/${theirs}/runs/wait`, review, "a");
    await post(`${url}/threads/${ours}/runs/wait`, review, "k");
    await seen.until(stands(ours, "interrupted"));
    expect(new Set(seen.messages.map(({ thread_id }) => thread_id))).toEqual(new Set([ours]));
    const other = `?thread_id=${ours}&token=${await token("a")}`;
    expect(await refused(url, other)).toMatchObject({ code: 4404 });
    expect(await refused(url)).toMatchObject({ code: 4401 });
    expect((await get(`${url}/inspect/actors`)).status).toBe(401);
    const { actors: list } = await json<{ actors: Node[] }>(
      get(`${url}/inspect/actors`, { "x-api-key": "a" }),
    );
    expect(list.map(({ id }) => id)).toEqual([theirs]);
  });

  test.each([
    ["?thread_id=x", 4422],
    ["?run_id=1", 4422],
    ["?values=yes", 4422],
    ["?values=1", 4403],
    ["?thread_id=00000000-0000-4000-8000-000000000000", 4404],
    ["?run_id=00000000-0000-4000-8000-000000000000", 4404],
    [`?x=${"y".repeat(2000)}`, 4422],
  ])("%.60s is refused by a code that says why", async (query, code) => {
    const { url } = await serve({ transport });
    expect(await refused(url, query)).toMatchObject({ code, reason: expect.stringMatching(/\w+/) });
  });

  test("a foreign page gets no socket", async () => {
    const { url } = await serve({ transport });
    expect(await refused(url, "", "https://evil.test")).toMatchObject({ code: 403 });
  });
});

describe("what is shown", () => {
  test("a passive thread from its records, its latest run and that one's graph too; it is not woken", async () => {
    const data = await directory();
    const first = await serve({ data });
    const thread = await newThread(first.url);
    const run = await start(first.url, thread, review);
    await get(`${first.url}/threads/${thread}/runs/${run}/join`);
    await first.close();

    const app = await serve({ data });
    const seen = inspect(app.url, `?thread_id=${thread}`);
    await seen.until(({ kind }) => kind === "graph");
    expect(
      seen.messages.map(({ sessionId, snapshot }) => [sessionId, snapshot?.value, snapshot?.tags]),
    ).toEqual([
      [thread, "interrupted", []],
      [run, "success", []],
      [`graph:${run}`, "review", ["interrupted"]],
    ]);
    draw(seen.messages);
    expect(app.system.counts.live).toBe(0);
    expect(await actorsOf(app.url, "")).toEqual([]);
    expect(await actorsOf(app.url, `?thread_id=${thread}`)).toMatchObject([
      { value: "interrupted", children: [{ id: run, children: [{ value: "review" }] }] },
    ]);
    // The message shows that the actor wakes.
    await start(app.url, thread, { assistant_id: "approval", command: { resume: { ok: false } } });
    await seen.until(stands(thread, "success"));
    draw(seen.messages);
  });

  test("a thread that is let go while it is watched rests as it did, and is seen to wake", async () => {
    const app = await serve({ limits: { idle: 10 } });
    const thread = await newThread(app.url);
    const seen = inspect(app.url, `?thread_id=${thread}`);
    await seen.until(({ type }) => type === "@xstate.actor");
    await post(`${app.url}/threads/${thread}/runs/wait`, review);
    await expect.poll(() => app.system.counts.live).toBe(0);
    await expect.poll(() => seen.value(thread)).toBe("interrupted");
    await post(`${app.url}/threads/${thread}/runs/wait`, {
      assistant_id: "approval",
      command: { resume: { ok: true } },
    });
    await seen.until(stands(thread, "success"));
    expect(actors(seen).filter(({ kind }) => kind === "thread").length).toBeGreaterThan(1);
  });

  test("nodes side by side are the regions of a parallel state, a subgraph is inside its node", async () => {
    const latch = latches();
    const reached = latches();
    const wait = (name: string) => async () => {
      reached(name).pass();
      await latch(name).passed;
      return { log: [name] };
    };
    const inner = graph({
      state: { log: list<string>() },
      nodes: { deep: wait("deep") },
      edges: { start: "deep" },
    });
    const wide = graph({
      state: { log: list<string>() },
      nodes: {
        plan: async () => ({ log: ["plan"] }),
        bill: wait("bill"),
        "ship.it": inner,
        thank: { after: ["bill", "ship.it"], run: async () => ({ log: ["thank"] }) },
      },
      edges: { start: "plan", plan: ["bill", "ship.it"] },
    });
    const { url } = await serve({ graphs: { wide } });
    const thread = await newThread(url);
    const seen = inspect(url, `?thread_id=${thread}`);
    await seen.until(({ type }) => type === "@xstate.actor");
    const run = await start(url, thread, { assistant_id: "wide", input: {} });
    await Promise.all([reached("bill").passed, reached("deep").passed]);
    const both = { "after: plan": { bill: "bill", "ship.it": { "ship.it": "deep" } } };
    await seen.until(stands(`graph:${run}`, both));
    const chart = actors(seen).find(({ kind }) => kind === "graph");
    const machine = createMachine(JSON.parse(chart?.definition ?? ""));
    const { value } = machine.resolveState({ value: both, context: {} });
    expect(value).toEqual(both);
    latch("bill").pass();
    await seen.until(stands(`graph:${run}`, { "after: plan": { "ship.it": { "ship.it": "deep" } } }));
    latch("deep").pass();
    await seen.until(stands(thread, "success"));
    expect(seen.value(`graph:${run}`)).toBe("__end__");
    const below = actors(seen).find(({ sessionId }) => sessionId.startsWith("subgraph:"));
    if (differs("actors of graphs within")) expect(below).toBeUndefined();
    else expect(below).toMatchObject({ kind: "run", name: "ship.it", run_id: run });
    draw(seen.messages);
  });

  test("a run alone, with its thread; a run without a thread by its own id", async () => {
    const { held, waits, open } = gated();
    const { url } = await serve({ graphs: { held } });
    const thread = await newThread(url);
    const body = { assistant_id: "held", multitask_strategy: "enqueue" };
    const first = await start(url, thread, { ...body, input: { name: "a" } });
    await waits("a");
    const second = await start(url, thread, { ...body, input: { name: "b" } });
    const seen = inspect(url, `?run_id=${second}`);
    await seen.until(({ sessionId }) => sessionId === second);
    open("a");
    open("b");
    await seen.until(stands(thread, "success"));
    expect(seen.value(second)).toBe("success");
    expect(seen.messages.filter(({ run_id }) => run_id === first)).toEqual([]);

    const alone = await json<{ run_id: string }>(
      post(`${url}/runs`, { assistant_id: "held", input: { name: "c" } }),
    );
    await waits("c");
    const watched = inspect(url, `?run_id=${alone.run_id}`);
    await watched.until(stands(`graph:${alone.run_id}`, "hold"));
    open("c");
    await watched.until(stands(alone.run_id, "success"));
  });

  test("runs that fail or are cancelled end in the words of the wire", async () => {
    const { held, waits } = gated();
    const bad = graph({
      state: { log: list<string>() },
      nodes: {
        bad: async () => {
          throw new TypeError("kaboom");
        },
      },
      edges: { start: "bad" },
    });
    const { url } = await serve({ graphs: { held, bad } });
    const thread = await newThread(url);
    const seen = inspect(url, `?thread_id=${thread}`);
    await seen.until(({ type }) => type === "@xstate.actor");
    const failed = await start(url, thread, { assistant_id: "bad", input: {} });
    await seen.until(stands(thread, "error"));
    expect(await statusOf(`${url}/threads/${thread}`)).toBe("error");
    expect(await statusOf(`${url}/threads/${thread}/runs/${failed}`)).toBe(seen.value(failed));
    const end = seen.messages.findLast(({ sessionId }) => sessionId === `graph:${failed}`);
    expect(end?.snapshot).toMatchObject({ status: "error", value: "bad", tags: ["failed"] });

    const stopped = await start(url, thread, { assistant_id: "held", input: { name: "a" } });
    await waits("a");
    await post(`${url}/threads/${thread}/runs/${stopped}/cancel?wait=true`, {});
    await seen.until((message) => stands(thread, "idle")(message) && message.seq > (end?.seq ?? 0));
    expect(await statusOf(`${url}/threads/${thread}/runs/${stopped}`)).toBe("interrupted");
    expect(seen.value(stopped)).toBe("interrupted");
    expect(seen.messages.some(stands(thread, { pending: "stopping" }))).toBe(true);
    expect(seen.messages.some(stands(stopped, { running: "draining" }))).toBe(true);
    draw(seen.messages);
  });

  test("values where the configuration allows it and they are asked for, cut off where they are long", async () => {
    const { url } = await serve({ inspect: { values: true } });
    const thread = await newThread(url);
    const [with_, without] = [
      inspect(url, `?thread_id=${thread}&values=1`),
      inspect(url, `?thread_id=${thread}`),
    ];
    await Promise.all([with_, without].map((seen) => seen.until(({ type }) => type === "@xstate.actor")));
    const first = await start(url, thread, review);
    await Promise.all([with_, without].map((seen) => seen.until(stands(thread, "interrupted"))));
    const last = with_.messages.findLast(({ sessionId }) => sessionId === `graph:${first}`);
    expect(last?.snapshot?.context).toMatchObject({
      values: { topic: "tea", draft: expect.stringContaining("tea") },
    });
    expect(JSON.stringify(without.messages)).not.toContain("tea");
    const long = await newThread(url);
    const bounded = inspect(url, `?thread_id=${long}&values=1`);
    await bounded.until(({ type }) => type === "@xstate.actor");
    await start(url, long, { assistant_id: "approval", input: { topic: "x".repeat(100_000) } });
    await bounded.until(stands(long, "interrupted"));
    expect(JSON.stringify(bounded.messages)).toContain("left_out");
    expect(JSON.stringify(bounded.messages).length).toBeLessThan(200_000);
  });

  test("the charts by name, with a hash of each", async () => {
    const { url } = await serve();
    interface Machine {
      readonly id: string;
      readonly hash: string;
      readonly definition: object;
    }
    const { machines } = await json<{ machines: Machine[] }>(get(`${url}/inspect/machines`));
    expect(machines.map(({ id }) => id)).toEqual(["thread", "run", "task", "graph:agent", "graph:approval"]);
    for (const machine of machines) {
      expect(machine.hash).toMatch(/^[0-9a-f]{32}$/);
      expect(createMachine(machine.definition).states).not.toEqual({});
      expect(await json(get(`${url}/inspect/machines/${machine.id}`))).toEqual(machine);
    }
    expect((await get(`${url}/inspect/machines/none`)).status).toBe(404);
    expect((await get(`${url}/inspect/actors?thread_id=x`)).status).toBe(422);
    expect((await get(`${url}/inspect/actors?limit=0`)).status).toBe(422);
    expect((await get(`${url}/inspect/actors?thread_id=00000000-0000-4000-8000-000000000000`)).status).toBe(
      404,
    );
  });
});
