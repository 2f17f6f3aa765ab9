import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { AIMessage, AIMessageChunk, type BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";
import type { LangGraphRunnableConfig } from "@langchain/langgraph";
import { createMessageMaker } from "../../src/engine/message-writer.ts";
import type { MessageInit, MessageMaker, MessageWriter } from "../../src/graph/node-context.ts";
import type { Message } from "../../src/graph/message.ts";
import type { NodeCall } from "../../src/ports/engine.ts";
import type { NodeIo } from "../../src/ports/node-executor.ts";

/** A chat model whose only answer is supplied by the test, piece by piece, until the test ends it. */
class Spoken extends BaseChatModel {
  readonly #name: string | undefined;
  #pieces: AIMessageChunk[] = [];
  #over = false;
  #wake: () => void = () => undefined;

  constructor(name: string | undefined) {
    super({});
    this.#name = name;
  }

  say(piece: AIMessageChunk): void {
    this.#pieces.push(piece);
    this.#wake();
  }

  end(): void {
    this.#over = true;
    this.#wake();
  }

  override _llmType(): string {
    return "spoken";
  }

  override getLsParams(): ReturnType<BaseChatModel["getLsParams"]> {
    const named = this.#name === undefined ? {} : { ls_model_name: this.#name };
    return { ls_model_type: "chat", ...named } as ReturnType<BaseChatModel["getLsParams"]>;
  }

  override _generate(): Promise<ChatResult> {
    throw new TypeError("It streams, and nothing else");
  }

  override async *_streamResponseChunks(
    _: BaseMessage[],
    options: this["ParsedCallOptions"],
    run?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const stop = () => this.#wake();
    options.signal?.addEventListener("abort", stop, { once: true });
    // oxlint-disable no-await-in-loop -- the pieces are streamed in order
    while (options.signal?.aborted !== true) {
      const message = this.#pieces.shift();
      if (message !== undefined) {
        const text = typeof message.content === "string" ? message.content : "";
        const chunk = new ChatGenerationChunk({ text, message });
        yield chunk;
        await run?.handleLLMNewToken(text, undefined, undefined, undefined, undefined, { chunk });
      } else if (this.#over) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

/** Streams through LangChain chat models, called within the node, what a Heddle node streams through `ctx.message`. */
export function speaking(
  call: Pick<NodeCall, "task" | "attempt" | "try" | "ns">,
  config: LangGraphRunnableConfig,
) {
  const models: { readonly model: Spoken; readonly id: string; readonly name: string | null }[] = [];
  const streams: Promise<unknown>[] = [];
  const piece = (m: number, fields: object) => {
    const { model, id, name } = models[m] as (typeof models)[number];
    model.say(new AIMessageChunk({ content: "", ...fields, id, ...(name !== null && { name }) }));
  };
  const emit: NodeIo["emit"] = (fact) => {
    if (fact.t === "message") {
      const { id, name, meta } = fact;
      const model = new Spoken(meta["ls_model_name"] as string | undefined);
      streams.push(exhausted(model, config));
      return models.push({ model, id, name }) - 1;
    }
    if (fact.t === "token") piece(fact.m, { content: fact.text });
    if (fact.t === "piece") piece(fact.m, fact.chunk);
    return 0;
  };
  const signal = config.signal ?? new AbortController().signal;
  const maker = createMessageMaker(
    { ...call, meta: {} } as NodeCall,
    { emit, signal } as NodeIo,
    check,
    () => undefined,
  );
  const message = (init?: MessageInit): MessageWriter => {
    const writer = maker(init);
    const own = models.at(-1)?.model;
    const end = writer.end.bind(writer);
    return Object.assign(writer, {
      end: () => {
        const whole = messageOf(end());
        own?.end();
        return whole;
      },
    });
  };
  const from: MessageMaker["from"] = async (source, init) => {
    const whole = messageOf(await maker.from(source, init));
    models.at(-1)?.model.end();
    return whole;
  };
  return {
    message: Object.assign(message, { from }) as MessageMaker,
    /** Resolves when everything has been streamed. Ends an unfinished message. */
    async ended(): Promise<void> {
      for (const { model } of models) model.end();
      await Promise.all(streams);
    },
  };
}

const check = () => undefined;

async function exhausted(model: Spoken, config: LangGraphRunnableConfig): Promise<void> {
  try {
    const stream = await model.stream([], config);
    // oxlint-disable-next-line typescript/no-unused-vars -- the graph receives the tokens by its callbacks
    for await (const _ of stream);
  } catch (error) {
    if (config.signal?.aborted !== true) throw error;
  }
}

/** A message as LangChain's models return it. It has the members of Heddle's messages, so a node can return it. */
function messageOf(message: Message): Message {
  const { name } = message;
  const made = new AIMessage({ ...message, name: name ?? undefined } as never);
  return made as unknown as Message;
}
