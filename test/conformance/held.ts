import { setTimeout } from "node:timers/promises";
import { type LangGraphRunnableConfig, START, StateGraph } from "@langchain/langgraph";
import { LogState } from "./log-state.ts";

/** Milliseconds between two reads of the store. */
const PERIOD = 10;

/** The second node waits until the client has put an item ["conformance", "gates"], `topic` into the store. */
export const held = new StateGraph(LogState)
  .addNode("begin", ({ topic }) => ({ log: [`${topic} began`] }))
  .addNode("hold", async ({ topic }, { store, signal }: LangGraphRunnableConfig) => {
    await store?.put(["conformance", "reached"], topic, { reached: true });
    // oxlint-disable-next-line no-await-in-loop -- polls until the condition holds
    while ((await store?.get(["conformance", "gates"], topic)) == null) {
      signal?.throwIfAborted();
      // oxlint-disable-next-line no-await-in-loop -- polls until the condition holds
      await setTimeout(PERIOD);
    }
    return { log: [`${topic} ended`] };
  })
  .addEdge(START, "begin")
  .addEdge("begin", "hold")
  .compile();
