import { expect, test } from "vitest";
import agent from "../../src/demo/agent.ts";
import approval from "../../src/demo/approval.ts";
import research from "../../src/demo/research.ts";
import type { Message } from "../../src/graph/message.ts";
import { Thread } from "./driver.ts";

const config = { configurable: { delay_ms: 0 }, metadata: {} };
const texts = (thread: Thread) =>
  (thread.values["messages"] as Message[]).map((m) => `${m.type}: ${String(m.content)}`);

test("the agent repeats what it was told, token by token, and calls itself as configured", async () => {
  const thread = new Thread(agent);
  const { trace } = await thread.run({
    input: { messages: [{ role: "user", content: "hello there" }] },
    config,
  });
  expect(trace.filter((one) => one.startsWith("token"))).toEqual([
    "token:You ",
    "token:said: ",
    "token:hello ",
    "token:there",
  ]);
  const named = { ...config, configurable: { delay_ms: 0, name: "Ada" } };
  await thread.run({ input: { messages: [{ role: "human", content: "again" }] }, config: named });
  expect(texts(thread)).toEqual([
    "human: hello there",
    "ai: You said: hello there",
    "human: again",
    "ai: Ada here. You said: again",
  ]);
});

test("the agent calls its tool when asked to count", async () => {
  const thread = new Thread(agent);
  await thread.run({
    input: { messages: [{ role: "user", content: "count these four words please" }] },
    config,
  });
  expect(texts(thread)).toEqual([
    "human: count these four words please",
    "ai: ",
    "tool: 5",
    "ai: That makes 5 words.",
  ]);
});

test("the approval asks, and sends, writes anew or lets it be", async () => {
  const thread = new Thread(approval);
  await thread.run({ input: { topic: "the moon" } });
  expect(Object.values(thread.interrupts).flat()).toMatchObject([{ value: { draft: "Draft 1: the moon" } }]);
  expect((await thread.run({ command: { resume: "yes" } })).error?.message).toContain(
    "resume.ok: must be true",
  );
  await thread.run({ command: { resume: { ok: false, note: "shorter" } } });
  const { values } = await thread.run({ command: { resume: { ok: true } } });
  expect(values).toMatchObject({ topic: "the moon (shorter)", sent: true });
  await thread.run({ input: {} });
  expect((await thread.run({ command: { resume: { ok: false } } })).values).toMatchObject({ sent: false });
});

test("the research looks into all topics at once, and writes one report of its own run", async () => {
  const thread = new Thread(research);
  const { trace } = await thread.run({ input: { question: "Cats, dogs and cats?" }, config });
  expect(trace.filter((one) => /^(task|result):/.test(one))).toEqual([
    "task:plan",
    "result:plan",
    "task:look",
    "task:look",
    "task:look",
    "result:look",
    "result:look",
    "result:look",
    "task:write",
    "result:write",
  ]);
  expect(thread.values["report"]).toBe("Cats has 4 letters. dogs has 4 letters. cats has 4 letters.");
  expect((await thread.run({ input: { question: "birds" }, config })).values["report"]).toBe(
    "birds has 5 letters.",
  );
});
