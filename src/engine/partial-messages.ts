import type { JsonObject } from "../model/json.ts";
import type { StreamedFact } from "../ports/engine.ts";
import { ContentBlocks } from "./content-blocks.ts";

interface PartialMessage {
  readonly id: string;
  readonly name: string | null;
  readonly model: unknown;
  text: string;
  blocks: ContentBlocks | undefined;
}

/**
 * The partial messages that a task has streamed, each marked as interrupted. Tool calls are left out, because nobody will
 * answer them, and models refuse conversations with unanswered calls. Messages without content are left out too.
 */
export function partialMessages(streamed: readonly StreamedFact[]): readonly JsonObject[] {
  const begun = new Map<number, PartialMessage>();
  for (const { id, fact } of streamed) {
    if (fact.t === "message") {
      const { id: message, name, meta } = fact;
      begun.set(id, { id: message, name, model: meta["ls_model_name"], text: "", blocks: undefined });
    } else if (fact.t === "token") {
      const message = begun.get(fact.m);
      if (message !== undefined) message.text += fact.text;
    } else if (fact.t === "piece" && Array.isArray(fact.chunk["content"])) {
      const message = begun.get(fact.m);
      if (message === undefined) continue;
      message.blocks ??= new ContentBlocks(message.text);
      for (const block of fact.chunk["content"] as readonly JsonObject[]) message.blocks.add(block);
    }
  }
  const partials: JsonObject[] = [];
  for (const { id, name, model, text, blocks } of begun.values()) {
    // Leaves out the index, which is the same as the position in the list.
    const content = blocks?.list.map(({ index: _index, ...block }) => block) ?? text;
    if (content.length === 0) continue;
    const response_metadata = { ...(typeof model === "string" && { model_name: model }), interrupted: true };
    partials.push({ type: "ai", id, name, content, response_metadata });
  }
  return partials;
}
