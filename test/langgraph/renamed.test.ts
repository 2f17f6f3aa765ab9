import { Annotation, interrupt, START, StateGraph } from "@langchain/langgraph";
import { Client } from "@langchain/langgraph-sdk";
import { describe, expect, test } from "vitest";
import type { App } from "../../src/app.ts";
import { type Ctx, graph, list } from "../../src/index.ts";
import { serve } from "../e2e/support/server.ts";
import { served } from "./support.ts";

type NativeGraphs = Parameters<App["replaceGraphs"]>[0];

const reducer = (a: string[], b: string[]) => a.concat(b);
const State = Annotation.Root({ log: Annotation<string[]>({ reducer, default: () => [] }) });

const kinds = ["LangGraph.js", "native"] as const;
type Kind = (typeof kinds)[number];

const says = (word: string) => async () => ({ log: [word] });

/** A graph that asks in its second node, which has this name. */
function asking(kind: Kind, name: string): unknown {
  if (kind === "native") {
    return graph({
      state: { log: list<string>() },
      nodes: {
        begin: says("began"),
        [name]: async (_: unknown, ctx: Ctx) => ({ log: [String(await ctx.interrupt("sure?"))] }),
        end: says("end"),
      },
      edges: { start: "begin", begin: name, [name]: "end" } as object,
    } as never);
  }
  return new StateGraph(State)
    .addNode("begin", says("began"))
    .addNode(name, () => ({ log: [String(interrupt("sure?"))] }))
    .addNode("end", says("end"))
    .addEdge(START, "begin")
    .addEdge("begin", name as "begin")
    .addEdge(name as "begin", "end")
    .compile();
}

/** The same within a graph that is a node. */
function nested(kind: Kind, name: string): unknown {
  const inner = asking(kind, name);
  if (kind === "native") {
    return graph({
      state: { log: list<string>() },
      nodes: { sub: inner as ReturnType<typeof graph>, last: says("last") },
      edges: { start: "sub", sub: "last" },
    } as never);
  }
  return new StateGraph(State)
    .addNode("sub", inner as ReturnType<StateGraph<typeof State>["compile"]>)
    .addNode("last", says("last"))
    .addEdge(START, "sub")
    .addEdge("sub", "last")
    .compile();
}

/** LangGraph.js only: the same within a graph that a node calls. */
function called(name: string): unknown {
  const inner = asking("LangGraph.js", name) as { invoke(input: object): Promise<{ log: string[] }> };
  return new StateGraph(State)
    .addNode("sub", async () => ({ log: (await inner.invoke({ log: [] })).log }))
    .addNode("last", says("last"))
    .addEdge(START, "sub")
    .addEdge("sub", "last")
    .compile();
}

async function paused(kind: Kind, made: unknown) {
  const langGraphs = (graphs: object) => served(graphs as Record<string, unknown>);
  const is = (one: Kind, of: unknown) => (one === kind ? { g: of } : {});
  const app = await serve({
    graphs: is("native", made) as NativeGraphs,
    langGraphs: await langGraphs(is("LangGraph.js", made)),
  });
  const client = new Client({ apiUrl: app.url, callerOptions: { maxRetries: 0 } });
  const { thread_id } = await client.threads.create();
  await client.runs.wait(thread_id, "g", { input: { log: [] } });
  return {
    client,
    thread_id,
    replace: async (next: unknown, as: Kind = kind) =>
      app.replaceGraphs(
        (as === "native" ? { g: next } : {}) as NativeGraphs,
        await langGraphs(as === "native" ? {} : { g: next }),
      ),
    wait: (payload: object) => client.runs.wait(thread_id, "g", { raiseError: false, ...payload }),
    seen: async () => {
      const [thread, state, runs] = await Promise.all([
        client.threads.get(thread_id),
        client.threads.getState(thread_id),
        client.runs.list(thread_id),
      ]);
      const { values, next, tasks, checkpoint } = state;
      const questions = tasks.flatMap(({ interrupts }) => interrupts.map(({ value }) => value));
      return { status: thread.status, run: runs[0]?.status, values, next, questions, checkpoint };
    },
  };
}

