import { describe, expect, test } from "vitest";
import { graph, list } from "../../src/index.ts";
import { type Client, lines } from "./support/clients.ts";
import { gated } from "./support/latches.ts";
import { differs } from "./support/suite-variant.ts";
import { directory, serve } from "./support/server.ts";
import { ALL_MODES, talking } from "./support/all-modes-graph.ts";
import { bytesOf, events, get, newThread, NOBODY, post, postJson, Reading } from "./support/wire.ts";

const steps = graph({
  state: { log: list<string>() },
  nodes: {
    one: async () => ({ log: ["one"] }),
    two: async () => ({ log: ["two"] }),
  },
  edges: { start: "one", one: "two" },
});

const aside = graph({
  state: { answers: list<unknown>() },
  nodes: {
    left: async (_, ctx) => ({ answers: [["left", await ctx.interrupt("left?")]] }),
    right: async (_, ctx) => ({ answers: [["right", await ctx.interrupt("right?")]] }),
  },
  edges: { start: ["left", "right"] },
});

const graphs = { steps, aside };
/** The graph as a restarted program has it: with another gate. */
const withHeld = (gate = gated()) => ({ ...gate, graphs: { ...graphs, held: gate.held } });

type Asked = { readonly __interrupt__: readonly { readonly id: string; readonly value: string }[] };

