import { START, StateGraph } from "@langchain/langgraph";
import { LogState } from "./log-state.ts";

/** Two nodes in sequence. */
export const steps = new StateGraph(LogState)
  .addNode("first", ({ topic }) => ({ log: [`first about ${topic}`] }))
  .addNode("second", ({ log }) => ({ log: [`second after ${log.length}`] }))
  .addEdge(START, "first")
  .addEdge("first", "second")
  .compile();
