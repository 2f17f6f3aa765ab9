import { describe, expect, test } from "vitest";
import { graph, value } from "../../src/index.ts";
import { differs } from "./support/suite-variant.ts";
import { serve } from "./support/server.ts";
import { get, newThread, postJson } from "./support/wire.ts";

const fails = (thrown: () => unknown) =>
  graph({
    state: {},
    nodes: {
      breaks: async () => {
        throw thrown();
      },
    },
    edges: { start: "breaks" },
  });

test("where a node failed is logged for its author, and never told to clients", async () => {
  const { url, complaints } = await serve({
    graphs: { broken: fails(() => new TypeError("no such thing")) },
  });
  const thread = await newThread(url);
  const outcome = await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "broken", input: {} });
  expect(outcome).toEqual({ __error__: { error: "TypeError", message: "no such thing" } });
  // The line is written in a turn of its own, which may follow the answer.
  await expect.poll(() => complaints).toHaveLength(1);
  const line = JSON.parse(complaints[0] ?? "") as Record<string, unknown>;
  expect(line).toMatchObject({
    level: "warn",
    message: "a node failed",
    graph: "broken",
    node: "breaks",
    try: 1,
  });
  expect(line["thread_id"]).toBe(thread);
  expect(line["error"]).toMatch(/^TypeError: no such thing\n.*failing-nodes\.test\.ts/s);
});

// `test/langgraph/failing.test.ts` tests timeouts of LangGraph.js graphs.
describe.skipIf(differs("timeouts of nodes"))(
  "a run that fails without an error of a node leaves one line in the log",
  () => {
    const state = { n: value(0) };
    const never = graph({
      state,
      nodes: { slow: { run: () => new Promise<never>(() => undefined), timeout: 20 } },
      edges: { start: "slow" },
    });
    const nested = graph({ state, nodes: { inner: { run: never } }, edges: { start: "inner" } });
    const conflicting = graph({
      state,
      nodes: { a: () => ({ n: 1 }), b: () => ({ n: 2 }) },
      edges: { start: ["a", "b"] },
    });
    const endless = graph({ state, nodes: { a: () => ({}) }, edges: { start: "a", a: "a" } });

    test.each([
      ["InvalidUpdateError", conflicting, "error"],
      ["GraphRecursionError", endless, "error"],
      ["NodeTimeoutError", never, "error"],
      ["NodeTimeoutError", nested, "error"],
    ] as const)("%s", async (error, failing, status) => {
      const { url, complaints } = await serve({ graphs: { failing } });
      const thread = await newThread(url);
      const outcome = await postJson(`${url}/threads/${thread}/runs/wait`, {
        assistant_id: "failing",
        input: {},
      });
      expect(outcome).toMatchObject({ __error__: { error } });
      expect(complaints.map((line) => JSON.parse(line) as unknown)).toEqual([
        expect.objectContaining({
          level: "warn",
          message: "a run failed",
          graph: "failing",
          thread_id: thread,
          run_id: expect.any(String),
          status,
          error: expect.stringMatching(`^${error}: `),
        }),
      ]);
    });
  },
);

test("of a message without end its beginning is kept", async () => {
  const { url } = await serve({ graphs: { broken: fails(() => new Error("x".repeat(100_000))) } });
  const thread = await newThread(url);
  await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "broken", input: {} });
  const { error } = (await (await get(`${url}/threads/${thread}`)).json()) as { error: { message: string } };
  expect(error.message).toBe(`${"x".repeat(16_384)}... (83616 characters more)`);
});