describe.each(lines)("a restart on the same directory, over %s", (_, connect) => {
  test("threads, states, runs and assistants are found again, field by field", async () => {
    const data = await directory();
    const look = async (client: Client, thread: string, assistant: string) => ({
      thread: await client.threads.get(thread),
      state: await client.threads.getState(thread),
      runs: await client.runs.list(thread),
      joined: await Promise.all(
        (await client.runs.list(thread)).map(({ run_id }) => client.runs.join(thread, run_id)),
      ),
      assistant: await client.assistants.get(assistant),
    });

    const first = await serve({ data, graphs });
    const one = connect(first.url);
    const { thread_id } = await one.threads.create({ metadata: { mine: ["é", 1, null] } });
    const { assistant_id } = await one.assistants.create({
      graphId: "steps",
      config: { configurable: { a: 1 } },
      metadata: { mine: true },
    });
    await one.runs.wait(thread_id, "steps", { input: {}, metadata: { n: 1 } });
    await one.runs.wait(thread_id, assistant_id, { input: {} });
    const empty = await one.threads.create({ threadId: NOBODY });
    const before = await look(one, thread_id, assistant_id);
    expect(before.runs).toHaveLength(2);
    await first.close();

    const second = await serve({ data, graphs });
    const two = connect(second.url);
    expect(await look(two, thread_id, assistant_id)).toEqual(before);
    expect(await two.threads.get(NOBODY)).toEqual(empty);
    await expect(two.threads.create({ threadId: NOBODY })).rejects.toMatchObject({ status: 409 });
    // The thread continues from there.
    const values = await two.runs.wait(thread_id, assistant_id, { input: {} });
    expect(values).toEqual({ log: ["one", "two", "one", "two", "one", "two"] });
    expect(await two.runs.list(thread_id)).toHaveLength(3);
    expect([...first.complaints, ...second.complaints]).toEqual([]);
  });

  test("an interrupted thread is resumed, by ids that were told before", async () => {
    const data = await directory();
    const first = await serve({ data, graphs });
    const one = connect(first.url);
    const { thread_id } = await one.threads.create();
    const asked = (await one.runs.wait(thread_id, "aside", { input: {} })) as unknown as Asked;
    const before = await one.threads.getState(thread_id);
    await first.close();

    const two = connect((await serve({ data, graphs })).url);
    expect(await two.threads.get(thread_id)).toMatchObject({ status: "interrupted" });
    expect(await two.threads.getState(thread_id)).toEqual(before);
    const plain = two.runs.wait(thread_id, "aside", { command: { resume: 1 } });
    await expect(plain).rejects.toMatchObject({ status: 422 });
    const resume = Object.fromEntries(asked.__interrupt__.map(({ id, value }) => [id, `${value} yes`]));
    expect(await two.runs.wait(thread_id, "aside", { command: { resume } })).toEqual({
      answers: [
        ["left", "left? yes"],
        ["right", "right? yes"],
      ],
    });
  });

  test("what one of two questions was answered before is not asked again", async () => {
    const data = await directory();
    const first = await serve({ data, graphs });
    const one = connect(first.url);
    const { thread_id } = await one.threads.create();
    const asked = (await one.runs.wait(thread_id, "aside", { input: {} })) as unknown as Asked;
    const right = asked.__interrupt__[1]?.id ?? "";
    await one.runs.wait(thread_id, "aside", { command: { resume: { [right]: false } } });
    await first.close();

    const two = connect((await serve({ data, graphs })).url);
    expect(await two.runs.wait(thread_id, "aside", { command: { resume: 0 } })).toEqual({
      answers: [
        ["left", 0],
        ["right", false],
      ],
    });
  });

  test("a thread at a breakpoint goes on with input null", async () => {
    const data = await directory();
    const first = await serve({ data, graphs });
    const one = connect(first.url);
    const { thread_id } = await one.threads.create();
    await one.runs.wait(thread_id, "steps", { input: {}, interruptBefore: ["two"] });
    await first.close();

    const two = connect((await serve({ data, graphs })).url);
    expect((await two.threads.getState(thread_id)).next).toEqual(["two"]);
    expect(await two.runs.wait(thread_id, "steps", { input: null })).toEqual({ log: ["one", "two"] });
  });

  test("a run that was in progress, and those that waited for it, are taken up and completed", async () => {
    const data = await directory();
    const old = withHeld();
    const first = await serve({ data, graphs: old.graphs });
    const one = connect(first.url);
    const { thread_id } = await one.threads.create();
    const multitaskStrategy = "enqueue";
    const a = await one.runs.create(thread_id, "held", { input: { name: "a" } });
    const b = await one.runs.create(thread_id, "held", { input: { name: "b" }, multitaskStrategy });
    await old.waits("a");
    await first.close(0);

    const anew = withHeld();
    const two = connect((await serve({ data, graphs: anew.graphs })).url);
    await anew.waits("a");
    expect(await two.runs.get(thread_id, a.run_id)).toMatchObject({ status: "running" });
    expect(await two.runs.get(thread_id, b.run_id)).toMatchObject({ status: "pending" });
    const rejected = two.runs.create(thread_id, "held", { input: {} });
    await expect(rejected).rejects.toMatchObject({ status: 409 });
    anew.open("a");
    anew.open("b");
    expect(await two.runs.join(thread_id, b.run_id)).toEqual({
      name: "b",
      log: ["a began", "a ended", "b began", "b ended"],
    });
    expect(await two.runs.join(thread_id, a.run_id)).toEqual({ name: "a", log: ["a began", "a ended"] });
  });
});

