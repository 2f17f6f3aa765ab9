import { START, StateGraph } from "@langchain/langgraph";
import { LogState } from "./log-state.ts";

/** The second node throws, unless the topic is "mended". */
export const failing = new StateGraph(LogState)
  .addNode("good", () => ({ log: ["good"] }))
  .addNode("bad", ({ topic }) => {
    if (topic !== "mended") throw new TypeError("kaboom");
    return { log: ["mended"] };
  })
  .addEdge(START, "good")
  .addEdge("good", "bad")
  .compile();
