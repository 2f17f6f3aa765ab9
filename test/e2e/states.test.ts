import { describe, expect, test } from "vitest";
import { graph, list, messages, value } from "../../src/index.ts";
import type { Ctx } from "../../src/index.ts";
import { lines } from "./support/clients.ts";
import { latches } from "./support/latches.ts";
import { differs } from "./support/suite-variant.ts";
import { directory, serve } from "./support/server.ts";
import { get, post, postJson } from "./support/wire.ts";

/** Repeats the last message. */
const chat = graph({
  state: { messages: messages(), mood: value("calm") },
  nodes: {
    agent: async ({ messages: said, mood }) => ({
      messages: [{ type: "ai", content: `${mood}: ${String(said.at(-1)?.content)}` }],
    }),
    polish: async () => ({ mood: "polite" }),
  },
  edges: { start: "agent", agent: "polish" },
});

const inner = graph({
  state: { log: list<string>() },
  nodes: {
    first: async () => ({ log: ["first"] }),
    ask: async (_: unknown, ctx: Ctx) => ({ log: [String(await ctx.interrupt("sure?"))] }),
  },
  edges: { start: "first", first: "ask" },
});
const outer = graph({
  state: { log: list<string>() },
  nodes: { sub: inner, after: async () => ({ log: ["after"] }) },
  edges: { start: "sub", sub: "after" },
});

type Said = { messages: { id: string; content: string }[]; mood: string };
const contents = (values: unknown) => (values as Said).messages.map(({ content }) => content);

