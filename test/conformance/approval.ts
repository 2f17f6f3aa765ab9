import { interrupt, START, StateGraph } from "@langchain/langgraph";
import { LogState } from "./log-state.ts";

/** Writes a draft, asks a human about it, and sends it. */
export const approval = new StateGraph(LogState)
  .addNode("write", ({ topic }) => ({ log: [`wrote about ${topic}`] }))
  .addNode("review", ({ topic }) => {
    const { ok } = interrupt<{ draft: string }, { ok: boolean }>({ draft: `Draft: ${topic}` });
    return { log: [ok ? "approved" : "refused"] };
  })
  .addNode("send", () => ({ log: ["sent"] }))
  .addEdge(START, "write")
  .addEdge("write", "review")
  .addEdge("review", "send")
  .compile();
