import { z } from "zod";
import { graph, list, messages, runTools, send, tool, value } from "../../../src/index.ts";
import type { AppOptions } from "../../../src/app.ts";

type Members = { readonly [name: string]: unknown };
type Graphs = NonNullable<AppOptions["graphs"]>;

const logState = { log: list<string>(), topic: value("nothing") };

const inner = graph({
  state: logState,
  nodes: {
    step: async (_, ctx) => {
      ctx.emit("from within");
      return { log: ["inner step"] };
    },
    ask: async ({ topic }, ctx) =>
      topic === "ask"
        ? { log: [`inner ${await ctx.interrupt<string>("inner?")}`] }
        : { log: ["inner asked nothing"] },
  },
  edges: { start: "step", step: "ask" },
});

const weather = tool({
  name: "weather",
  description: "The weather in a city",
  schema: z.object({ city: z.string() }),
  run: ({ city }) => `It is sunny in ${city}`,
});

const query = z.object({ query: z.string() });
const search = tool({
  name: "search",
  description: "Searches",
  schema: query,
  async *run({ query: asked }) {
    yield { found: 1 };
    yield "half";
    return `Found ${asked}`;
  },
});
const broken = tool({
  name: "broken",
  description: "Fails",
  schema: query,
  run: ({ query: asked }) => {
    throw new TypeError(`no ${asked}`);
  },
});

const searching = graph({
  state: { messages: messages() },
  nodes: {
    agent: async ({ messages: said }, ctx) => {
      const message = ctx.message();
      const calls = said.filter(({ type }) => type === "tool").length;
      const name = ["search", "broken"][calls];
      if (name === undefined) message.write("That is all");
      else message.toolCall({ id: `call_${calls}`, name, args: { query: "tea" } });
      return { messages: [message.end()] };
    },
    tools: async ({ messages: said }, ctx) => ({ messages: await runTools([search, broken], said, ctx) }),
  },
  edges: {
    start: "agent",
    agent: ({ messages: said }) => ((said.at(-1)?.tool_calls ?? []).length > 0 ? "tools" : "__end__"),
    tools: "agent",
  },
});

/** Milliseconds between two reads of the store. */
const PERIOD = 10;

/** The graphs of the conformance project (`test/conformance`), written in Heddle's own form: the same names, nodes and states. */
export const conformanceGraphs: Graphs = {
  steps: graph({
    state: logState,
    nodes: {
      first: async ({ topic }) => ({ log: [`first about ${topic}`] }),
      second: async ({ log }) => ({ log: [`second after ${log.length}`] }),
    },
    edges: { start: "first", first: "second" },
  }),
  approval: graph({
    state: logState,
    nodes: {
      write: async ({ topic }) => ({ log: [`wrote about ${topic}`] }),
      review: async ({ topic }, ctx) => {
        const { ok } = await ctx.interrupt<{ ok: boolean }>({ draft: `Draft: ${topic}` });
        return { log: [ok ? "approved" : "refused"] };
      },
      send: async () => ({ log: ["sent"] }),
    },
    edges: { start: "write", write: "review", review: "send" },
  }),
  questions: graph({
    state: logState,
    nodes: {
      left: async (_, ctx) => ({ log: [`left ${await ctx.interrupt<string>("left?")}`] }),
      right: async (_, ctx) => {
        const first = await ctx.interrupt<string>("right?");
        const second = await ctx.interrupt<string>("sure?");
        return { log: [`right ${first} ${second}`] };
      },
      join: { after: ["left", "right"], run: async () => ({ log: ["joined"] }) },
    },
    edges: { start: ["left", "right"] },
  }),
  failing: graph({
    state: logState,
    nodes: {
      good: async () => ({ log: ["good"] }),
      bad: async ({ topic }) => {
        if (topic !== "mended") throw new TypeError("kaboom");
        return { log: ["mended"] };
      },
    },
    edges: { start: "good", good: "bad" },
  }),
  branches: graph({
    state: logState,
    nodes: {
      begin: async (_, ctx) => {
        ctx.emit({ progress: 0.5, text: 'é\n"quoted"\u2028' });
        ctx.emit([1, null]);
        ctx.emit("text");
        return { log: ["begun"] };
      },
      left: async () => ({ log: ["left"] }),
      silent: async () => ({}),
      spread: { after: ["left", "silent"], run: async () => ({}) },
      worker: async ({ topic }) => ({ log: [`worked on ${topic}`] }),
      gather: async () => ({ log: ["gathered"] }),
      last: async () => ({ log: ["last"] }),
    },
    edges: {
      start: "begin",
      begin: ["left", "silent"],
      spread: () => ["a", "b"].map((topic) => send("worker", { topic, log: [] })),
      worker: "gather",
      gather: "last",
    },
  }),
  chat: graph({
    state: { messages: messages() },
    nodes: {
      answer: async (_, ctx) => {
        const message = ctx.message();
        for (const word of ["Hello ", "from ", "the ", "model"]) message.write(word);
        return { messages: [message.end()] };
      },
    },
    edges: { start: "answer" },
  }),
  agent: graph({
    state: { messages: messages() },
    nodes: {
      agent: async ({ messages: said }, ctx) => {
        const message = ctx.message();
        if (said.at(-1)?.type === "tool") message.write("It is sunny");
        else {
          message.write("Let me look ");
          message.toolCall({ id: "call_0", name: "weather", args: { city: "Lisbon" } });
        }
        return { messages: [message.end()] };
      },
      tools: async ({ messages: said }, ctx) => ({ messages: await runTools([weather], said, ctx) }),
    },
    edges: {
      start: "agent",
      agent: ({ messages: said }) => ((said.at(-1)?.tool_calls ?? []).length > 0 ? "tools" : "__end__"),
      tools: "agent",
    },
  }),
  tools: graph({ state: { messages: messages() }, nodes: { sub: searching }, edges: { start: "sub" } }),
  nested: graph({
    state: logState,
    nodes: { before: async () => ({ log: [] }), sub: inner, after: async () => ({ log: ["after"] }) },
    edges: { start: "before", before: "sub", sub: "after" },
  }),
  configured: graph({
    state: { seen: value<Record<string, unknown>>() },
    nodes: {
      look: async ({ seen }, ctx) => {
        const { key } = (seen ?? {}) as { key?: string };
        if (key !== undefined)
          await ctx.store.put(["conformance", "nodes"], key, { text: `put by a node: ${key}` });
        const { configurable = {}, metadata = {} } = ctx.config as { readonly [part: string]: Members };
        return {
          seen: {
            tone: configurable["tone"] ?? null,
            context: ctx.context ?? null,
            graph: configurable["graph_id"],
            assistant: configurable["assistant_id"],
            run: configurable["run_id"],
            colour: metadata["colour"] ?? null,
          },
        };
      },
    },
    edges: { start: "look" },
  }),
  held: graph({
    state: logState,
    nodes: {
      begin: async ({ topic }) => ({ log: [`${topic} began`] }),
      hold: async ({ topic }, ctx) => {
        await ctx.store.put(["conformance", "reached"], topic, { reached: true });
        // oxlint-disable-next-line no-await-in-loop -- polls until the condition holds
        while ((await ctx.store.get(["conformance", "gates"], topic)) === null) {
          ctx.signal.throwIfAborted();
          // oxlint-disable-next-line no-await-in-loop -- polls until the condition holds
          await new Promise((resolve) => setTimeout(resolve, PERIOD));
        }
        return { log: [`${topic} ended`] };
      },
    },
    edges: { start: "begin", begin: "hold" },
  }),
};
