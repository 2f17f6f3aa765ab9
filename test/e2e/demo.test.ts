import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import type { Message } from "../../src/index.ts";
import { lines, type Client } from "./support/clients.ts";
import { serve } from "./support/server.ts";

const connect = lines[0]?.[1] as (url: string) => Client;

interface Asked {
  readonly authorization: string | undefined;
  readonly body: { readonly model: string; readonly stream: boolean; readonly messages: readonly object[] };
}

/** A server that answers as OpenAI's does: the n-th request gets the n-th list of deltas, or the error. */
async function openAi(...answers: readonly (readonly object[] | number)[]) {
  const asked: Asked[] = [];
  const answerTo = async (request: IncomingMessage, response: ServerResponse) => {
    let text = "";
    for await (const bytes of request) text += String(bytes);
    const body = JSON.parse(text) as Asked["body"];
    const answer = request.url === "/v1/chat/completions" ? answers[asked.length] : 404;
    asked.push({ authorization: request.headers.authorization, body });
    if (typeof answer === "number" || answer === undefined) {
      response.writeHead(answer ?? 500, { "content-type": "application/json" });
      response.end('{"error":{"message":"no such key"}}');
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const chunk = (choices: object[], more: object = {}) =>
      `data: ${JSON.stringify({ id: "c1", object: "chat.completion.chunk", model: `${body.model}-1`, choices, ...more })}\r\n\r\n`;
    response.write(": a comment\n\n");
    for (const delta of answer) response.write(chunk([{ index: 0, delta, finish_reason: null }]));
    response.write(chunk([{ index: 0, delta: {}, finish_reason: "stop" }]));
    response.write(chunk([], { usage: { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 } }));
    response.end("data: [DONE]\n\n");
  };
  const server = createServer((request, response) => void answerTo(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  vi.stubEnv("OPENAI_API_KEY", "sk-test");
  vi.stubEnv("OPENAI_BASE_URL", `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/`);
  return asked;
}

beforeEach(() => {
  vi.stubEnv("OPENAI_API_KEY", "");
  vi.stubEnv("OPENAI_MODEL", "");
});
afterEach(() => {
  vi.unstubAllEnvs();
});

const ask = (content: string) => ({ messages: [{ role: "user", content }] });

test("with a key the agent streams from the API, and calls its tool for it", async () => {
  const call = (first: object, args: string) => ({
    tool_calls: [{ index: 0, ...first, function: { ...first, arguments: args } }],
  });
  const asked = await openAi(
    [
      call({ id: "t1", type: "function", name: "count_words" }, ""),
      call({}, '{"text":'),
      call({}, '"a b c"}'),
    ],
    [{ role: "assistant", content: "" }, { content: "Three " }, { content: "words: é." }],
  );
  const { url } = await serve();
  const client = connect(url);
  const { thread_id } = await client.threads.create();
  const tokens: string[] = [];
  const whole: string[] = [];
  for await (const { event, data } of client.runs.stream(thread_id, "agent", {
    input: ask("How many words are in: a b c"),
    context: { model: "m-9" },
    streamMode: "messages-tuple",
  })) {
    if (event !== "messages") continue;
    const [message, metadata] = data as unknown as [Message, { ls_model_name?: string }];
    if (message.type === "tool") whole.push(String(message.content));
    else if (message.content !== "") tokens.push(String(message.content));
    if (message.type === "ai") expect(metadata.ls_model_name).toBe("m-9");
  }
  expect(tokens).toEqual(["Three ", "words: é."]);
  expect(whole).toEqual(["3"]);
  const { values } = await client.threads.getState<{ messages: Message[] }>(thread_id);
  expect(values.messages.map(({ type, content }) => [type, content])).toEqual([
    ["human", "How many words are in: a b c"],
    ["ai", ""],
    ["tool", "3"],
    ["ai", "Three words: é."],
  ]);
  expect(values.messages[1]?.tool_calls).toEqual([
    { name: "count_words", args: { text: "a b c" }, id: "t1", type: "tool_call" },
  ]);
  expect(values.messages[3]).toMatchObject({
    usage_metadata: { input_tokens: 9, output_tokens: 2, total_tokens: 11 },
    response_metadata: { model_name: "m-9-1", finish_reason: "stop" },
  });
  expect(asked.map(({ authorization }) => authorization)).toEqual(["Bearer sk-test", "Bearer sk-test"]);
  expect(asked[1]?.body).toMatchObject({
    model: "m-9",
    stream: true,
    tools: [{ type: "function", function: { name: "count_words", parameters: { type: "object" } } }],
    messages: [
      { role: "user", content: "How many words are in: a b c" },
      {
        role: "assistant",
        tool_calls: [
          { id: "t1", type: "function", function: { name: "count_words", arguments: '{"text":"a b c"}' } },
        ],
      },
      { role: "tool", content: "3", tool_call_id: "t1" },
    ],
  });
});

test("what the API refuses fails the run, with what it said", async () => {
  await openAi(401);
  vi.stubEnv("OPENAI_MODEL", "m-env");
  const { url } = await serve();
  const client = connect(url);
  const { thread_id } = await client.threads.create();
  await expect(client.runs.wait(thread_id, "agent", { input: ask("hi") })).rejects.toThrow(
    /API answered 401: .*no such key/,
  );
});

test("without a key it is scripted: it streams word by word and calls its tool", async () => {
  const { url } = await serve();
  const client = connect(url);
  const { thread_id } = await client.threads.create();
  const values = await client.runs.wait(thread_id, "agent", {
    input: ask("count these four words"),
    config: { configurable: { delay_ms: 0 } },
  });
  expect((values as { messages: Message[] }).messages.map(({ type, content }) => [type, content])).toEqual([
    ["human", "count these four words"],
    ["ai", ""],
    ["tool", "4"],
    ["ai", "That makes 4 words."],
  ]);
  await expect(
    client.runs.wait(thread_id, "agent", { input: ask("hi"), context: { model: 7 } }),
  ).rejects.toThrow("model must be a string");
});