describe.each(lines)("a thread's state over time, over %s", (_, connect) => {
  const start = async (options: Parameters<typeof serve>[0] = {}) => {
    const { url } = await serve({ graphs: { chat, outer }, ...options });
    const client = connect(url);
    const { thread_id } = await client.threads.create({ metadata: { graph_id: "chat" } });
    const say = (content: string, more: object = {}) =>
      client.runs.wait(thread_id, "chat", { input: { messages: [{ role: "user", content }] }, ...more });
    return { url, client, thread_id, say };
  };

  test("the history holds every state, newest first, with what its tasks did", async () => {
    const { client, thread_id, say } = await start();
    expect(await client.threads.getHistory(thread_id)).toEqual([]);
    await say("hello");
    const history = await client.threads.getHistory<Said>(thread_id);
    expect(history.map(({ next, metadata }) => [metadata?.source, metadata?.step, next])).toEqual([
      ["loop", 2, []],
      ["loop", 1, ["polish"]],
      ["loop", 0, ["agent"]],
      ["input", -1, ["__start__"]],
    ]);
    expect(history[0]).toEqual(await client.threads.getState(thread_id));
    expect(history.map(({ parent_checkpoint: parent }) => parent?.checkpoint_id)).toEqual([
      ...history.slice(1).map(({ checkpoint }) => checkpoint.checkpoint_id),
      undefined,
    ]);
    expect(history.map(({ tasks }) => tasks.map(({ name, result }) => [name, result]))).toMatchObject([
      [],
      [["polish", { mood: "polite" }]],
      [["agent", { messages: [{ content: "calm: hello" }] }]],
      [["__start__", { messages: [{ content: "hello" }] }]],
    ]);
    // Reading each state by itself gives the same result.
    for (const state of history) {
      const { checkpoint } = state;
      expect(await client.threads.getState(thread_id, checkpoint.checkpoint_id ?? "")).toEqual(state);
      expect(
        await client.threads.getState(thread_id, { ...checkpoint, thread_id: undefined } as never),
      ).toEqual(state);
    }
  });

  test("it comes in pages, and can be asked by metadata", async () => {
    const { client, thread_id, say } = await start();
    await say("one");
    await say("two");
    const all = await client.threads.getHistory(thread_id, { limit: 100 });
    expect(all).toHaveLength(8);
    const paged = [];
    for (let before: object | undefined; ;) {
      const page = await client.threads.getHistory(thread_id, { limit: 3, before: before as never });
      paged.push(...page);
      if (page.length < 3) break;
      before = { configurable: page.at(-1)?.checkpoint };
    }
    expect(paged).toEqual(all);
    const inputs = await client.threads.getHistory(thread_id, { metadata: { source: "input" } });
    expect(inputs).toEqual(all.filter(({ metadata }) => metadata?.source === "input"));
    const [run] = await client.runs.list(thread_id);
    expect(
      await client.threads.getHistory(thread_id, { metadata: { run_id: run?.run_id }, limit: 2 }),
    ).toEqual(all.slice(0, 2));
  });

  test("time travel: an earlier message is edited, both branches stay", async () => {
    const { client, thread_id, say } = await start();
    await say("hello");
    await say("how are you");
    const before = await client.threads.getHistory<Said>(thread_id, { limit: 100 });
    const place = before.find(({ next, values }) => next[0] === "agent" && values.messages.length === 1);
    const [message] = place?.values.messages ?? [];
    const updated = await client.threads.updateState(thread_id, {
      values: { messages: [{ ...message, content: "goodbye" }] },
      checkpointId: place?.checkpoint.checkpoint_id as string,
      asNode: "__start__",
    });
    const { checkpoint } = updated as unknown as { checkpoint: { checkpoint_id: string } };
    const edited = await client.threads.getState<Said>(thread_id);
    expect(edited).toMatchObject({
      checkpoint: { ...checkpoint, checkpoint_map: null },
      parent_checkpoint: place?.checkpoint,
      next: ["agent"],
      metadata: { source: "update", step: 1, graph_id: "chat", writes: { __start__: {} } },
    });
    expect(edited.values.messages).toMatchObject([{ id: message?.id, content: "goodbye" }]);
    expect(await client.threads.get(thread_id)).toMatchObject({ status: "interrupted", interrupts: {} });

    expect(contents(await client.runs.wait(thread_id, "chat", { input: null }))).toEqual([
      "goodbye",
      "calm: goodbye",
    ]);
    expect(await client.threads.get(thread_id)).toMatchObject({ status: "idle" });
    const after = await client.threads.getHistory<Said>(thread_id, { limit: 100 });
    // The states of the first branch are all unchanged, below those of the second.
    expect(after.slice(3)).toEqual(before);
    expect(after.slice(0, 3).map(({ metadata, next }) => [metadata?.source, next])).toEqual([
      ["loop", []],
      ["loop", ["polish"]],
      ["update", ["agent"]],
    ]);
    // The thread can continue from either branch.
    const checkpointId = before[0]?.checkpoint.checkpoint_id as string;
    expect(contents(await say("fine", { checkpointId }))).toHaveLength(6);
  });

  test("a run from an older state makes a state of its own there, and the history shows both", async () => {
    const { client, thread_id, say } = await start();
    await say("hello");
    const before = await client.threads.getHistory(thread_id);
    await client.runs.wait(thread_id, "chat", {
      input: null,
      checkpointId: before[2]?.checkpoint.checkpoint_id as string,
    });
    const after = await client.threads.getHistory(thread_id);
    expect(after.map(({ metadata, next }) => [metadata?.source, next])).toEqual([
      ["loop", []],
      ["loop", ["polish"]],
      ["fork", ["agent"]],
      ...before.map(({ metadata, next }) => [metadata?.source, next]),
    ]);
    expect(after[2]?.parent_checkpoint).toEqual(before[2]?.checkpoint);
    expect(after.slice(3)).toEqual(before);
    expect(after[0]).toEqual(await client.threads.getState(thread_id));
  });

  test("a thread is made of supersteps, all of them or nothing", async () => {
    const { client } = await start();
    const user = { role: "user", content: "hello" };
    const supersteps = [
      { updates: [{ values: { messages: [user] }, asNode: "__input__" }] },
      { updates: [{ values: { messages: [user] }, asNode: "__start__" }] },
      { updates: [{ values: { messages: [{ role: "assistant", content: "hi" }] }, asNode: "agent" }] },
    ];
    const made = await client.threads.create({ supersteps, graphId: "chat" });
    expect(made).toMatchObject({ status: "interrupted", metadata: { graph_id: "chat" } });
    expect(contents(made.values)).toEqual(["hello", "hi"]);
    const history = await client.threads.getHistory(made.thread_id);
    expect(history.map(({ metadata, next }) => [metadata?.source, metadata?.step, next])).toEqual([
      ["update", 1, ["polish"]],
      ["update", 0, ["agent"]],
      ["input", -1, ["__start__"]],
    ]);
    expect(await client.runs.wait(made.thread_id, "chat", { input: null })).toMatchObject({ mood: "polite" });

    const threadId = "01990000-0000-7000-8000-00000000abcd";
    const wrong = [...supersteps, { updates: [{ values: {}, asNode: "nobody" }] }];
    await expect(
      client.threads.create({ supersteps: wrong, graphId: "chat", threadId }),
    ).rejects.toMatchObject({
      status: 422,
      message: expect.stringContaining("supersteps[3].updates[0].as_node"),
    });
    await expect(client.threads.get(threadId)).rejects.toMatchObject({ status: 404 });
  });

  test("a subgraph's states have a history of their own", async () => {
    const { client } = await start();
    const { thread_id } = await client.threads.create();
    await client.runs.wait(thread_id, "outer", { input: { log: [] } });
    const [paused] = await client.threads.getHistory(thread_id, { limit: 1 });
    const ns = paused?.tasks[0]?.checkpoint as { checkpoint_ns: string };
    expect(ns.checkpoint_ns).toMatch(/^sub:/);
    const checkpoint = { checkpoint_ns: ns.checkpoint_ns } as never;
    const within = await client.threads.getHistory(thread_id, { checkpoint });
    expect(within.map(({ metadata, next }) => [metadata?.source, next])).toEqual([
      ["loop", ["ask"]],
      ["loop", ["first"]],
      ["input", ["__start__"]],
    ]);
    expect(within[0]?.tasks[0]?.interrupts).toMatchObject([{ value: "sure?" }]);
    expect(await client.threads.getState(thread_id, checkpoint)).toEqual(within[0]);
    const whole = await client.threads.getState(thread_id, paused?.checkpoint as never, { subgraphs: true });
    expect(whole.tasks[0]?.state).toEqual(within[0]);
    // Also by the map of a checkpoint.
    const mapped = {
      checkpoint_ns: ns.checkpoint_ns,
      checkpoint_map: { [ns.checkpoint_ns]: within[1]?.checkpoint.checkpoint_id },
    } as never;
    expect(await client.threads.getState(thread_id, mapped)).toEqual(within[1]);
  });
});

