import { tool } from "@langchain/core/tools";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import { ScriptedModel } from "./scripted-model.ts";

const weather = tool(({ city }: { city: string }) => `It is sunny in ${city}`, {
  name: "weather",
  description: "The weather in a city",
  schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
});

/** An agent that looks up the weather with a tool, and reports it. */
export const agent = createReactAgent({
  llm: new ScriptedModel([
    { text: "Let me look ", call: { name: "weather", args: { city: "Lisbon" } } },
    { text: "It is sunny" },
  ]),
  tools: [weather],
});