describe("streams over a restart", () => {
  test("a run that has ended is streamed again to the byte, resumed anywhere", async () => {
    const data = await directory();
    const old = talking();
    const first = await serve({ data, graphs: { talk: old.talk } });
    const thread = await newThread(first.url);
    const run = { assistant_id: "talk", input: {}, stream_mode: ALL_MODES };
    const streamed = await post(`${first.url}/threads/${thread}/runs/stream`, run);
    old.open();
    const path = streamed.headers.get("content-location") ?? "";
    const all = events(await streamed.text());
    await first.close();

    const { url } = await serve({ data, graphs: { talk: talking().talk } });
    const again = await (await get(`${url}${path}/stream`)).text();
    expect(bytesOf(events(again))).toBe(bytesOf(all));
    for (const [at, { id }] of all.entries()) {
      const rest = await (await get(`${url}${path}/stream`, { "last-event-id": id })).text();
      expect(bytesOf(events(rest))).toBe(bytesOf(all.slice(at + 1)));
    }
  });

  test("a reader that was cut off by the stop goes on after its last event", async () => {
    const data = await directory();
    const old = talking();
    const first = await serve({ data, graphs: { talk: old.talk } });
    const thread = await newThread(first.url);
    const run = { assistant_id: "talk", input: {}, stream_mode: ALL_MODES };
    const streamed = await post(`${first.url}/threads/${thread}/runs/stream`, run);
    const path = streamed.headers.get("content-location") ?? "";
    const before = await new Reading(streamed).until(({ data }) => data === "waiting");
    await first.close(0);

    const anew = talking();
    const { url } = await serve({ data, graphs: { talk: anew.talk } });
    await anew.waits;
    const last = before.at(-1)?.id ?? "";
    const resumed = await get(`${url}${path}/stream`, { "last-event-id": last });
    anew.open();
    const rest = events(await resumed.text());
    expect(Number(rest[0]?.id)).toBeGreaterThan(Number(last));
    // The interrupted node runs again; earlier output is not sent again.
    const told = rest.filter(({ event }) => event !== "metadata").map(({ event, data }) => [event, data]);
    expect(told.slice(0, 3)).toEqual([
      ["custom", "waiting"],
      ["custom", "going on"],
      ["updates", { hold: { log: ["held"] } }],
    ]);
    if (!differs("a step that writes nothing")) expect(rest.at(-1)?.event).toBe("values");
    const values = rest.findLast(({ event }) => event === "values");
    expect(values?.data).toMatchObject({ log: ["spoke", "held", "left", "right"] });
    const whole = events(await (await get(`${url}${path}/stream`)).text());
    expect(bytesOf(whole)).toBe(bytesOf(before) + bytesOf(rest));
  });
});

describe("two servers in one process", () => {
  test("on directories of their own know nothing of each other, and end apart", async () => {
    const [dataOne, dataTwo] = [await directory(), await directory()];
    const one = await serve({ data: dataOne, graphs });
    const two = await serve({ data: dataTwo, graphs });
    const thread_id = NOBODY;
    for (const { url } of [one, two]) await postJson(`${url}/threads`, { thread_id, metadata: { url } });
    const runs = (url: string) => `${url}/threads/${thread_id}/runs`;
    await postJson(`${runs(one.url)}/wait`, { assistant_id: "steps", input: {} });
    expect(await (await get(runs(two.url))).json()).toEqual([]);
    await one.close();
    expect(await (await get(`${two.url}/threads/${thread_id}`)).json()).toMatchObject({
      metadata: { url: two.url },
      values: null,
    });
    const values = await postJson(`${runs(two.url)}/wait`, { assistant_id: "steps", input: {} });
    expect(values).toEqual({ log: ["one", "two"] });
  });

  test("cannot have one directory: the second is refused, the first goes on, also with its run", async () => {
    const data = await directory();
    const gate = withHeld();
    const first = await serve({ data, graphs: gate.graphs });
    const thread = await newThread(first.url);
    const waited = post(`${first.url}/threads/${thread}/runs/wait`, {
      assistant_id: "held",
      input: { name: "a" },
    });
    await gate.waits("a");
    for (let attempt = 0; attempt < 2; attempt++) {
      await expect(serve({ data, graphs })).rejects.toMatchObject({ code: "storage.locked" });
    }
    gate.open("a");
    expect(await (await waited).json()).toEqual({ name: "a", log: ["a began", "a ended"] });
    await newThread(first.url);

    // When the first stop has ended, another one is possible.
    await first.close();
    const next = await serve({ data, graphs });
    expect(await (await get(`${next.url}/threads/${thread}`)).json()).toMatchObject({
      values: { log: ["a began", "a ended"] },
    });
  });
});