describe.each(lines)("a subgraph's state over %s", (_, connect) => {
  const paused = async () => {
    const { url } = await serve({ graphs: { outer } });
    const client = connect(url);
    const { thread_id } = await client.threads.create();
    const wait = (payload: object) => client.runs.wait(thread_id, "outer", payload);
    expect(await wait({ input: { log: [] } })).toMatchObject({ __interrupt__: [{ value: "sure?" }] });
    const ns = async () => {
      const state = await client.threads.getState(thread_id);
      const [task] = state.tasks;
      return { checkpoint_ns: task?.checkpoint?.checkpoint_ns } as never;
    };
    const update = async (values: object | null, asNode?: string) =>
      client.threads.updateState(thread_id, {
        values: values as never,
        checkpoint: await ns(),
        ...(asNode !== undefined && { asNode }),
      });
    return { url, client, thread_id, wait, ns, update };
  };

  test("an update takes the place of what its node would have said, and of the question", async () => {
    const { client, thread_id, wait, ns, update } = await paused();
    const { checkpoint } = (await update({ log: ["for it"] }, "ask")) as unknown as { checkpoint: object };
    expect(checkpoint).toMatchObject(await ns());
    const within = await client.threads.getState(thread_id, await ns());
    expect(within).toMatchObject({
      values: { log: ["first", "for it"] },
      next: [],
      metadata: { source: "update" },
    });
    expect(within.metadata).toMatchObject({ parents: { "": expect.any(String) } });
    expect(await client.threads.get(thread_id)).toMatchObject({ status: "interrupted", interrupts: {} });
    expect((await client.threads.getState(thread_id)).tasks[0]?.interrupts).toEqual([]);
    expect(await wait({ input: null })).toEqual({ log: ["first", "for it", "after"] });
  });

  test("one that requires the latest state of the subgraph is refused at an earlier one", async () => {
    const { url, client, thread_id, ns } = await paused();
    const { checkpoint_id } = await client.threads
      .getState(thread_id, await ns())
      .then((one) => one.checkpoint);
    const checkpoint = { ...((await ns()) as object), checkpoint_id };
    const update = () =>
      post(`${url}/threads/${thread_id}/state`, { values: { log: ["x"] }, checkpoint, require_latest: true });
    expect((await update()).status).toBe(200);
    expect((await update()).status).toBe(409);
  });

  test("one before its question has it asked anew", async () => {
    const { wait, update } = await paused();
    await update({ log: ["more"] });
    if (!differs("answers where nothing waits")) {
      await expect(wait({ command: { resume: "yes" } })).rejects.toMatchObject({ status: 422 });
      expect(await wait({ input: null })).toMatchObject({ __interrupt__: [{ value: "sure?" }] });
    }
    expect(await wait({ command: { resume: "yes" } })).toEqual({ log: ["first", "more", "yes", "after"] });
  });

  test("one of a subgraph that is not at work is refused", async () => {
    const { client, thread_id, wait, ns } = await paused();
    const checkpoint = await ns();
    await wait({ command: { resume: "yes" } });
    const asked = client.threads.updateState(thread_id, { values: { log: [] }, checkpoint });
    await expect(asked).rejects.toMatchObject({
      status: 422,
      message: expect.stringContaining("checkpoint.checkpoint_ns"),
    });
    expect((await client.threads.getState(thread_id)).values).toEqual({ log: ["first", "yes", "after"] });
  });
});

