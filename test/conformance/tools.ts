import { tool } from "@langchain/core/tools";
import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import { ScriptedModel } from "./scripted-model.ts";

interface Query {
  readonly query: string;
}
const schema = { type: "object", properties: { query: { type: "string" } }, required: ["query"] } as const;

/** A tool that reports its progress. */
const search = tool(
  async function* ({ query }: Query) {
    yield { found: 1 };
    yield "half";
    return `Found ${query}`;
  },
  { name: "search", description: "Searches", schema },
);
const broken = tool(
  ({ query }: Query): string => {
    throw new TypeError(`no ${query}`);
  },
  { name: "broken", description: "Fails", schema },
);

const inner = createReactAgent({
  llm: new ScriptedModel([
    { text: "Let me look ", call: { name: "search", args: { query: "tea" } } },
    { text: "Once more ", call: { name: "broken", args: { query: "tea" } } },
    { text: "That is all" },
  ]),
  tools: [search, broken],
});

/** An agent within a graph. It calls a tool that reports its progress, and one that fails. */
export const tools = new StateGraph(MessagesAnnotation).addNode("sub", inner).addEdge(START, "sub").compile();
