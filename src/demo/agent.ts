import { scheduler } from "node:timers/promises";
import { graph, messages, type Ctx, type Message, type MessageWriter } from "../index.ts";

/** Milliseconds between two words, unless the configuration's `configurable.delay_ms` says otherwise. */
const DELAY = 20;

function textOf(message: Message | undefined): string {
  if (message === undefined) return "";
  if (typeof message.content === "string") return message.content;
  return message.content.map((block) => (typeof block["text"] === "string" ? block["text"] : "")).join(" ");
}

function configured(ctx: Ctx): { readonly [name: string]: unknown } {
  return (ctx.config["configurable"] ?? {}) as { readonly [name: string]: unknown };
}

async function speak(message: MessageWriter, text: string, ctx: Ctx): Promise<Message> {
  const { delay_ms } = configured(ctx);
  const delay = typeof delay_ms === "number" && delay_ms >= 0 ? Math.min(delay_ms, 10_000) : DELAY;
  const words = text.match(/\S+\s*/g) ?? [];
  for (const word of words) {
    message.write(word);
    await scheduler.wait(delay, { signal: ctx.signal });
  }
  message.usage({ input_tokens: 0, output_tokens: words.length, total_tokens: words.length });
  return message.end();
}

/**
 * A scripted agent: no key, no network. It repeats what it was told, word by word; asked to count, it calls its one tool.
 * `configurable.name` is what it calls itself.
 */
export default graph({
  name: "agent",
  state: { messages: messages() },
  nodes: {
    agent: async (state, ctx) => {
      const last = state.messages.at(-1);
      const said = textOf(state.messages.findLast((message) => message.type === "human"));
      const { name } = configured(ctx);
      const message = ctx.message();
      if (last?.type === "tool") {
        return { messages: [await speak(message, `That makes ${textOf(last)} words.`, ctx)] };
      }
      if (/\bcount\b/i.test(said)) {
        message.toolCall({ name: "count_words", args: { text: said } });
        return { messages: [message.end()] };
      }
      const introduction = typeof name === "string" && name !== "" ? `${name} here. ` : "";
      return { messages: [await speak(message, `${introduction}You said: ${said}`, ctx)] };
    },
    tools: async (state) => {
      const calls = state.messages.at(-1)?.tool_calls ?? [];
      return {
        messages: calls.map(({ id, name, args }) => ({
          type: "tool",
          name,
          tool_call_id: id ?? "",
          content: String(String(args["text"]).match(/\S+/g)?.length ?? 0),
        })),
      };
    },
  },
  edges: {
    start: "agent",
    agent: (state) => ((state.messages.at(-1)?.tool_calls?.length ?? 0) > 0 ? "tools" : "__end__"),
    tools: "agent",
  },
});
