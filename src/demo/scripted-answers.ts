import { scheduler } from "node:timers/promises";
import type { Ctx, Message, MessageWriter } from "../index.ts";

/** Milliseconds between two words, unless the configuration's `configurable.delay_ms` says otherwise. */
const DELAY_MS = 20;

function textOf(message: Message | undefined): string {
  if (message === undefined) return "";
  if (typeof message.content === "string") return message.content;
  return message.content.map((block) => (typeof block["text"] === "string" ? block["text"] : "")).join(" ");
}

function configured(ctx: Ctx): { readonly [name: string]: unknown } {
  return (ctx.config["configurable"] ?? {}) as { readonly [name: string]: unknown };
}

/** Streams a text word by word, with pauses like those of a model. */
export async function streamWords(message: MessageWriter, text: string, ctx: Ctx): Promise<Message> {
  const { delay_ms } = configured(ctx);
  const delay = typeof delay_ms === "number" && delay_ms >= 0 ? Math.min(delay_ms, 10_000) : DELAY_MS;
  const words = text.match(/\S+\s*/g) ?? [];
  for (const word of words) {
    message.write(word);
    await scheduler.wait(delay, { signal: ctx.signal });
  }
  message.usage({ input_tokens: 0, output_tokens: words.length });
  return message.end();
}

/**
 * The answer of a scripted model. It calls the tool if the user's text contains the word "count", and reports the
 * tool's result. Otherwise it repeats the text, after `configurable.name` if that is set.
 */
export async function scriptedAnswer(messages: readonly Message[], ctx: Ctx): Promise<Message> {
  const message = ctx.message({ model: "scripted" });
  const last = messages.at(-1);
  if (last?.type === "tool") return streamWords(message, `That makes ${textOf(last)} words.`, ctx);
  const asked = textOf(messages.findLast(({ type }) => type === "human"));
  if (/\bcount\b/i.test(asked)) {
    message.toolCall({ name: "count_words", args: { text: asked } });
    return message.end();
  }
  const { name } = configured(ctx);
  const introduction = typeof name === "string" && name !== "" ? `${name} here. ` : "";
  return streamWords(message, `${introduction}You said: ${asked}`, ctx);
}
