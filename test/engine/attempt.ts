import { graph, value, type Ctx } from "../../src/index.ts";
import type { Fact } from "../../src/model/run-event.ts";
import type { NodeCall } from "../../src/ports/engine.ts";
import { systemScheduler } from "../../src/platform/scheduler.ts";
import { GraphRegistry } from "../../src/graph/graph-registry.ts";
import { createInThreadNodeExecutor } from "../../src/engine/in-thread-node-executor.ts";

export const quiet = { debug() {}, info() {}, warn() {}, error() {} };
export const random = { bytes: (count: number) => new Uint8Array(count), float: () => 0 };
export const clock = { now: () => 0, mono: () => 0 };
export const call: NodeCall = {
  graph: "g",
  engine: "native",
  edition: 1,
  node: "a",
  task: "44444444-0000-5000-8000-000000000000",
  ns: "",
  run: "r",
  thread: "t",
  tenant: "_",
  assistant: "x",
  attempt: 1,
  subgraph: false,
  try: 1,
  tries: 1,
  timeout: null,
  step: 1,
  input: {},
  config: { configurable: { k: 1 } },
  context: { model: "m" },
  resumes: [],
  steps: {},
  meta: { langgraph_node: "a" },
};

/** Runs one body as a task's attempt. */
export async function attempt(
  body: (ctx: Ctx) => unknown,
  options: Partial<NodeCall> & { signal?: AbortSignal } = {},
) {
  const registry = new GraphRegistry();
  const run = async (_: unknown, ctx: Ctx) => (await body(ctx)) as never;
  registry.add("g", graph({ state: { free: value<unknown>() }, nodes: { a: run }, edges: { start: "a" } }));
  const facts: Fact[] = [];
  const records: [string, unknown][] = [];
  let isOver = false;
  const { signal = new AbortController().signal, ...rest } = options;
  const outcome = await createInThreadNodeExecutor(registry, {
    logger: quiet,
    random,
    clock,
    scheduler: systemScheduler,
  }).run(
    { ...call, ...rest },
    {
      emit: (fact) => (isOver ? -1 : facts.push(fact) - 1),
      record: async (step, stored) => void records.push([step, stored]),
      store: () => Promise.reject(new Error("no store here")),
      signal,
      end: () => {
        isOver = true;
      },
    },
  );
  return { outcome, facts, records };
}
