import { interrupt, START, StateGraph } from "@langchain/langgraph";
import { LogState } from "./log-state.ts";

/** Two nodes ask at the same time; one asks twice. */
export const questions = new StateGraph(LogState)
  .addNode("left", () => ({ log: [`left ${interrupt<string, string>("left?")}`] }))
  .addNode("right", () => {
    const first = interrupt<string, string>("right?");
    const second = interrupt<string, string>("sure?");
    return { log: [`right ${first} ${second}`] };
  })
  .addNode("join", () => ({ log: ["joined"] }))
  .addEdge(START, "left")
  .addEdge(START, "right")
  .addEdge(["left", "right"], "join")
  .compile();
