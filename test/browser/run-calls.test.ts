import { describe, expect, test } from "vitest";
import type { Run } from "../../src/dashboard/api/records.ts";
import { Trace } from "../../src/dashboard/live/trace.ts";
import {
  callContains,
  callsByTask,
  formatCost,
  callTotalsOf,
  type TaskCall,
} from "../../src/dashboard/run/run-calls.ts";
import { criticalPath } from "../../src/dashboard/run/critical-path.ts";
import { timelineGroups } from "../../src/dashboard/run/timeline-rows.ts";
import { traceAsJson } from "../../src/dashboard/run/trace-json.ts";

const T = Date.UTC(2026, 0, 1);
const PRICES = { large: { in: 2, out: 10 }, "small-2026": { in: 0, out: 1 } };

function traced() {
  const trace = new Trace("run");
  let id = 0;
  const take = (event: string, data: unknown) => trace.take({ id: String(id++), event, data });
  const debug = (type: string, ms: number, payload: object, ns = "", step = 1) =>
    take(ns === "" ? "debug" : `debug|${ns}`, {
      type,
      step,
      timestamp: new Date(T + ms).toISOString(),
      payload,
    });
  return {
    trace,
    take,
    begin: (name: string, ms = 0, { ns = "", step = 1, input = {} } = {}) =>
      debug("task", ms, { id: name, name, input }, ns, step),
    end: (name: string, ms = 9, { ns = "", step = 1, result = {} as unknown } = {}) =>
      debug("task_result", ms, { id: name, name, result, interrupts: [] }, ns, step),
    say: (task: string, message: object, metadata: object = {}) =>
      take("messages", [message, { langgraph_checkpoint_ns: `${task}:${task}`, ...metadata }]),
    calls: () => callsByTask(trace, timelineGroups(trace), PRICES),
    sums: () => callTotalsOf(callsByTask(trace, timelineGroups(trace), PRICES), trace.tasks.values()),
  };
}

const usage = (input_tokens: number, output_tokens: number) => ({
  usage_metadata: { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens },
});
const shortOf = (calls: readonly TaskCall[] = []) =>
  calls.map((call) =>
    call.kind === "model"
      ? [call.models[0], call.tokensIn, call.tokensOut, call.cost]
      : [call.name, call.args, call.status, call.text],
  );

describe("the calls of a run", () => {
  test("are those of models, with tokens and cost, and of tools, in the tasks that made and answered them", () => {
    const { begin, end, say, calls, sums } = traced();
    begin("agent");
    const named = { ls_model_name: "large" };
    say("agent", { id: "m", type: "AIMessageChunk", content: "Let me ", ...usage(1_000, 0) }, named);
    const chunk = { index: 0, id: "c", name: "search", args: '{"q":"tea"}' };
    const open = { index: 1, id: "o", name: "mail", args: "{}" };
    const last = { tool_call_chunks: [chunk, open], ...usage(0, 50) };
    say("agent", { id: "m", type: "AIMessageChunk", content: "look.", ...last }, named);
    end("agent");
    begin("tools");
    say("tools", { id: "t", type: "tool", tool_call_id: "c", content: "green", status: "success" });
    end("tools");
    expect(shortOf(calls().get("agent"))).toEqual([
      ["large", 1_000, 50, 0.0025],
      ["mail", "{}", "unanswered", ""],
    ]);
    expect(shortOf(calls().get("tools"))).toEqual([["search", '{"q":"tea"}', "done", "green"]]);
    expect(sums()).toMatchObject({ calls: 1, tokensIn: 1_000, tokensOut: 50, cost: 0.0025, toolCalls: 2 });
    const [model] = calls().get("agent") ?? [];
    expect(model !== undefined && callContains(model, "LOOK")).toBe(true);
    expect(model !== undefined && callContains(model, "green")).toBe(false);
  });

  test("are also found in what tasks returned, once each: in the task of the subgraph that made them", () => {
    const { begin, end, calls, sums } = traced();
    const given = { type: "ai", id: "before", content: "earlier", ...usage(7, 7) };
    const answer = {
      type: "ai",
      id: "m",
      content: "yes",
      response_metadata: { model_name: "small-2026" },
      ...usage(3, 2),
    };
    begin("outer", 0, { input: { messages: [given] } });
    begin("inner", 0, { ns: "outer:outer", input: { messages: [given] } });
    end("inner", 5, { ns: "outer:outer", result: { messages: [given, answer] } });
    end("outer", 9, { result: [["messages", [given, answer]]] });
    expect(calls().get("outer")).toEqual([]);
    expect(shortOf(calls().get("inner"))).toEqual([["small-2026", 3, 2, 0.000_002]]);
    expect(sums().calls).toBe(1);
  });

  test("have the tokens that only the returned message knows, and none where nobody tells", () => {
    const { begin, end, say, calls, sums } = traced();
    begin("a");
    say("a", { id: "m", type: "ai", content: "hi" });
    say("a", { id: "n", type: "ai", content: "ho" });
    end("a", 9, {
      result: { messages: { type: "ai", id: "m", content: "hi", ...usage(4, 1) }, other: { content: 1 } },
    });
    expect(shortOf(calls().get("a"))).toEqual([
      [undefined, 4, 1, null],
      [undefined, null, null, null],
    ]);
    expect(sums()).toMatchObject({ cost: null, models: [{ model: "model", calls: 2 }] });
  });

  test("are summed by model; what a price is not known of has no cost", () => {
    const { begin, say, sums } = traced();
    begin("a");
    const from = (id: string, model_name: string, tokens: object) =>
      say("a", { id, type: "ai", content: "", response_metadata: { model_name }, ...tokens });
    from("1", "large", usage(10, 1));
    from("2", "unpriced", usage(100, 10));
    from("3", "large", usage(20, 2));
    expect(sums().models).toEqual([
      { model: "unpriced", calls: 1, tokensIn: 100, tokensOut: 10, cost: null },
      { model: "large", calls: 2, tokensIn: 30, tokensOut: 3, cost: 0.000_09 },
    ]);
    expect(sums()).toMatchObject({ calls: 3, tokensIn: 130, tokensOut: 13, cost: 0.000_09 });
  });

  test.each([
    [0, "$0.00"],
    [12.345, "$12.35"],
    [0.0123, "$0.012"],
    [0.000_09, "$0.000090"],
  ])("%d dollars are %s", (dollars, text) => expect(formatCost(dollars)).toBe(text));
});

