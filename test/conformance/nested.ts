import { interrupt, type LangGraphRunnableConfig, START, StateGraph } from "@langchain/langgraph";
import { LogState } from "./log-state.ts";

const inner = new StateGraph(LogState)
  .addNode("step", (_, { writer }: LangGraphRunnableConfig) => {
    writer?.("from within");
    return { log: ["inner step"] };
  })
  .addNode("ask", ({ topic }) =>
    topic === "ask"
      ? { log: [`inner ${interrupt<string, string>("inner?")}`] }
      : { log: ["inner asked nothing"] },
  )
  .addEdge(START, "step")
  .addEdge("step", "ask")
  .compile();

/** A node that is itself a graph. It asks a human if the topic is "ask". */
export const nested = new StateGraph(LogState)
  .addNode("before", () => ({ log: [] }))
  .addNode("sub", inner)
  .addNode("after", () => ({ log: ["after"] }))
  .addEdge(START, "before")
  .addEdge("before", "sub")
  .addEdge("sub", "after")
  .compile();