describe("an update that is refused", () => {
  const started = async () => {
    const gates = latches();
    const slow = graph({
      state: { log: list<string>(), say: value("") },
      nodes: {
        wait: async () => {
          gates("in").pass();
          await gates("out").passed;
          return { log: ["done"] };
        },
      },
      edges: { start: "wait" },
    });
    const { url } = await serve({ graphs: { slow } });
    const { thread_id } = await postJson<{ thread_id: string }>(`${url}/threads`, {
      metadata: { graph_id: "slow" },
    });
    const state = `${url}/threads/${thread_id}/state`;
    const refused = async (body: unknown) => {
      const before = await (await get(state)).text();
      const answer = await post(state, body);
      expect(await (await get(state)).text()).toBe(before);
      return {
        status: answer.status,
        ...((await answer.json()) as { detail: string; errors?: { at: string }[] }),
      };
    };
    return { url, thread_id, state, refused, gates };
  };

  const table: readonly (readonly [string, object, number, string | undefined])[] = [
    ["an unknown node", { values: {}, as_node: "nobody" }, 422, "as_node"],
    ["a node that is no text", { values: {}, as_node: 5 }, 422, "as_node"],
    ["an unknown key", { values: { lag: [] } }, 422, "values.lag"],
    ["a value of the wrong type", { values: { log: "x" } }, 422, "values.log"],
    ["no object", { values: 5 }, 422, "values"],
    ["a checkpoint that is no id", { values: {}, checkpoint_id: "x" }, 422, "checkpoint_id"],
    ["a checkpoint that is no object", { values: {}, checkpoint: "x" }, 422, "checkpoint"],
    ["nobody's checkpoint", { checkpoint_id: "1f0c5c11-0000-6000-8000-000000000000" }, 404, undefined],
    ["a copy of nothing", { as_node: "__copy__" }, 422, "as_node"],
  ];
  const loose = differs("unknown keys") && differs("types of values");
  const checked = table.filter(
    ([what]) => !loose || (what !== "an unknown key" && what !== "a value of the wrong type"),
  );
  test.each(checked)("%s", async (_, body, status, at) => {
    const { refused } = await started();
    const answer = await refused(body);
    expect(answer.status).toBe(status);
    expect(answer.errors?.[0]?.at).toBe(at);
    expect(typeof answer.detail).toBe("string");
  });

  test("while a run is in progress: 409, and afterwards it is served", async () => {
    const { url, thread_id, refused, state, gates } = await started();
    const run = await postJson<{ run_id: string }>(`${url}/threads/${thread_id}/runs`, {
      assistant_id: "slow",
      input: { log: [] },
    });
    await gates("in").passed;
    const answer = await post(state, { values: { say: "x" } });
    expect([answer.status, await answer.json()]).toMatchObject([
      409,
      { detail: expect.stringMatching(/busy/) },
    ]);
    gates("out").pass();
    await get(`${url}/threads/${thread_id}/runs/${run.run_id}/join`);
    expect((await post(state, { values: { say: "x" } })).status).toBe(200);
    expect(await (await get(state)).json()).toMatchObject({ values: { log: ["done"], say: "x" } });
    expect((await refused({ values: 1 })).status).toBe(422);
  });

  test("one that requires the latest state, of a state that is not: 409; without that, it begins a branch", async () => {
    const { refused, state } = await started();
    const update = async (say: string, more: object = {}) => {
      const answer = await post(state, { values: { say }, as_node: "wait", ...more });
      return { status: answer.status, ...((await answer.json()) as { checkpoint_id: string }) };
    };
    const first = await update("one");
    const based = { checkpoint_id: first.checkpoint_id, require_latest: true };
    // Of two that come together, one is stored.
    const both = await Promise.all([update("two", based), update("three", based)]);
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 409]);
    expect(await refused({ values: { say: "four" }, ...based })).toMatchObject({
      status: 409,
      code: "checkpoint.outdated",
      detail: expect.stringContaining(first.checkpoint_id),
    });
    expect((await refused({ values: {}, require_latest: "yes" })).errors?.[0]?.at).toBe("require_latest");
    const branch = await update("five", { checkpoint_id: first.checkpoint_id });
    expect(await (await get(state)).json()).toMatchObject({
      values: { say: "five" },
      checkpoint_id: branch.checkpoint_id,
      parent_checkpoint_id: first.checkpoint_id,
    });
  });

  test("on a thread without a graph, or of an unknown one, or without a thread", async () => {
    const { url } = await serve();
    const made = async (metadata: object) => {
      const { thread_id } = await postJson<{ thread_id: string }>(`${url}/threads`, { metadata });
      return post(`${url}/threads/${thread_id}/state`, { values: {} });
    };
    const none = await made({});
    expect([none.status, await none.json()]).toMatchObject([
      400,
      { detail: expect.stringMatching(/has no graph ID/) },
    ]);
    expect((await made({ graph_id: "nobody" })).status).toBe(404);
    const nobody = `${url}/threads/01990000-0000-7000-8000-00000000abcd`;
    expect((await post(`${nobody}/state`, { values: {} })).status).toBe(404);
    expect((await get(`${nobody}/history`)).status).toBe(404);
    expect((await get(`${nobody}/state/1f0c5c11-0000-6000-8000-000000000000`)).status).toBe(404);
  });
});

