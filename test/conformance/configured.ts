import { Annotation, type LangGraphRunnableConfig, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ seen: Annotation<Record<string, unknown>> });
const Context = Annotation.Root({ tone: Annotation<string> });

/** Writes its configuration into the state, and its input into the store. */
export const configured = new StateGraph(State, Context)
  .addNode("look", async ({ seen }, config: LangGraphRunnableConfig) => {
    const { configurable = {}, context, metadata = {}, store } = config;
    const { key } = (seen ?? {}) as { key?: string };
    if (key !== undefined) await store?.put(["conformance", "nodes"], key, { text: `put by a node: ${key}` });
    return {
      seen: {
        tone: configurable["tone"] ?? null,
        context: context ?? null,
        graph: configurable["graph_id"],
        assistant: configurable["assistant_id"],
        run: configurable["run_id"],
        colour: metadata["colour"] ?? null,
      },
    };
  })
  .addEdge(START, "look")
  .compile();
