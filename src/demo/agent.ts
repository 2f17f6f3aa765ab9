import { END, graph, messages, runTools, tool } from "../index.ts";
import { readModelAccess, streamChat } from "./openai-client.ts";
import { objectSchema } from "./object-schema.ts";
import { scriptedAnswer } from "./scripted-answers.ts";

const countWords = tool({
  name: "count_words",
  description: "Counts the words of a text",
  schema: objectSchema(({ text }) => (typeof text === "string" ? { text } : "text must be a string")),
  parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  run: ({ text }) => text.match(/\S+/g)?.length ?? 0,
});

/**
 * An agent with one tool. Without an API key, its answers are scripted and it needs no network. With `OPENAI_API_KEY`,
 * it calls the model that the assistant's context names (`{ "model": ... }`), or `OPENAI_MODEL`, at `OPENAI_BASE_URL`.
 */
export default graph({
  name: "agent",
  state: { messages: messages({ onInterrupt: "keep" }) },
  context: objectSchema(({ model, ...others }) =>
    model === undefined || typeof model === "string" ? { ...others, model } : "model must be a string",
  ),
  nodes: {
    agent: async (state, ctx) => {
      const model = readModelAccess(ctx.context.model);
      if (model === undefined) return { messages: [await scriptedAnswer(state.messages, ctx)] };
      const stream = streamChat(model, state.messages, [countWords], ctx.signal);
      return { messages: [await ctx.message.from(stream, { model: model.model })] };
    },
    tools: async (state, ctx) => ({ messages: await runTools([countWords], state.messages, ctx) }),
  },
  edges: {
    start: "agent",
    agent: (state) => {
      const { tool_calls = [], invalid_tool_calls = [] } = state.messages.at(-1) ?? {};
      return tool_calls.length + invalid_tool_calls.length > 0 ? "tools" : END;
    },
    tools: "agent",
  },
});