describe("what is asked wrongly of the history", () => {
  test.each([
    ["limit=0", "limit"],
    ["limit=1001", "limit"],
    ["before=x", "before"],
    ["select=nothing", "select"],
  ])("%s", async (query, at) => {
    const { url } = await serve();
    const { thread_id } = await postJson<{ thread_id: string }>(`${url}/threads`);
    const answer = await get(`${url}/threads/${thread_id}/history?${query}`);
    expect([answer.status, await answer.json()]).toMatchObject([422, { errors: [{ at }] }]);
  });
  test.each([
    [{ limit: 0 }, "limit"],
    [{ before: "x" }, "before"],
    [{ before: { configurable: { checkpoint_id: 5 } } }, "before.configurable.checkpoint_id"],
    [{ checkpoint: { checkpoint_ns: 5 } }, "checkpoint.checkpoint_ns"],
    [{ metadata: 5 }, "metadata"],
  ])("%j", async (body, at) => {
    const { url } = await serve();
    const { thread_id } = await postJson<{ thread_id: string }>(`${url}/threads`);
    const answer = await post(`${url}/threads/${thread_id}/history`, body);
    expect([answer.status, await answer.json()]).toMatchObject([422, { errors: [{ at }] }]);
  });

  test("a small key of a long history costs no more than itself", async () => {
    const { url } = await serve({ graphs: { chat } });
    const { thread_id } = await postJson<{ thread_id: string }>(`${url}/threads`);
    await postJson(`${url}/threads/${thread_id}/runs/wait`, {
      assistant_id: "chat",
      input: { messages: [{ role: "user", content: "x" }] },
    });
    const answer = await get(`${url}/threads/${thread_id}/history?select=values.mood&limit=2`);
    expect(await answer.json()).toEqual([{ values: { mood: "polite" } }, { values: { mood: "calm" } }]);
    const asked = { select: ["next", "metadata"], limit: 1 };
    const [latest] = await postJson<object[]>(`${url}/threads/${thread_id}/history`, asked);
    expect(Object.keys(latest ?? {})).toEqual(["next", "metadata"]);
    expect(latest).toMatchObject({
      next: [],
      metadata: { source: "loop", writes: expect.anything() as unknown },
    });
    const members = { select: ["metadata.step", "metadata.source", "metadata.nothing"], limit: 1 };
    expect(await postJson(`${url}/threads/${thread_id}/history`, members)).toEqual([
      { metadata: { step: expect.any(Number) as number, source: "loop" } },
    ]);
  });
});

