import { Command, END, interrupt, Send, START, StateGraph } from "@langchain/langgraph";
import { InMemoryCache } from "@langchain/langgraph-checkpoint";
import { type Config, exceptEarlierResults, exceptHistory, Log, pause, say, type Stories } from "./parts.ts";

/** Edges, branches and commands. */
export const flowStories: Stories = {
  "map-reduce with deferred join": {
    make: () =>
      new StateGraph(Log)
        .addNode("a", say("a"))
        .addNode("b", say("b"))
        .addNode("b2", say("b2"))
        .addNode("d", ({ log }) => ({ log: [`d(${log.join("")})`] }), { defer: true })
        .addEdge(START, "a")
        .addEdge("a", "b")
        .addEdge("a", "d")
        .addEdge("b", "b2")
        .addEdge("b2", "d")
        .compile(),
    deeds: [{ input: { log: [] } }, { input: { log: ["again"] } }],
  },
  "cache policy": {
    make: () => {
      let n = 0;
      return new StateGraph(Log)
        .addNode("a", () => ({ log: [`a${n++}`] }), { cachePolicy: { keyFunc: () => "k" } })
        .addNode("b", say("b"))
        .addEdge(START, "a")
        .addEdge("a", "b")
        .compile({ cache: new InMemoryCache() });
    },
    deeds: [{ input: { log: [] } }, { input: { log: [] } }],
  },
  "retry that gives up": {
    make: () =>
      new StateGraph(Log)
        .addNode("ok", say("ok"))
        .addNode(
          "a",
          async () => {
            throw new RangeError("never");
          },
          { retryPolicy: { maxAttempts: 2, initialInterval: 1, jitter: false, logWarning: false } },
        )
        .addEdge(START, "ok")
        .addEdge("ok", "a")
        .compile(),
    deeds: [{ input: { log: [] } }, { input: null }],
  },
  "breakpoints asked for": {
    make: () =>
      new StateGraph(Log)
        .addNode("a", say("a"))
        .addNode("b", say("b"))
        .addNode("c", say("c"))
        .addEdge(START, "a")
        .addEdge("a", "b")
        .addEdge("b", "c")
        .compile(),
    deeds: [
      { input: { log: [] }, interruptBefore: ["b"] },
      { input: null, interruptAfter: ["b"] },
      { input: null },
    ],
  },
  "a breakpoint after a node that changes nothing": {
    make: () =>
      new StateGraph(Log)
        .addNode("a", () => ({}))
        .addNode("b", say("b"))
        .addEdge(START, "a")
        .addEdge("a", "b")
        .compile(),
    deeds: [{ input: { log: [] }, interruptAfter: ["a"] }, { input: null }],
  },
  "a breakpoint after a node that only says where to go": {
    make: () =>
      new StateGraph(Log)
        .addNode("a", () => new Command({ goto: "b" }), { ends: ["b"] })
        .addNode("b", say("b"))
        .addEdge(START, "a")
        .compile({ interruptAfter: ["a"] }),
    deeds: [{ input: { log: [] } }, { input: null }],
  },
  "a breakpoint in a subgraph after a node that changes nothing": {
    make: () =>
      new StateGraph(Log)
        .addNode(
          "inner",
          new StateGraph(Log)
            .addNode("a", () => ({}))
            .addNode("b", say("b"))
            .addEdge(START, "a")
            .addEdge("a", "b")
            .compile({ interruptAfter: ["a"] }),
        )
        .addNode("c", say("c"))
        .addEdge(START, "inner")
        .addEdge("inner", "c")
        .compile(),
    deeds: [{ input: { log: [] } }, { input: null }],
  },
  "the recursion limit reached after nodes that change nothing": {
    make: () =>
      new StateGraph(Log)
        .addNode("ping", () => ({}))
        .addNode("pong", () => ({}))
        .addEdge(START, "ping")
        .addEdge("ping", "pong")
        .addEdge("pong", "ping")
        .compile(),
    deeds: [{ input: { log: ["x"] }, recursionLimit: 4 }],
  },
  "node throwing null": {
    make: () =>
      new StateGraph(Log)
        .addNode("a", () => {
          throw null;
        })
        .addEdge(START, "a")
        .compile(),
    deeds: [{ input: { log: [] } }],
  },
  "node throwing a string": {
    make: () =>
      new StateGraph(Log)
        .addNode("a", () => {
          throw "text";
        })
        .addEdge(START, "a")
        .compile(),
    deeds: [{ input: { log: [] } }],
  },
  "recursion limit": {
    make: () => new StateGraph(Log).addNode("l", say("l")).addEdge(START, "l").addEdge("l", "l").compile(),
    deeds: [
      { input: { log: [] }, recursionLimit: 4 },
      { input: null, recursionLimit: 3 },
    ],
  },
  "command as input: goto and update": {
    make: () =>
      new StateGraph(Log)
        .addNode("a", say("a"), { ends: ["b", END] })
        .addNode("b", say("b"))
        .addEdge(START, "a")
        .compile(),
    deeds: [
      { input: { log: [] } },
      { command: { goto: "b", update: { log: ["u"] } } },
      { command: { update: { log: ["only"] } } },
    ],
    but: exceptHistory,
  },
  "unknown goto; unknown key": {
    make: () =>
      new StateGraph(Log)
        .addNode("a", () => new Command({ goto: "nowhere" }), { ends: ["b"] })
        .addNode("b", say("b"))
        .addEdge(START, "a")
        .compile(),
    deeds: [{ input: { log: [], odd: 1 } }],
  },
  "durability exit and sync, over a question": {
    make: () =>
      new StateGraph(Log)
        .addNode("a", say("a"))
        .addNode("b", () => ({ log: [String(interrupt("b?"))] }))
        .addNode("c", say("c"))
        .addEdge(START, "a")
        .addEdge("a", "b")
        .addEdge("b", "c")
        .compile(),
    deeds: [
      { input: { log: [] }, durability: "sync" },
      { command: { resume: "yes" }, durability: "sync" },
    ],
  },
  "an answer after the state was changed by hand": {
    make: () =>
      new StateGraph(Log)
        .addNode("ask", () => ({ log: [`said ${String(interrupt("q"))}`] }))
        .addNode("after", say("after"))
        .addEdge(START, "ask")
        .addEdge("ask", "after")
        .compile(),
    deeds: [
      { input: { log: ["in"] } },
      { update: { values: { log: ["edited"] } } },
      { command: { resume: "z" } },
    ],
  },
  "an answer to a breakpoint, where nothing was asked": {
    make: () =>
      new StateGraph(Log)
        .addNode("a", say("a"))
        .addNode("b", say("b"))
        .addEdge(START, "a")
        .addEdge("a", "b")
        .compile({ interruptBefore: ["b"] }),
    deeds: [
      { input: { log: ["in"] } },
      { command: { resume: true } },
      { from: ["a"], command: { resume: true } },
    ],
    but: exceptEarlierResults,
  },
  "resume by a map; several questions in one node": {
    make: () =>
      new StateGraph(Log)
        .addNode("a", () => ({
          log: [String(interrupt("1")), String(interrupt("2")), String(interrupt("3"))],
        }))
        .addEdge(START, "a")
        .compile(),
    deeds: [
      { input: { log: [] } },
      { command: { resume: "x" } },
      { command: { resume: { y: 1 } } },
      { command: { resume: ["z"] } },
    ],
  },
  "a question, answered with another input instead": {
    make: () =>
      new StateGraph(Log)
        .addNode("a", () => ({ log: [String(interrupt("1"))] }))
        .addNode("b", say("b"))
        .addEdge(START, "a")
        .addEdge("a", "b")
        .compile(),
    deeds: [
      { input: { log: [] } },
      { input: { log: ["other"] } },
      { command: { resume: "y", update: { log: ["with"] } } },
    ],
    but: exceptHistory,
  },
  "one fails beside one that asks": {
    make: () => {
      let n = 0;
      return new StateGraph(Log)
        .addNode("ask", () => ({ log: [String(interrupt("1"))] }))
        .addNode("bad", async () => {
          await pause(20);
          if (n++ === 0) throw new Error("bad");
          return { log: ["good"] };
        })
        .addEdge(START, "ask")
        .addEdge(START, "bad")
        .compile();
    },
    deeds: [{ input: { log: [] } }, { input: null }, { command: { resume: "yes" } }],
  },
  "conditional entry to END; sends to several nodes": {
    make: () =>
      new StateGraph(Log)
        .addNode("a", (s) => ({ log: [`a${String(s.last)}`] }))
        .addNode("b", (s) => ({ log: [`b${String(s.last)}`] }))
        .addConditionalEdges(
          START,
          ({ log }) =>
            log.length === 0
              ? END
              : [new Send("a", { last: 1 }), new Send("b", { last: 2 }), new Send("a", { last: 3 })],
          ["a", "b", END],
        )
        .compile(),
    deeds: [{ input: { log: [] } }, { input: { log: ["x"] } }],
  },
  "sends with questions, answered one by one through a map": {
    make: () =>
      new StateGraph(Log)
        .addNode("w", (s) => ({ log: [`w ${String(s.last)} ${String(interrupt(`q${String(s.last)}`))}`] }))
        .addNode("join", say("join"))
        .addConditionalEdges(START, () => [1].map((last) => new Send("w", { last })), ["w"])
        .addEdge("w", "join")
        .compile(),
    deeds: [{ input: { log: [] } }, { command: { resume: 7 } }],
  },
  "a loop by commands; a send in a command of the input": {
    make: () =>
      new StateGraph(Log)
        .addNode(
          "a",
          ({ log }) =>
            log.length < 4 ? new Command({ goto: "a", update: { log: ["a"] } }) : new Command({ goto: END }),
          { ends: ["a", "b", END] },
        )
        .addNode("b", (s) => ({ log: [`b ${String(s.last)}`] }))
        .addEdge(START, "a")
        .compile(),
    deeds: [{ input: { log: [] } }],
  },
  "an error handler beside retries; a sequence": {
    make: () =>
      new StateGraph(Log)
        .addSequence({ a: say("a"), b: say("b"), c: say("c") })
        .addEdge(START, "a")
        .compile(),
    deeds: [{ input: { log: [] } }, { input: null }],
  },
  "a breakpoint at all nodes": {
    make: () =>
      new StateGraph(Log)
        .addNode("a", say("a"))
        .addNode("b", say("b"))
        .addEdge(START, "a")
        .addEdge("a", "b")
        .compile(),
    deeds: [
      { input: { log: [] }, interruptBefore: ["*"] },
      { input: null, interruptAfter: ["a"] },
      { input: null },
    ],
  },
  "configurable, tags and metadata reach the nodes": {
    make: () =>
      new StateGraph(Log)
        .addNode("a", (_s, { configurable, recursionLimit }: Config) => ({
          log: [String(configurable?.["who"]), String(recursionLimit)],
        }))
        .addEdge(START, "a")
        .compile(),
    deeds: [{ input: { log: [] }, configurable: { who: "me" }, recursionLimit: 7 }],
  },
};
