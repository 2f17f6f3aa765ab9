import { START, StateGraph } from "@langchain/langgraph";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { type App, createApp } from "../../src/app.ts";
import { graph, value } from "../../src/index.ts";
import { get, newThread, post } from "../e2e/support/wire.ts";
import { served } from "./support.ts";

const own = graph({
  state: { n: z.number().optional(), one: value<number>() },
  nodes: { work: async ({ n }) => (n === 1 ? ({ n: "one" } as never) : {}) },
  edges: { start: "work" },
});
const hosted = new StateGraph(z.object({ n: z.number().optional() }))
  .addNode("work", () => ({}))
  .addEdge(START, "work")
  .compile();

/** Requests `path` of a new server, on a thread that has had a run. */
async function ask(path: string, body: object): Promise<{ readonly status: number; readonly read: unknown }> {
  const app: App = await createApp({ graphs: { own }, langGraphs: await served({ hosted }) });
  onTestFinished(() => app.close(0));
  const thread = await newThread(app.url);
  const { assistant_id = "own" } = body as { assistant_id?: string };
  const run = { assistant_id, input: { n: 0 } };
  expect((await post(`${app.url}/threads/${thread}/runs/wait`, run)).status).toBe(200);
  const answer = await post(`${app.url}/threads/${thread}${path}`, body);
  return { status: answer.status, read: await answer.json() };
}

const misfits = [
  ["an input", { input: { n: "one" } }, "input.n"],
  ["a command", { command: { update: { n: "one" } } }, "command.update.n"],
] as const;

describe("what does not fit the state, as the guide tells it", () => {
  test.each(misfits)("%s of a run is refused by Heddle's own graphs", async (_, body, at) => {
    const { status, read } = await ask("/runs/wait", { assistant_id: "own", ...body });
    expect(status).toBe(422);
    expect(read).toMatchObject({ code: "validation.failed", errors: [{ at }] });
  });

  test.each(misfits)("%s fails a run of LangGraph.js, which alone can tell", async (_, body) => {
    const { status, read } = await ask("/runs/wait", { assistant_id: "hosted", ...body });
    expect(status).toBe(200);
    expect(read).toMatchObject({ __error__: { message: expect.stringContaining("expected number") } });
  });

  test.each([
    ["own", "state.invalid"],
    ["hosted", "validation.failed"],
  ])("an update of the state is refused: %s, %s", async (assistant_id, code) => {
    const { status, read } = await ask("/state", { assistant_id, values: { n: "one" } });
    expect(status).toBe(422);
    expect(read).toMatchObject({ code });
  });

  test.each(["own", "hosted"])(
    "an answer is refused where the graph has ended, or not begun: %s",
    async (graph_id) => {
      const answer = { assistant_id: graph_id, command: { resume: 1 } };
      const app: App = await createApp({ graphs: { own }, langGraphs: await served({ hosted }) });
      onTestFinished(() => app.close(0));
      const ended = await newThread(app.url);
      const run = { assistant_id: graph_id, input: { n: 0 } };
      expect((await post(`${app.url}/threads/${ended}/runs/wait`, run)).status).toBe(200);
      for (const path of [`/threads/${ended}`, `/threads/${await newThread(app.url)}`, ""]) {
        // oxlint-disable-next-line no-await-in-loop -- one after the other
        const refused = await post(`${app.url}${path}/runs/wait`, answer);
        expect(refused.status, path).toBe(422);
        // oxlint-disable-next-line no-await-in-loop
        expect(await refused.json()).toMatchObject({ code: "resume.invalid" });
      }
      const state = (await (await get(`${app.url}/threads/${ended}/history`)).json()) as object[];
      expect(state[0]).toMatchObject({ values: { n: 0 }, next: [] });
    },
  );

  test("a node's return fails the run", async () => {
    const { status, read } = await ask("/runs/wait", { assistant_id: "own", input: { n: 1 } });
    expect(status).toBe(200);
    expect(read).toMatchObject({ __error__: { error: "InvalidUpdateError" } });
  });
});
