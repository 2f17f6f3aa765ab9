import { AIMessage, HumanMessage, RemoveMessage } from "@langchain/core/messages";
import {
  Annotation,
  getCurrentTaskInput,
  getStore,
  getWriter,
  MessagesAnnotation,
  Overwrite,
  START,
  StateGraph,
} from "@langchain/langgraph";
import { z } from "zod";
import { type Config, exceptHistory, Log, say, SINCE_FORKS, type Stories } from "./parts.ts";

/** Kinds of states, and changes to them. */
export const stateStories: Stories = {
  "Overwrite, and static breakpoints compiled in": {
    make: () =>
      new StateGraph(Log)
        .addNode("a", say("a"))
        .addNode("b", () => ({ log: new Overwrite(["over"]) as never }))
        .addNode("c", say("c"))
        .addEdge(START, "a")
        .addEdge("a", "b")
        .addEdge("b", "c")
        .compile({ interruptBefore: ["b"], interruptAfter: ["b"] }),
    deeds: [{ input: { log: ["x"] } }, { input: null }, { input: null }],
    since: [2, "it has no Overwrite"],
  },
  "updateState as a node, then on; update of older": {
    make: () =>
      new StateGraph(Log)
        .addNode("a", say("a"))
        .addNode("b", say("b"))
        .addNode("c", say("c"))
        .addEdge(START, "a")
        .addConditionalEdges("a", ({ log }) => (log.includes("skip") ? "c" : "b"), ["b", "c"])
        .addEdge("b", "c")
        .compile(),
    deeds: [
      { input: { log: [] } },
      { update: { values: { log: ["skip"] }, asNode: "a" } },
      { input: null },
      { from: ["b"], update: { values: { log: ["older"] } } },
      { input: null },
      { from: ["a"], input: null },
    ],
    since: SINCE_FORKS,
  },
  "zod 4 state with defaults and context": {
    make: () =>
      new StateGraph(
        z.object({ n: z.number().default(1), who: z.string().optional() }),
        z.object({ by: z.number().default(10) }),
      )
        .addNode("a", ({ n }, config) => ({
          n: n + ((config as { context?: { by?: number } }).context?.by ?? 0),
        }))
        .addEdge(START, "a")
        .compile(),
    deeds: [{ input: { who: "me" }, context: { by: 5 } }, { input: { n: 3 } }, { input: { n: "x" } }],
  },
  "private state between nodes; input and output schemas": {
    make: () => {
      const Private = Annotation.Root({ secret: Annotation<string> });
      return new StateGraph({
        stateSchema: Log,
        input: Annotation.Root({ log: Log.spec.log }),
        output: Annotation.Root({ last: Annotation<unknown> }),
      } as never)
        .addNode("a", (() => ({ secret: "s", log: ["a"] })) as never)
        .addNode(
          "b",
          (({ secret }: { secret: string }) => ({ last: `b ${secret}` })) as never,
          { input: Private } as never,
        )
        .addEdge(START, "a" as never)
        .addEdge("a" as never, "b" as never)
        .compile();
    },
    deeds: [{ input: { log: ["in"] } }],
  },
  "nodes that return null, undefined, empty": {
    make: () =>
      new StateGraph(Log)
        .addNode("a", () => null as never)
        .addNode("b", () => undefined as never)
        .addNode("c", () => ({}))
        .addNode("d", () => ({ last: null }))
        .addNode("e", () => ({ last: undefined }))
        .addEdge(START, "a")
        .addEdge("a", "b")
        .addEdge("b", "c")
        .addEdge("c", "d")
        .addEdge("d", "e")
        .compile(),
    deeds: [{ input: { log: ["in"] } }],
  },
  "store in nodes": {
    make: () =>
      new StateGraph(Log)
        .addNode("put", async (_s, config: Config) => {
          await config.store?.put(["a"], "k", { v: 1 });
          await getStore()?.put(["a"], "k2", { v: 2 });
          return { log: ["put"] };
        })
        .addNode("get", async (_s, config: Config) => ({
          log: [
            JSON.stringify((await config.store?.get(["a"], "k"))?.value),
            String((await config.store?.search(["a"]))?.length),
          ],
        }))
        .addEdge(START, "put")
        .addEdge("put", "get")
        .compile(),
    deeds: [{ input: { log: [] } }],
  },
  "messages: removed, replaced, ids": {
    make: () =>
      new StateGraph(MessagesAnnotation)
        .addNode("a", () => ({
          messages: [
            new AIMessage({ id: "1", content: "one" }),
            new HumanMessage({ id: "2", content: "two" }),
          ],
        }))
        .addNode("b", () => ({
          messages: [new AIMessage({ id: "1", content: "uno" }), new RemoveMessage({ id: "2" })],
        }))
        .addEdge(START, "a")
        .addEdge("a", "b")
        .compile(),
    deeds: [{ input: { messages: [{ role: "user", content: "hi", id: "0" }] } }, { input: { messages: [] } }],
  },
  "input that writes nothing": {
    make: () => new StateGraph(Log).addNode("a", say("a")).addEdge(START, "a").compile(),
    deeds: [{ input: {} }, { input: { odd: 1 } }, { input: { log: ["x"] } }],
  },
  "writer, current input, odd values in the state": {
    make: () =>
      new StateGraph(Log)
        .addNode("a", (_s, config: Config) => {
          getWriter()?.({ w: Object.keys(getCurrentTaskInput() as object).toSorted() });
          config.writer?.("text");
          return {
            log: ["a"],
            last: {
              d: new Date(0),
              m: new Map([[1, new Set([2])]]),
              u: undefined,
              b: new Uint8Array([1, 2]),
              nan: Number.NaN,
            },
          };
        })
        .addNode("b", ({ last }) => ({
          log: [(last as { m: Map<number, Set<number>> }).m.get(1)?.has(2) === true ? "kept" : "lost"],
        }))
        .addEdge(START, "a")
        .addEdge("a", "b")
        .compile(),
    deeds: [{ input: { log: [] } }],
    since: [1, "its saver loses what bytes are"],
  },
  "updates that undo: the tasks cleared, a copy, as the end": {
    make: () =>
      new StateGraph(Log)
        .addNode("a", say("a"))
        .addNode("b", say("b"))
        .addEdge(START, "a")
        .addEdge("a", "b")
        .compile({ interruptBefore: ["b"] }),
    deeds: [
      { input: { log: [] } },
      { update: { values: null, asNode: "__copy__" } },
      { update: { values: { log: ["mine"] } } },
      { update: { values: null, asNode: "__end__" } },
      { input: { log: ["next"] } },
      { update: { values: { log: ["x"] }, asNode: "nobody" } },
    ],
    // A copy follows its original; LangGraph places it beside the original.
    but: exceptHistory,
  },
  "messages as dictionaries, tuples and text; tool calls": {
    make: () =>
      new StateGraph(MessagesAnnotation)
        .addNode("a", () => ({
          messages: [["ai", "tuple"], { role: "assistant", content: "dict", id: "d" }, "text"] as never,
        }))
        .addNode("b", () => ({
          messages: new AIMessage({
            id: "t",
            content: "",
            tool_calls: [{ id: "c", name: "f", args: { x: 1 } }],
          }),
        }))
        .addEdge(START, "a")
        .addEdge("a", "b")
        .compile(),
    deeds: [{ input: { messages: "hello" } }],
  },
};
