import { AIMessage, AIMessageChunk } from "@langchain/core/messages";
import { ChatGenerationChunk } from "@langchain/core/outputs";
import { FakeListChatModel } from "@langchain/core/utils/testing";
import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { describe, expect, test } from "vitest";
import { createMachine } from "xstate";
import { graph, list, messages } from "../../src/index.ts";
import { served } from "../langgraph/support.ts";
import { latch, unlessAborted } from "./support/latches.ts";
import { directory, serve } from "./support/server.ts";
import { ShiftedTime } from "./support/shifted-time.ts";
import { dial } from "./support/sockets.ts";
import { newThread, post, postJson } from "./support/wire.ts";

interface Found {
  readonly run_id: string;
  readonly origin: string | null;
  readonly usage: readonly {
    readonly models: readonly string[];
    readonly input_tokens: number;
    readonly output_tokens: number;
  }[];
}

/** The types of LangChain's messages have no tokens. */
const usage = (input_tokens: number, output_tokens: number) =>
  ({ input_tokens, output_tokens, total_tokens: input_tokens + output_tokens }) as never;

const HELLO = { messages: [{ role: "human", content: "hello" }] };

/** Newest first. */
const found = (url: string, search: object = {}) => postJson<readonly Found[]>(`${url}/runs/search`, search);

async function usageOf(url: string, search: object = {}) {
  const [run] = await found(url, search);
  return run?.usage.map(({ models, input_tokens, output_tokens }) => [models, input_tokens, output_tokens]);
}

const wait = async (url: string, assistant_id: string, more: object = {}) => {
  const thread = await newThread(url);
  await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id, input: {}, ...more });
  return thread;
};

