import { Command, END, type LangGraphRunnableConfig, Send, START, StateGraph } from "@langchain/langgraph";
import { LogState } from "./log-state.ts";

/** Custom events, parallel nodes, a node that writes nothing, tasks by `Send`, and a `Command`. */
export const branches = new StateGraph(LogState)
  .addNode("begin", async (_, { writer }: LangGraphRunnableConfig) => {
    writer?.({ progress: 0.5, text: 'é\n"quoted"\u2028' });
    writer?.([1, null]);
    writer?.("text");
    return { log: ["begun"] };
  })
  .addNode("left", () => ({ log: ["left"] }))
  .addNode("silent", () => ({}))
  .addNode("spread", () => ({}))
  .addNode("worker", ({ topic }) => ({ log: [`worked on ${topic}`] }))
  .addNode("gather", () => new Command({ update: { log: ["gathered"] }, goto: "last" }), { ends: ["last"] })
  .addNode("last", () => ({ log: ["last"] }))
  .addEdge(START, "begin")
  .addEdge("begin", "left")
  .addEdge("begin", "silent")
  .addEdge(["left", "silent"], "spread")
  .addConditionalEdges("spread", () => ["a", "b"].map((topic) => new Send("worker", { topic, log: [] })), [
    "worker",
  ])
  .addEdge("worker", "gather")
  .addEdge("last", END)
  .compile();
