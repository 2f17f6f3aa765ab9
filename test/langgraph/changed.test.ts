import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { Client } from "@langchain/langgraph-sdk";
import { describe, expect, test } from "vitest";
import type { App } from "../../src/app.ts";
import { graph, list } from "../../src/index.ts";
import { latches } from "../e2e/support/latches.ts";
import { serve } from "../e2e/support/server.ts";
import { served } from "./support.ts";

const reducer = (a: string[], b: string[]) => a.concat(b);
const State = Annotation.Root({ log: Annotation<string[]>({ reducer, default: () => [] }) });

const kinds = ["LangGraph.js", "native"] as const;
type Kind = (typeof kinds)[number];

type NativeGraphs = Parameters<App["replaceGraphs"]>[0];

interface Graphs {
  readonly native: Record<string, unknown>;
  readonly langGraph: Record<string, unknown>;
}

const NONE: Graphs = { native: {}, langGraph: {} };

/** Only the graph `g` of this kind. */
const only = (kind: Kind, made: unknown): Graphs =>
  kind === "native" ? { ...NONE, native: { g: made } } : { ...NONE, langGraph: { g: made } };

/** Three nodes, each of which waits until the test releases it. */
function gated(kind: Kind) {
  const reached = latches();
  const opened = latches();
  const node = (name: string) => async () => {
    reached(name).pass();
    await opened(name).passed;
    return { log: [`${kind} ${name}`] };
  };
  const made =
    kind === "native"
      ? graph({
          state: { log: list<string>() },
          nodes: { a: node("a"), b: node("b"), c: node("c") },
          edges: { start: "a", a: "b", b: "c" },
        })
      : new StateGraph(State)
          .addNode("a", node("a"))
          .addNode("b", node("b"))
          .addNode("c", node("c"))
          .addEdge(START, "a")
          .addEdge("a", "b")
          .addEdge("b", "c")
          .compile();
  return {
    graphs: only(kind, made),
    waits: (name: string) => reached(name).passed,
    open: (...names: readonly string[]) => {
      for (const name of names) opened(name).pass();
    },
  };
}

async function start({ native, langGraph }: Graphs) {
  const app = await serve({ graphs: native as NativeGraphs, langGraphs: await served(langGraph) });
  const client = new Client({ apiUrl: app.url, callerOptions: { maxRetries: 0 } });
  return {
    app,
    client,
    replace: async (graphs: Graphs) =>
      app.replaceGraphs(graphs.native as NativeGraphs, await served(graphs.langGraph)),
  };
}

const words = (kind: Kind) => ["a", "b", "c"].map((name) => `${kind} ${name}`);

describe.each(kinds)("a %s graph that is replaced while its run is at work", (kind) => {
  const other = kind === "native" ? "LangGraph.js" : "native";

  test.each([
    ["taken out", () => NONE],
    [`replaced by a ${other} graph`, () => gated(other).graphs],
    ["replaced by another of its kind", () => gated(kind).graphs],
  ])("%s: the run goes on with the graph that it began with", async (_, next) => {
    const { graphs, waits, open } = gated(kind);
    const { client, replace } = await start(graphs);
    const { thread_id } = await client.threads.create();
    const { run_id } = await client.runs.create(thread_id, "g", { input: { log: [] } });
    await waits("a");
    await replace(next());
    open("a", "b", "c");
    await client.runs.join(thread_id, run_id);
    expect(await client.runs.get(thread_id, run_id)).toMatchObject({ status: "success" });
    expect((await client.threads.getState(thread_id)).values).toEqual({ log: words(kind) });
  });

  test("what is queued behind it takes the graph of today, or says that there is none", async () => {
    const first = gated(kind);
    const { client, replace } = await start(first.graphs);
    const { thread_id } = await client.threads.create();
    const runs = [];
    for (let n = 0; n < 3; n++) {
      // oxlint-disable-next-line no-await-in-loop -- the order of the runs matters
      runs.push(
        await client.runs.create(thread_id, "g", { input: { log: [] }, multitaskStrategy: "enqueue" }),
      );
    }
    const [one, two, three] = runs.map(({ run_id }) => run_id) as [string, string, string];
    await first.waits("a");
    const second = gated(other);
    await replace(second.graphs);
    first.open("a", "b", "c");
    await client.runs.join(thread_id, one);
    await second.waits("a");
    await replace(NONE);
    second.open("a", "b", "c");
    await client.runs.join(thread_id, two);
    await client.runs.join(thread_id, three).catch(() => undefined);
    const found = await Promise.all([one, two, three].map((id) => client.runs.get(thread_id, id)));
    expect(found.map(({ status }) => status)).toEqual(["success", "success", "error"]);
    const { values } = await client.threads.getState(thread_id);
    expect(values).toEqual({ log: [...words(kind), ...words(other)] });
  });
});
