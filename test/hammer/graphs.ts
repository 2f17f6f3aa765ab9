import { setTimeout as sleep } from "node:timers/promises";
import { Annotation, interrupt, START, StateGraph } from "@langchain/langgraph";
import type { AppOptions } from "../../src/app.ts";
import { type Ctx, graph, list, value } from "../../src/index.ts";
import { served } from "../langgraph/support.ts";

/**
 * Pauses for some milliseconds or not at all. The duration of a node determines which part of a run a request meets.
 */
const pause = (): Promise<void> | undefined => {
  const ms = Math.floor(Math.random() * 12);
  return ms > 2 ? sleep(ms) : undefined;
};

const inner = graph({
  state: { log: list<string>() },
  nodes: {
    first: async () => {
      await pause();
      return { log: ["first"] };
    },
    ask: async (_: unknown, ctx: Ctx) => ({ log: [String(await ctx.interrupt("within?"))] }),
  },
  edges: { start: "first", first: "ask" },
});

const native = graph({
  state: { kind: value("work"), log: list<string>() },
  nodes: {
    begin: async (_, ctx) => {
      ctx.emit({ at: "begin" });
      await pause();
      return { log: ["begin"] };
    },
    left: async (_, ctx) => {
      await pause();
      ctx.emit({ at: "left" });
      return { log: ["left"] };
    },
    right: async ({ kind }) => {
      await pause();
      if (kind === "fail") throw new Error("as it was told");
      return { log: ["right"] };
    },
    ask: async (_, ctx) => ({ log: [String(await ctx.interrupt({ question: "go on?" }))] }),
    inner,
    end: async () => {
      await pause();
      return { log: ["end"] };
    },
  },
  edges: {
    start: "begin",
    begin: ({ kind }) => (kind === "ask" ? "ask" : kind === "inner" ? "inner" : ["left", "right"]),
    left: "end",
    right: "end",
    ask: "end",
    inner: "end",
  },
});

function hosted() {
  const State = Annotation.Root({
    kind: Annotation<string>,
    log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
  });
  return new StateGraph(State)
    .addNode("begin", async (_, config) => {
      config.writer?.({ at: "begin" });
      await pause();
      return { log: ["begin"] };
    })
    .addNode("work", async ({ kind }) => {
      await pause();
      if (kind === "fail") throw new Error("as it was told");
      return { log: ["work"] };
    })
    .addNode("ask", async () => ({ log: [String(interrupt({ question: "go on?" }))] }))
    .addNode("end", async () => {
      await pause();
      return { log: ["end"] };
    })
    .addEdge(START, "begin")
    .addConditionalEdges("begin", ({ kind }) => (kind === "ask" || kind === "inner" ? "ask" : "work"), [
      "ask",
      "work",
    ])
    .addEdge("ask", "end")
    .addEdge("work", "end")
    .compile();
}

export async function graphs(): Promise<AppOptions> {
  return { graphs: { native }, langGraphs: await served({ hosted: hosted() }) };
}
