import { describe, expect, test } from "vitest";
import { END, graph, list, messages, send, to, value } from "../../src/index.ts";
import { type Client, lines } from "./support/clients.ts";
import { differs } from "./support/suite-variant.ts";
import { serve } from "./support/server.ts";

/** A subgraph that asks in its second node. `secret` is a key of its own. */
const review = graph({
  state: { topic: value(""), verdict: value<unknown>(), secret: value("untold") },
  nodes: {
    look: async ({ topic }, ctx) => {
      ctx.emit({ looked: topic, ns: ctx.ns });
      return { secret: `seen ${topic}` };
    },
    ask: async ({ secret }, ctx) => ({ verdict: [secret, await ctx.interrupt({ ok: secret })] }),
  },
  edges: { start: "look", look: "ask" },
});

const outer = graph({
  state: { topic: value(""), verdict: value<unknown>(), log: list<string>() },
  nodes: {
    plan: async () => ({ topic: "tea", log: ["planned"] }),
    review,
    done: async ({ verdict }) => ({ log: [JSON.stringify(verdict)] }),
  },
  edges: { start: "plan", plan: "review", review: "done" },
});

const chat = graph({
  state: { messages: messages() },
  nodes: {
    model: async (_, ctx) => {
      const message = ctx.message();
      message.write("hel");
      message.write("lo");
      return { messages: [message.end()] };
    },
  },
  edges: { start: "model" },
});
const talk = graph({ state: { messages: messages() }, nodes: { chat }, edges: { start: "chat" } });

/** Three levels; the innermost graph asks. */
const bottom = graph({
  state: { log: list<string>(), answer: value<unknown>() },
  nodes: { ask: async (_, ctx) => ({ answer: await ctx.interrupt(ctx.ns) }) },
  edges: { start: "ask" },
});
const middle = graph({ state: { answer: value<unknown>() }, nodes: { bottom }, edges: { start: "bottom" } });
const top = graph({ state: { answer: value<unknown>() }, nodes: { middle }, edges: { start: "middle" } });

/** One graph, started several times by `send`; each of its runs asks. */
const each = graph({
  state: { n: value(0), found: list<string>() },
  nodes: { ask: async ({ n }, ctx) => ({ found: [`${n}:${String(await ctx.interrupt(n))}`] }) },
  edges: { start: "ask" },
});
const fan = graph({
  state: { found: list<string>() },
  nodes: {
    spread: async () => [1, 2, 3].map((n) => send("each", { n })),
    each,
  },
  edges: { start: "spread" },
});

const leaving = graph({
  state: { log: list<string>() },
  nodes: { go: async () => to.parent("other", { log: ["left"] }), never: async () => ({ log: ["never"] }) },
  edges: { start: "go", go: "never" },
});
const left = graph({
  state: { log: list<string>() },
  nodes: { leaving, other: async () => to(END, { log: ["other"] }) },
  edges: { start: "leaving" },
});

const graphs = { outer, talk, top, fan, left };

interface Event {
  readonly event: string;
  readonly data: unknown;
}

async function all(stream: AsyncIterable<{ readonly event: string; readonly data: unknown }>) {
  const events: Event[] = [];
  for await (const { event, data } of stream) events.push({ event, data });
  return events;
}

/** Removes task ids from event names. */
const plain = (event: string) => event.replaceAll(/:[0-9a-f-]{36}/g, "");

interface Question {
  readonly id: string;
  readonly value: unknown;
  readonly ns: readonly string[];
}
const questions = (answer: unknown): readonly Question[] =>
  (answer as { __interrupt__?: readonly Question[] }).__interrupt__ ?? [];

async function start(connect: (url: string) => Client) {
  const { url } = await serve({ graphs });
  const client = connect(url);
  const { thread_id } = await client.threads.create();
  const wait = (name: string, options: Parameters<Client["runs"]["wait"]>[2]) =>
    client.runs.wait(thread_id, name, options);
  return { url, client, thread_id, wait };
}