describe("the lists of a state", () => {
  const said = (state: unknown) => contents((state as { values: unknown }).values);

  test("are shortened to their last elements, with their whole lengths beside", async () => {
    const { url } = await serve({ graphs: { chat } });
    const { thread_id } = await postJson<{ thread_id: string }>(`${url}/threads`);
    const state = `${url}/threads/${thread_id}/state`;
    // A thread without a state has no lists.
    expect((await get(`${state}?list_limit=2`)).status).toBe(200);
    const input = { messages: ["a", "b", "c"].map((content) => ({ role: "user", content })) };
    await postJson(`${url}/threads/${thread_id}/runs/wait`, { assistant_id: "chat", input });
    const read = async (path: string) => (await get(`${state}${path}`)).json();
    const whole = (await read("")) as { checkpoint: { checkpoint_id: string } };
    const { checkpoint_id } = whole.checkpoint;
    expect(said(whole)).toEqual(["a", "b", "c", "calm: c"]);
    expect(whole).not.toHaveProperty("list_lengths");
    for (const short of [
      await read("?list_limit=2"),
      await read(`/${checkpoint_id}?list_limit=2`),
      await postJson(`${state}/checkpoint`, { checkpoint_id, list_limit: 2 }),
    ]) {
      expect(said(short)).toEqual(["c", "calm: c"]);
      expect(short).toEqual({
        ...whole,
        values: { messages: expect.any(Array) as unknown, mood: "polite" },
        list_lengths: { messages: 4 },
      });
    }
    expect(await read("?list_limit=4")).toEqual({ ...whole, list_lengths: {} });
    expect(await read("?list_limit=1&select=values.messages,next")).toEqual({
      values: { messages: [expect.objectContaining({ content: "calm: c" })] },
      next: [],
      list_lengths: { messages: 4 },
    });
    // What is stored is unchanged, also where it was in memory.
    expect(await read("")).toEqual(whole);
  });

  test("are shortened in the states of subgraphs, too", async () => {
    const { url } = await serve({ graphs: { outer } });
    const { thread_id } = await postJson<{ thread_id: string }>(`${url}/threads`);
    const input = { log: ["a", "b", "c"] };
    await postJson(`${url}/threads/${thread_id}/runs/wait`, { assistant_id: "outer", input });
    const answer = await get(`${url}/threads/${thread_id}/state?subgraphs=true&list_limit=1`);
    expect(await answer.json()).toMatchObject({
      values: { log: ["c"] },
      list_lengths: { log: 3 },
      tasks: [{ state: { values: { log: ["first"] }, list_lengths: { log: 4 } } }],
    });
  });

  test.each(["0", "-1", "1.5", "x", "99999999999"])("%s elements: 422, with the parameter", async (limit) => {
    const { url } = await serve({ graphs: { chat } });
    const { thread_id } = await postJson<{ thread_id: string }>(`${url}/threads`);
    const answer = await get(`${url}/threads/${thread_id}/state?list_limit=${limit}`);
    expect(answer.status).toBe(422);
    expect(await answer.json()).toMatchObject({ detail: expect.stringContaining("list_limit") as string });
    const sent = await post(`${url}/threads/${thread_id}/state/checkpoint`, { list_limit: limit });
    expect([sent.status, await sent.json()]).toMatchObject([422, { errors: [{ at: "list_limit" }] }]);
  });
});

test("an update that was acknowledged is there after a restart, and runs go on from it", async () => {
  const data = await directory();
  const first = await serve({ data, graphs: { chat } });
  const { thread_id } = await postJson<{ thread_id: string }>(`${first.url}/threads`, {
    metadata: { graph_id: "chat" },
  });
  await postJson(`${first.url}/threads/${thread_id}/state`, {
    values: { messages: [{ role: "user", content: "hello" }], mood: "glad" },
  });
  await first.close(0);
  const { url } = await serve({ data, graphs: { chat } });
  expect(await (await get(`${url}/threads/${thread_id}`)).json()).toMatchObject({ status: "interrupted" });
  const values = await postJson(`${url}/threads/${thread_id}/runs/wait`, {
    assistant_id: "chat",
    input: null,
  });
  expect(contents(values)).toEqual(["hello", "glad: hello"]);
});