const changed = { __error__: { error: "GraphChangedError", message: expect.stringContaining('"ask"') } };

describe.each(kinds)("a thread that waits at a node of a %s graph which gets another name", (kind) => {
  test.each([
    ["an answer", { command: { resume: "yes" } }],
    ["an answer by the question's id", "by id"],
    ["no input", { input: null }],
  ])("%s fails the run and loses nothing; the old name brings it back", async (_, asked) => {
    const { client, thread_id, replace, wait, seen } = await paused(kind, asking(kind, "ask"));
    const before = await seen();
    expect(before).toMatchObject({ status: "interrupted", next: ["ask"], questions: ["sure?"] });
    const { tasks } = await client.threads.getState(thread_id);
    const id = tasks[0]?.interrupts[0]?.id ?? "";
    await replace(asking(kind, "approve"));
    const payload = typeof asked === "string" ? { command: { resume: { [id]: "yes" } } } : asked;
    expect(await wait(payload)).toMatchObject(changed);
    expect(await seen()).toEqual({ ...before, run: "error" });
    await replace(asking(kind, "ask"));
    expect(await wait({ command: { resume: "no" } })).toEqual({ log: ["began", "no", "end"] });
    expect(await seen()).toMatchObject({ status: "idle", run: "success", next: [] });
  });

  test("from a checkpoint that is named it fails too, and the thread stays where it is", async () => {
    const { replace, wait, seen } = await paused(kind, asking(kind, "ask"));
    const before = await seen();
    await replace(asking(kind, "approve"));
    expect(await wait({ input: null, checkpointId: before.checkpoint.checkpoint_id })).toMatchObject(changed);
    expect(await seen()).toEqual({ ...before, run: "error" });
  });

  test("a new input is taken, and so is a goto to a node that there is", async () => {
    const { replace, wait } = await paused(kind, asking(kind, "ask"));
    await replace(asking(kind, "approve"));
    expect(await wait({ command: { goto: "approve" } })).toMatchObject({
      __interrupt__: [{ value: "sure?" }],
    });
    expect(await wait({ input: { log: ["again"] } })).toMatchObject({ __interrupt__: [{ value: "sure?" }] });
    expect(await wait({ command: { resume: "ok" } })).toMatchObject({
      log: ["began", "again", "began", "ok", "end"],
    });
  });

  const inner: (readonly [string, (name: string) => unknown])[] = [
    ["a graph that is a node", (name) => nested(kind, name)],
  ];
  if (kind === "LangGraph.js") inner.push(["a graph that a node calls", called]);
  test.each(inner)("within %s: the run fails, and the old name brings it back", async (_, made) => {
    const { replace, wait, seen } = await paused(kind, made("ask"));
    const before = await seen();
    expect(before).toMatchObject({ status: "interrupted", next: ["sub"], questions: ["sure?"] });
    await replace(made("approve"));
    expect(await wait({ command: { resume: "yes" } })).toMatchObject(changed);
    const { status, ...failed } = await seen();
    expect(["error", "interrupted"]).toContain(status);
    expect(failed).toEqual({ ...before, status: undefined, run: "error" });
    await replace(made("ask"));
    expect(await wait({ command: { resume: "no" } })).toMatchObject({
      log: ["began", "no", "end", "last"],
    });
    expect(await seen()).toMatchObject({ status: "idle", run: "success", next: [] });
  });

  const other = kind === "native" ? "LangGraph.js" : "native";
  test(`a ${other} graph takes its name and back: nothing is lost`, async () => {
    const { replace, wait, seen } = await paused(kind, asking(kind, "ask"));
    const before = await seen();
    await replace(asking(other, "approve"), other);
    expect(await wait({ command: { resume: "yes" } })).toMatchObject(changed);
    expect(await seen()).toEqual({ ...before, run: "error" });
    await replace(asking(kind, "ask"));
    expect(await wait({ command: { resume: "no" } })).toEqual({ log: ["began", "no", "end"] });
  });
});