describe("the tokens of a run", () => {
  const inner = graph({
    state: { messages: messages() },
    nodes: {
      ask: async (_, ctx) => {
        const message = ctx.message({ model: "large" });
        message.write("hello");
        message.usage({ input_tokens: 100, output_tokens: 20 });
        return { messages: [message.end()] };
      },
    },
    edges: { start: "ask" },
  });
  const outer = graph({
    state: { messages: messages() },
    nodes: {
      sub: inner,
      // Its answer is not kept in the state.
      aside: async (_, ctx) => {
        const message = ctx.message({ model: "small" });
        message.usage({ input_tokens: 7, output_tokens: 3 });
        message.end();
        return {};
      },
      whole: async () => ({
        messages: [
          {
            role: "ai",
            content: "done",
            response_metadata: { model_name: "large" },
            usage_metadata: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
          },
        ],
      }),
    },
    edges: { start: "sub", sub: "aside", aside: "whole" },
  });

  test("are those of all its messages, each counted once, by model", async () => {
    const { url } = await serve({ graphs: { outer } });
    await wait(url, "outer");
    expect(await usageOf(url)).toEqual([
      [["large"], 101, 22],
      [["small"], 7, 3],
    ]);
  });

  test("are none where no message names any", async () => {
    const silent = graph({
      state: { log: list<string>() },
      nodes: { go: async () => ({ log: ["done"] }) },
      edges: { start: "go" },
    });
    const { url } = await serve({ graphs: { silent } });
    await wait(url, "silent");
    expect(await usageOf(url)).toEqual([]);
  });

  test("are those of all attempts, after a stop and after steps that were stored", async () => {
    const reached = latch();
    const steps = () =>
      graph({
        state: { messages: messages() },
        nodes: {
          one: async (_, ctx) => {
            const message = ctx.message({ model: "large" });
            message.usage({ input_tokens: 5, output_tokens: 1 });
            return { messages: [message.end()] };
          },
          two: async (_, ctx) => {
            const message = ctx.message({ model: "large" });
            message.usage({ input_tokens: 10, output_tokens: 2 });
            const whole = message.end();
            reached.pass();
            if (ctx.attempt === 1) await unlessAborted(new Promise(() => undefined), ctx.signal);
            return { messages: [whole] };
          },
        },
        edges: { start: "one", one: "two" },
      });
    const data = await directory();
    const first = await serve({ graphs: { steps: steps() }, data });
    const thread = await newThread(first.url);
    await post(`${first.url}/threads/${thread}/runs`, { assistant_id: "steps", input: {} });
    await reached.passed;
    await first.close(0);
    const { url } = await serve({ graphs: { steps: steps() }, data });
    await expect.poll(async () => (await found(url, { status: "success" })).length).toBe(1);
    expect(await usageOf(url)).toEqual([[["large"], 25, 5]]);
  });

  test("are counted in runs of LangGraph.js graphs, whatever the run streams", async () => {
    /** Reports the tokens of the input and of the output in chunks of their own, as some models do. */
    class Counting extends FakeListChatModel {
      override async *_streamResponseChunks() {
        const piece = (content: string, input_tokens: number, output_tokens: number, model_name?: string) =>
          new ChatGenerationChunk({
            text: content,
            message: new AIMessageChunk({
              id: "streamed",
              content,
              usage_metadata: usage(input_tokens, output_tokens),
              ...(model_name !== undefined && { response_metadata: { model_name } }),
            }),
          });
        yield piece("hel", 40, 0, "large-2026");
        yield piece("lo", 0, 2);
      }
      override async _generate() {
        const message = new AIMessage({
          id: "streamed",
          content: "hello",
          usage_metadata: usage(40, 2),
          response_metadata: { model_name: "large-2026" },
        });
        return { generations: [{ text: "hello", message }] };
      }
    }
    const model = new Counting({ responses: ["hello"] });
    const talking = new StateGraph(MessagesAnnotation)
      .addNode("talk", async ({ messages: given }) => ({
        messages: [...given, await model.invoke([["human", "hello"]])],
      }))
      .addNode("whole", () => ({
        messages: [
          new AIMessage({
            id: "whole",
            content: "done",
            usage_metadata: usage(1, 1),
          }),
        ],
      }))
      .addEdge(START, "talk")
      .addEdge("talk", "whole")
      .compile();
    const { url } = await serve({ langGraphs: await served({ talking }) });
    for (const stream_mode of [["values"], ["values", "messages-tuple"]]) {
      const thread = await wait(url, "talking", { stream_mode, input: HELLO });
      const first = await usageOf(url, { thread_id: thread });
      expect(first?.map(([, input, output]) => [input, output])).toEqual([
        [40, 2],
        [1, 1],
      ]);
      expect(first?.[0]?.[0]).toContain("large-2026");
    }
  });

  test("do not include those of messages that an earlier run wrote, though a node returns them again", async () => {
    const repeating = new StateGraph(MessagesAnnotation)
      .addNode("go", ({ messages: given }) => ({
        messages: [
          ...given,
          new AIMessage({
            id: `m${given.length}`,
            content: "done",
            usage_metadata: usage(3, 1),
          }),
        ],
      }))
      .addEdge(START, "go")
      .compile();
    const { url } = await serve({ langGraphs: await served({ repeating }) });
    const thread = await wait(url, "repeating", { input: HELLO });
    await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "repeating", input: HELLO });
    expect((await found(url)).map(({ usage }) => usage.map((one) => one.input_tokens))).toEqual([[3], [3]]);
  });
});

describe("the origin of a run", () => {
  const work = graph({
    state: { log: list<string>() },
    nodes: { go: async () => ({ log: ["done"] }) },
    edges: { start: "go" },
  });

  test("is HTTP, or the socket over which it was started; a client cannot choose it", async () => {
    const { url } = await serve({ graphs: { work } });
    const body = { assistant_id: "work", input: {}, origin: "cron" };
    const thread = await wait(url, "work", body);
    const socket = await dial(`${url}/threads/${thread}/stream`);
    await socket.ask({ id: "1", type: "run", multitask_strategy: "enqueue", ...body });
    const protocol = await dial(`${url}/threads/${thread}/stream/events`);
    protocol.send({ id: 1, method: "run.start", params: body });
    const origins = async (search: object = {}) => (await found(url, search)).map(({ origin }) => origin);
    await expect.poll(origins).toEqual(["socket", "socket", "http"]);
    expect(await origins({ origin: "http" })).toEqual(["http"]);
    expect(await origins({ origin: "cron" })).toEqual([]);
  });

  test("is the timer of its machine", async () => {
    const light = createMachine({
      id: "light",
      initial: "green",
      states: { green: { after: { 60_000: "red" } }, red: { type: "final" } },
    });
    const time = new ShiftedTime();
    const { url } = await serve({ graphs: { light } as never, ...time });
    await wait(url, "light");
    time.advance(60_000);
    await expect.poll(async () => (await found(url)).map(({ origin }) => origin)).toEqual(["timer", "http"]);
    expect(await found(url, { origin: "timer" })).toHaveLength(1);
  });
});