describe.each(lines)("graphs that are nodes, over %s", (_, connect) => {
  test("pause the run at a question inside, and go on there, without what has ended", async () => {
    const { client, thread_id, wait } = await start(connect);
    const paused = await wait("outer", { input: {} });
    const [question] = questions(paused);
    expect(question).toMatchObject({ value: { ok: "seen tea" }, resumable: true, when: "during" });
    expect(question?.ns.map(plain)).toEqual(["review", "ask"]);
    expect((await client.threads.get(thread_id)).status).toBe("interrupted");

    const events = await all(
      client.runs.stream(thread_id, "outer", {
        command: { resume: false },
        streamMode: ["updates", "custom"],
        streamSubgraphs: true,
      }),
    );
    expect(events.map(({ event }) => plain(event))).toEqual([
      "metadata",
      "updates|review",
      "updates",
      "updates",
    ]);
    const { values } = await client.threads.getState(thread_id);
    expect(values).toEqual({
      topic: "tea",
      verdict: ["seen tea", false],
      log: ["planned", '["seen tea",false]'],
    });
  });

  test("one may be looked at alone, by its namespace, and so may the graph around it", async () => {
    const { url, client, thread_id } = await start(connect);
    const whole = await all(
      client.runs.stream(thread_id, "outer", {
        input: {},
        streamMode: ["values", "updates", "custom"],
        streamSubgraphs: true,
      }),
    );
    const [run] = await client.runs.list(thread_id);
    const ns = whole.find(({ event }) => event.startsWith("custom"))?.event.split("|")[1] ?? "";
    const read = async (query: string) => {
      const response = await fetch(`${url}/threads/${thread_id}/runs/${run?.run_id}/stream?${query}`);
      return [...(await response.text()).matchAll(/^event: (.*)$/gm)].map(([, event]) => event);
    };
    const names = whole.map(({ event }) => event);
    expect(await read(`namespace=${encodeURIComponent(ns)}`)).toEqual(
      names.filter((event) => event === "metadata" || event.endsWith(`|${ns}`)),
    );
    expect(await read("namespace=")).toEqual(names.filter((event) => !event.includes("|")));
    expect(await read(`namespace=&namespace=${encodeURIComponent(ns)}`)).toEqual(names);
    expect(await read("namespace=nobody")).toEqual(["metadata"]);
  });

  test("a run may be taken up behind a state that its reader has", async () => {
    const { url, client, thread_id } = await start(connect);
    await client.runs.wait(thread_id, "outer", { input: { log: [] } });
    const [run] = await client.runs.list(thread_id);
    const history = await client.threads.getHistory(thread_id);
    const read = async (query: string) => {
      const response = await fetch(
        `${url}/threads/${thread_id}/runs/${run?.run_id}/stream?stream_mode=values${query}`,
      );
      return [...(await response.text()).matchAll(/^event: values\ndata: (.*)$/gm)].map(
        ([, data]) => JSON.parse(data as string) as unknown,
      );
    };
    const whole = await read("");
    const states = history.toReversed().filter(({ metadata }) => metadata?.source !== "input");
    for (const [i, { checkpoint }] of states.entries()) {
      expect(await read(`&checkpoint_id=${checkpoint.checkpoint_id}`)).toEqual(whole.slice(i + 1));
    }
    // A checkpoint of another run, or of none: everything is sent.
    expect(await read("&checkpoint_id=00000000-0000-4000-8000-000000000000")).toEqual(whole);
  });

  test("show their events under their namespace to those who ask for subgraphs, and only custom data to others", async () => {
    const { client, thread_id } = await start(connect);
    const options = {
      input: { log: [] },
      streamMode: ["values", "updates", "custom"] as ("values" | "updates" | "custom")[],
    };
    const shown = await all(client.runs.stream(thread_id, "outer", { ...options, streamSubgraphs: true }));
    expect(shown.map(({ event }) => plain(event))).toEqual([
      "metadata",
      "values",
      "updates",
      "values",
      "values|review",
      "custom|review",
      "updates|review",
      "values|review",
      "updates|review",
      "values|review",
      "updates",
      "values",
    ]);
    const ns = shown.find(({ event }) => event.startsWith("custom"))?.event.split("|")[1];
    expect(ns).toMatch(/^review:[0-9a-f-]{36}$/);
    expect(shown.find(({ event }) => event.startsWith("custom"))?.data).toEqual({ looked: "tea", ns });
    expect(shown.find(({ event }) => event.startsWith("values|"))?.data).toEqual({
      topic: "tea",
      secret: "untold",
    });

    const { thread_id: other } = await client.threads.create();
    const hidden = await all(client.runs.stream(other, "outer", options));
    expect(hidden.map(({ event }) => event)).toEqual([
      "metadata",
      "values",
      "updates",
      "values",
      "custom",
      "updates",
      "values",
    ]);
  });

  test("tokens come from any depth; their metadata says from where", async () => {
    const { client, thread_id } = await start(connect);
    const input = { messages: [{ role: "user", content: "hi" }] };
    const told = async (streamSubgraphs: boolean) => {
      const events = await all(
        client.runs.stream(thread_id, "talk", { input, streamMode: "messages-tuple", streamSubgraphs }),
      );
      return events.filter(({ event }) => event.startsWith("messages"));
    };
    const hidden = await told(false);
    expect(hidden.map(({ event, data }) => [event, (data as [{ content: string }])[0].content])).toEqual([
      ["messages", "hel"],
      ["messages", "lo"],
    ]);
    const [, meta] = (hidden[0] as Event).data as [unknown, { [key: string]: string }];
    expect(meta["langgraph_node"]).toBe("model");
    expect(plain(meta["langgraph_checkpoint_ns"] ?? "")).toBe("chat|model");
    expect(plain(meta["checkpoint_ns"] ?? "")).toBe(
      differs("namespaces of messages") ? "chat|model" : "chat",
    );
    expect((await told(true)).map(({ event }) => plain(event))).toEqual([
      "messages|chat|model",
      "messages|chat|model",
    ]);
  });

  test("have a state of their own, which the thread's shows where it is asked for", async () => {
    const { client, thread_id, wait } = await start(connect);
    await wait("outer", { input: {} });
    const flat = await client.threads.getState(thread_id);
    expect(flat.next).toEqual(["review"]);
    expect(flat.tasks[0]?.state ?? null).toBeNull();
    expect(flat.tasks[0]?.checkpoint).toMatchObject({
      thread_id,
      checkpoint_ns: expect.stringMatching(/^review:/),
    });

    const nested = await client.threads.getState(thread_id, undefined, { subgraphs: true });
    const inner = nested.tasks[0]?.state;
    expect(inner?.values).toEqual({ topic: "tea", secret: "seen tea" });
    expect(inner?.next).toEqual(["ask"]);
    expect(inner?.tasks[0]?.interrupts).toMatchObject([{ value: { ok: "seen tea" } }]);
    expect(inner?.metadata).toMatchObject({ step: 1, parents: { "": nested.checkpoint.checkpoint_id } });
    expect(inner?.checkpoint.checkpoint_ns).toBe(flat.tasks[0]?.checkpoint?.checkpoint_ns);
  });

  test("nest: a question three levels down is answered there", async () => {
    const { client, thread_id, wait } = await start(connect);
    const [question] = questions(await wait("top", { input: {} }));
    expect(question?.ns.map(plain)).toEqual(["middle", "bottom", "ask"]);
    expect(question?.value).toBe(question?.ns.slice(0, 2).join("|"));
    const state = await client.threads.getState(thread_id, undefined, { subgraphs: true });
    expect(state.tasks[0]?.state?.tasks[0]?.state?.next).toEqual(["ask"]);
    expect(await wait("top", { command: { resume: { deep: 1 } } })).toEqual({ answer: { deep: 1 } });
  });

  test("called many times by send, each asks for itself; answers come by id, some now, some later", async () => {
    const { wait } = await start(connect);
    const asked = questions(await wait("fan", { input: {} }));
    expect(asked.map((one) => one.value)).toEqual([1, 2, 3]);
    await expect(wait("fan", { command: { resume: "which?" } })).rejects.toThrow(/3 interrupts wait/);
    const [one, two, three] = asked.map(({ id }) => id);
    const rest = await wait("fan", { command: { resume: { [one as string]: "a", [three as string]: "c" } } });
    expect(questions(rest).map(({ id }) => id)).toEqual([two]);
    expect(await wait("fan", { command: { resume: { [two as string]: "b" } } })).toEqual({
      found: ["1:a", "2:b", "3:c"],
    });
  });

  test("are left for a node of the graph above", async () => {
    const { wait } = await start(connect);
    expect(await wait("left", { input: {} })).toEqual({ log: ["left", "other"] });
  });

  test("going on without an answer asks again; an answer by the id reaches the task inside", async () => {
    const { wait } = await start(connect);
    const first = questions(await wait("outer", { input: {} }));
    const second = questions(await wait("outer", { input: null }));
    // A run without an answer asks the same question again.
    expect(second.map(({ id }) => id)).toEqual(first.map(({ id }) => id));
    const id = first[0]?.id ?? "";
    expect(await wait("outer", { command: { resume: { [id]: "by id" } } })).toMatchObject({
      verdict: ["seen tea", "by id"],
    });
  });

  test.skipIf(differs("breakpoints in graphs within"))(
    "breakpoints inside are named by the way to them",
    async () => {
      const { client, thread_id, wait } = await start(connect);
      for (const point of ["review|nobody", "plan|ask", "nobody|ask", "review|ask|deeper"]) {
        await expect(wait("outer", { input: {}, interruptBefore: [point] })).rejects.toThrow(/is no node/);
      }
      expect(questions(await wait("outer", { input: {}, interruptBefore: ["review|ask"] }))).toEqual([]);
      const state = await client.threads.getState(thread_id, undefined, { subgraphs: true });
      expect(state.next).toEqual(["review"]);
      expect(state.tasks[0]?.state?.next).toEqual(["ask"]);
      expect((await client.threads.get(thread_id)).status).toBe("interrupted");
      expect(questions(await wait("outer", { input: null }))).toMatchObject([{ value: { ok: "seen tea" } }]);
    },
  );
});
