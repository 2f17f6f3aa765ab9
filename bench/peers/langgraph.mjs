/** The graphs of `graphs.ts`, written for the official LangGraph server. */
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, AIMessageChunk } from "@langchain/core/messages";
import { ChatGenerationChunk } from "@langchain/core/outputs";
import { Annotation, MessagesAnnotation, StateGraph } from "@langchain/langgraph";

const breathe = () => new Promise((resolve) => setImmediate(resolve));
const BURST = 256;

const last = () => Annotation();

const oneNode = (state, node) =>
  new StateGraph(state).addNode("work", node).addEdge("__start__", "work").compile();

export const one = oneNode(Annotation.Root({ value: last(), text: last() }), async (state) => ({
  value: (state.value ?? 0) + 1,
}));

export const chat = oneNode(Annotation.Root({ ...MessagesAnnotation.spec, topic: last() }), async () => ({
  messages: [new AIMessage("y".repeat(200))],
}));

/** The same padding as in Heddle's graph `emit` (`servers/bodies.ts`). */
const PAD = Buffer.alloc(64 * 1024, "x").toString("latin1");
const BARE = `{"i":,"pad":""}`.length;

export const emit = oneNode(
  Annotation.Root({ count: last(), size: last(), emitted: last() }),
  async (state, config) => {
    for (let i = 0; i < state.count; i++) {
      config.writer({ i, pad: PAD.slice(0, Math.max(0, state.size - BARE - String(i).length)) });
      if (i % BURST === BURST - 1) await breathe();
    }
    return { emitted: state.count };
  },
);

/** A model that streams `count` tokens. In LangGraph, only a model can emit tokens. */
class Speaker extends BaseChatModel {
  constructor(count) {
    super({});
    this.count = count;
  }

  _llmType() {
    return "speaker";
  }

  async _generate() {
    throw new Error("It only streams");
  }

  async *_streamResponseChunks(_messages, _options, run) {
    for (let i = 0; i < this.count; i++) {
      const text = "word ";
      const chunk = new ChatGenerationChunk({ text, message: new AIMessageChunk(text) });
      yield chunk;
      await run?.handleLLMNewToken(text, undefined, undefined, undefined, undefined, { chunk });
      if (i % BURST === BURST - 1) await breathe();
    }
  }
}

export const tokens = oneNode(
  Annotation.Root({ ...MessagesAnnotation.spec, count: last() }),
  async (state, config) => ({ messages: [await new Speaker(state.count).invoke("go", config)] }),
);

export const slow = oneNode(Annotation.Root({ value: last() }), async () => {
  await new Promise((resolve) => setTimeout(resolve, 200));
  return { value: 1 };
});
