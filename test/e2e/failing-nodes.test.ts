import { expect, test } from "vitest";
import { graph } from "../../src/index.ts";
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
  expect(complaints).toHaveLength(1);
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

test("of a message without end its beginning is kept", async () => {
  const { url } = await serve({ graphs: { broken: fails(() => new Error("x".repeat(100_000))) } });
  const thread = await newThread(url);
  await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "broken", input: {} });
  const { error } = (await (await get(`${url}/threads/${thread}`)).json()) as { error: { message: string } };
  expect(error.message).toBe(`${"x".repeat(16_384)}... (83616 characters more)`);
});
