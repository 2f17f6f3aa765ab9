import { FakeListChatModel } from "@langchain/core/utils/testing";
import {
  Annotation,
  Command,
  END,
  interrupt,
  MessagesAnnotation,
  Send,
  START,
  StateGraph,
} from "@langchain/langgraph";
import { exceptSteps, Log, pause, say, SINCE_FORKS, sub, type Stories } from "./parts.ts";

/** Subgraphs. */
export const withinStories: Stories = {
  "Command.PARENT with goto and update from two levels": {
    make: () => {
      const leaf = new StateGraph(Log)
        .addNode(
          "leave",
          () => new Command({ graph: Command.PARENT, goto: "n", update: { log: ["from leaf"] } }),
        )
        .addEdge(START, "leave")
        .compile();
      const mid = new StateGraph(Log)
        .addNode("leaf", leaf, { ends: ["n"] })
        .addNode("n", () => new Command({ graph: Command.PARENT, goto: "t", update: { log: ["from mid"] } }))
        .addEdge(START, "leaf")
        .compile();
      return new StateGraph(Log)
        .addNode("mid", mid, { ends: ["t"] })
        .addNode("t", say("t"))
        .addEdge(START, "mid")
        .compile();
    },
    deeds: [{ input: { log: ["in"] } }],
  },
  "Send fan-out to a subgraph, with questions in each": {
    make: () => {
      const each = new StateGraph(Annotation.Root({ n: Annotation<number>, log: Log.spec.log }))
        .addNode("ask", ({ n }) => ({ log: [`${n}: ${String(interrupt(`q${n}`))}`] }))
        .addNode("after", ({ n }) => ({ log: [`after ${n}`] }))
        .addEdge(START, "ask")
        .addEdge("ask", "after")
        .compile();
      return new StateGraph(Log)
        .addNode("each", each)
        .addConditionalEdges(START, () => [1].map((n) => new Send("each", { n })), ["each"])
        .compile();
    },
    deeds: [{ input: { log: [] } }, { command: { resume: "a" } }],
  },
  "breakpoints in subgraph compiled in": {
    make: () => {
      const inner = new StateGraph(Log)
        .addNode("x", say("x"))
        .addNode("y", say("y"))
        .addEdge(START, "x")
        .addEdge("x", "y")
        .compile({ interruptBefore: ["y"] });
      return new StateGraph(Log)
        .addNode("inner", inner)
        .addNode("z", say("z"))
        .addEdge(START, "inner")
        .addEdge("inner", "z")
        .compile();
    },
    deeds: [{ input: { log: [] } }, { input: null }],
  },
  "time travel through a subgraph": {
    make: () =>
      new StateGraph(Log)
        .addNode("pre", say("pre"))
        .addNode("sub", sub("s"))
        .addNode("post", say("post"))
        .addEdge(START, "pre")
        .addEdge("pre", "sub")
        .addEdge("sub", "post")
        .compile(),
    deeds: [{ input: { log: [] } }, { from: ["sub"], input: null }, { from: ["post"], input: null }],
    since: SINCE_FORKS,
  },
  "a graph in a graph in a graph, called in bodies, with questions": {
    make: () => {
      const leaf = new StateGraph(Log)
        .addNode("q", () => ({ log: [String(interrupt("leaf?"))] }))
        .addEdge(START, "q")
        .compile();
      const mid = new StateGraph(Log)
        .addNode("call", async ({ log }) => ({ log: (await leaf.invoke({ log })).log.slice(-1) }))
        .addEdge(START, "call")
        .compile();
      return new StateGraph(Log)
        .addNode("mid", mid)
        .addNode("end", say("end"))
        .addEdge(START, "mid")
        .addEdge("mid", "end")
        .compile();
    },
    deeds: [{ input: { log: [] } }, { command: { resume: "deep" } }],
  },
  "two graphs called in one body": {
    make: () => {
      const [one, two] = [sub("one"), sub("two")];
      return new StateGraph(Log)
        .addNode("call", async () => ({
          log: [...(await one.invoke({})).log, ...(await two.invoke({})).log],
        }))
        .addEdge(START, "call")
        .compile();
    },
    deeds: [{ input: { log: ["x"] } }],
  },
  "subgraph that keeps its own history (checkpointer: true)": {
    make: () => {
      const inner = new StateGraph(Log)
        .addNode("x", ({ log }) => ({ log: [`x${log.length}`] }))
        .addEdge(START, "x")
        .compile({ checkpointer: true });
      return new StateGraph(Annotation.Root({ last: Log.spec.last }))
        .addNode("call", async () => ({ last: (await inner.invoke({ log: ["in"] })).log }))
        .addEdge(START, "call")
        .compile();
    },
    deeds: [{ input: { last: 0 } }, { input: { last: 0 } }],
  },
  "subgraph without a checkpointer (false)": {
    make: () =>
      new StateGraph(Log)
        .addNode(
          "inner",
          new StateGraph(Log).addNode("x", say("x")).addEdge(START, "x").compile({ checkpointer: false }),
        )
        .addEdge(START, "inner")
        .compile(),
    deeds: [{ input: { log: [] } }],
    but: exceptSteps,
  },
  "a subgraph that fails and is tried again by its node": {
    make: () => {
      let n = 0;
      const inner = new StateGraph(Log)
        .addNode("x", say("x"))
        .addNode("y", () => {
          if (n++ === 0) throw new Error("once");
          return { log: ["y"] };
        })
        .addEdge(START, "x")
        .addEdge("x", "y")
        .compile();
      return new StateGraph(Log)
        .addNode("inner", inner, {
          retryPolicy: { maxAttempts: 2, initialInterval: 1, jitter: false, logWarning: false },
        })
        .addEdge(START, "inner")
        .compile();
    },
    deeds: [{ input: { log: [] } }],
  },
  "a subgraph that fails for good, gone on with": {
    make: () => {
      let n = 0;
      const inner = new StateGraph(Log)
        .addNode("x", say("x"))
        .addNode("y", () => {
          if (n++ === 0) throw new Error("once");
          return { log: ["y"] };
        })
        .addEdge(START, "x")
        .addEdge("x", "y")
        .compile();
      return new StateGraph(Log)
        .addNode("inner", inner)
        .addNode("end", say("end"))
        .addEdge(START, "inner")
        .addEdge("inner", "end")
        .compile();
    },
    deeds: [{ input: { log: [] } }, { input: null }],
  },
  "three sends to a subgraph": {
    make: () => {
      const each = new StateGraph(Annotation.Root({ n: Annotation<number>, log: Log.spec.log }))
        .addNode("one", ({ n }) => ({ log: [`one ${n}`] }))
        .addNode("two", async ({ n }) => {
          await pause(n * 25);
          return { log: [`two ${n}`] };
        })
        .addEdge(START, "one")
        .addEdge("one", "two")
        .compile();
      return new StateGraph(Log)
        .addNode("each", each)
        .addNode("join", say("join"))
        .addConditionalEdges(START, () => [1, 2, 3].map((n) => new Send("each", { n })), ["each"])
        .addEdge("each", "join")
        .compile();
    },
    deeds: [{ input: { log: [] } }],
    but: ({ state, history }) => ({ state, history }),
  },
  "a subgraph with state of its own, through a node's body; a send to the parent": {
    make: () => {
      const inner = new StateGraph(Annotation.Root({ own: Annotation<string> }))
        .addNode("x", ({ own }) => ({ own: `${own}!` }))
        .addNode(
          "up",
          () =>
            new Command({
              graph: Command.PARENT,
              goto: [new Send("t", { log: ["sent"] })],
              update: { last: "up" },
            }),
        )
        .addEdge(START, "x")
        .addEdge("x", "up")
        .compile();
      return new StateGraph(Log)
        .addNode("call", async () => ({ last: await inner.invoke({ own: "hi" }) }), { ends: ["t"] })
        .addNode("t", ({ log }) => ({ log: [`t got ${log.join()}`] }))
        .addEdge(START, "call")
        .compile();
    },
    deeds: [{ input: { log: [] } }],
  },
  "a question in a subgraph, asked again by time travel, answered otherwise": {
    make: () => {
      const inner = new StateGraph(Log)
        .addNode("x", say("x"))
        .addNode("q", () => ({ log: [String(interrupt("q?"))] }))
        .addEdge(START, "x")
        .addEdge("x", "q")
        .compile();
      return new StateGraph(Log)
        .addNode("pre", say("pre"))
        .addNode("inner", inner)
        .addNode("end", say("end"))
        .addEdge(START, "pre")
        .addEdge("pre", "inner")
        .addEdge("inner", "end")
        .compile();
    },
    deeds: [
      { input: { log: [] } },
      { command: { resume: "a" } },
      { from: ["inner"], input: null },
      { command: { resume: "b" } },
    ],
    since: SINCE_FORKS,
  },
  "a subgraph with a history of its own that asks, twice in a thread": {
    make: () => {
      const inner = new StateGraph(Log)
        .addNode("q", ({ log }) => ({ log: [`${log.length} ${String(interrupt("q?"))}`] }))
        .addEdge(START, "q")
        .compile({ checkpointer: true });
      return new StateGraph(Log).addNode("inner", inner).addEdge(START, "inner").compile();
    },
    deeds: [
      { input: { log: ["a"] } },
      { command: { resume: "1" } },
      { input: { log: ["b"] } },
      { command: { resume: "2" } },
    ],
  },
  "an agent loop of nodes and a subgraph, tokens in both": {
    make: () => {
      const model = () => new FakeListChatModel({ responses: ["one two", "three"] });
      const inner = new StateGraph(MessagesAnnotation)
        .addNode("talk", async ({ messages }) => ({ messages: [await model().invoke(messages)] }))
        .addEdge(START, "talk")
        .compile();
      return new StateGraph(MessagesAnnotation)
        .addNode("first", async ({ messages }) => ({ messages: [await model().invoke(messages)] }))
        .addNode("inner", inner)
        .addEdge(START, "first")
        .addEdge("first", "inner")
        .addConditionalEdges("inner", ({ messages }) => (messages.length < 5 ? "first" : END), ["first", END])
        .compile();
    },
    deeds: [{ input: { messages: [{ role: "user", content: "hi", id: "m0" }] } }],
  },
};