describe("the tries of a task", () => {
  test("are counted by the failures that are stored: a success after one is another try", () => {
    const { trace, take, begin, end, sums } = traced();
    begin("a");
    const fail = (count: number) =>
      take("logs", { task: "a", level: "error", message: "no", timestamp: "", node: "a", try: count });
    const tries = () => trace.tasks.get("a")?.tries;
    fail(1);
    expect(tries()).toBe(1);
    fail(2);
    expect(tries()).toBe(2);
    end("a");
    expect([tries(), sums().retries]).toEqual([3, 2]);
  });

  test("are those of the events where the inspector's feed tells of the same ones", () => {
    const { trace, take, begin, end } = traced();
    begin("a");
    const task = trace.tasks.get("a");
    if (task === undefined) throw new Error("it was not begun");
    trace.tried(task, "backoff");
    trace.tried(task, "running");
    take("logs", { task: "a", level: "error", message: "no", timestamp: "", node: "a", try: 1 });
    end("a");
    expect(task.tries).toBe(2);
    begin("a");
    end("a");
    expect(task.tries).toBe(3);
  });
});

describe("the slowest path", () => {
  const names = (trace: Trace) => [...criticalPath(timelineGroups(trace))].map(({ name }) => name);

  test("leads through the last task of each superstep, and of each superstep within its subgraph", () => {
    const { trace, begin, end } = traced();
    begin("quick");
    begin("outer");
    end("quick", 5);
    const within = (step: number) => ({ ns: "outer:outer", step });
    begin("one", 1, within(1));
    begin("two", 1, within(1));
    end("two", 3, within(1));
    end("one", 4, within(1));
    begin("three", 4, within(2));
    end("three", 8, within(2));
    end("outer", 9);
    begin("last", 10, { step: 2 });
    end("last", 11, { step: 2 });
    expect(names(trace)).toEqual(["outer", "one", "three", "last"]);
  });

  test("is not marked where no task ran beside another", () => {
    const { trace, begin, end } = traced();
    begin("a");
    end("a");
    begin("b", 10, { step: 2 });
    expect(names(trace)).toEqual([]);
  });
});

test("as JSON a run is nested: supersteps, tasks, the tasks of their subgraphs, calls", () => {
  const { trace, begin, end, say, calls, sums } = traced();
  begin("outer", 0, { step: 4, input: { n: 1 } });
  begin("inner", 1, { ns: "outer:outer" });
  say(
    "inner",
    { id: "m", type: "ai", content: "yes", ...usage(3, 2) },
    { ls_model_name: "large", langgraph_checkpoint_ns: "outer:outer|inner:inner" },
  );
  end("inner", 5, { ns: "outer:outer", result: { n: 2 } });
  end("outer", 9, { step: 4, result: { n: 2 } });
  const run = { run_id: "r", thread_id: "t", status: "success", metadata: { graph_id: "g" } } as never as Run;
  const groups = timelineGroups(trace);
  const json = traceAsJson({
    run,
    trace,
    groups,
    calls: calls(),
    totals: sums(),
    path: criticalPath(groups),
    questionWaitMs: null,
    numberOf: (step) => step - 3,
  });
  expect(json).toMatchObject({
    run_id: "r",
    graph_id: "g",
    tokens_in: 3,
    cost_usd: 0.000_026,
    supersteps: [
      {
        step: 1,
        tasks: [
          {
            name: "outer",
            duration_ms: 9,
            input: { n: 1 },
            calls: [],
            tasks: [
              {
                name: "inner",
                started_at: "2026-01-01T00:00:00.001Z",
                tasks: [],
                calls: [{ kind: "model", model: "large", tokens_in: 3, tokens_out: 2, text: "yes" }],
              },
            ],
          },
        ],
      },
    ],
  });
  expect(JSON.stringify(json)).not.toContain("undefined");
});
