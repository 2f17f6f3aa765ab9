import { Annotation, StateGraph } from "@langchain/langgraph";
import { describe, expect, test } from "vitest";
import { graph, list } from "../../src/index.ts";
import { served } from "../langgraph/support.ts";
import { all, streamOf, transports } from "./support/protocol.ts";
import { serve } from "./support/server.ts";
import { Following, newThread, post, postJson } from "./support/wire.ts";

/** The data that the nodes write, in this order. */
const WRITTEN = [
  { name: "progress", payload: { done: 1 } },
  { name: "other", payload: "not this one" },
  { name: "progress", payload: { done: 2 }, more: true },
  { name: "bare", step: 3 },
  { name: null, payload: 4 },
  { title: "name" },
  ["name"],
  "name",
];

const SEEN = [
  ...WRITTEN.slice(0, 5),
  { payload: { title: "name" } },
  { payload: ["name"] },
  { payload: "name" },
];

const native = graph({
  state: { log: list<string>() },
  nodes: {
    write: async (_, ctx) => {
      for (const one of WRITTEN) ctx.emit(one);
      return { log: ["written"] };
    },
  },
  edges: { start: "write" },
});
const State = Annotation.Root({ log: Annotation<string[]> });
const langGraph = new StateGraph(State)
  .addNode("write", async (_, { writer }) => {
    for (const one of WRITTEN) writer?.(one);
    return { log: ["written"] };
  })
  .addEdge("__start__", "write")
  .compile();

describe.each(transports)("over %s, data with a name", (transport) => {
  describe.each([
    ["of a graph of Heddle's", async () => ({ graphs: { writing: native } })],
    ["of a graph of LangGraph.js", async () => ({ langGraphs: await served({ writing: langGraph }) })],
  ])("%s", (_, graphs) => {
    const start = async () => {
      const { url } = await serve(await graphs());
      return streamOf(url, transport, "writing");
    };

    test("are the event's as they are; others are its payload", async () => {
      const { thread } = await start();
      const custom = await thread.subscribe({ channels: ["custom"] });
      await thread.run.start({ input: { log: [] } });
      await thread.output;
      expect((await all(custom)).map(({ params }) => params.data)).toEqual(SEEN);
    });

    test("have a channel of their own", async () => {
      const { thread } = await start();
      const named = await thread.subscribe({ channels: ["custom:progress", "custom:bare"] });
      await thread.run.start({ input: { log: [] } });
      await thread.output;
      expect((await all(named)).map(({ params }) => params.data)).toEqual(
        WRITTEN.filter(
          (one) => "name" in Object(one) && ["progress", "bare"].includes((one as { name: string }).name),
        ),
      );
    });

    test("reach the client's extensions by their name", async () => {
      const { thread } = await start();
      const progress = thread.extensions["progress"] as AsyncIterable<unknown> & PromiseLike<unknown>;
      await thread.run.start({ input: { log: [] } });
      expect(await all(progress)).toEqual([{ done: 1 }, { done: 2 }]);
      expect(await progress).toEqual({ done: 2 });
    });
  });
});

test("a name that is no text is data, and ends no stream", async () => {
  const odd = graph({
    state: { log: list<string>() },
    nodes: {
      write: async (_, ctx) => {
        ctx.emit({ name: { toString: 5, valueOf: 5 }, payload: 1 });
        ctx.emit({ name: 7 });
        return { log: ["written"] };
      },
    },
    edges: { start: "write" },
  });
  const { url } = await serve({ graphs: { odd } });
  const thread = await newThread(url);
  await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "odd", input: {} });
  const following = new Following(
    await post(`${url}/threads/${thread}/stream/events`, { channels: ["custom"] }),
  );
  await following.until('"data":{"name":{"toString":5,"valueOf":5},"payload":1}');
  await following.until('"data":{"name":7}');
  expect(following.text).not.toContain('"event":"error"');
});
