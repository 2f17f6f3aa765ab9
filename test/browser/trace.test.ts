import { describe, expect, test } from "vitest";
import { appendChunk, conversationKey, toChatMessage } from "../../src/dashboard/live/chat-messages.ts";
import {
  buildVisibleChart,
  nodeMarksOf,
  subgraphPathsOf,
  takenPathsOf,
} from "../../src/dashboard/graphs/visible-chart.ts";
import { buildChart, nodeIndexesByPath } from "../../src/dashboard/inspector/chart-model.ts";
import { markTakenTransitions } from "../../src/dashboard/inspector/taken-transitions.ts";
import { Trace } from "../../src/dashboard/live/trace.ts";
import { pausedRunOf, pauseLabel } from "../../src/dashboard/live/paused-run.ts";
import type { JsonRecord, Run, Thread } from "../../src/dashboard/api/records.ts";
import {
  timelineGroups,
  createStepNumbering,
  timeRangeOf,
  slowestTaskOf,
  axisTicksOf,
  questionWaitMs,
} from "../../src/dashboard/run/timeline-rows.ts";
import { threadFilterOf } from "../../src/dashboard/threads/thread-search-filter.ts";

const T = "2026-01-01T00:00:00.000+00:00";
const later = (ms: number) => new Date(Date.parse(T) + ms).toISOString();

const aRun = (part: Partial<Run>): Run => ({
  run_id: "run",
  thread_id: "t",
  assistant_id: "a",
  created_at: T,
  updated_at: T,
  status: "success",
  metadata: {},
  multitask_strategy: "reject",
  kwargs: {},
  ...part,
});

function traced() {
  const trace = new Trace("run");
  let id = 0;
  const take = (event: string, data: unknown) => trace.take({ id: String(id++), event, data });
  const debug = (type: string, step: number, ms: number, payload: unknown, ns = "") =>
    take(ns === "" ? "debug" : `debug|${ns}`, { type, step, timestamp: later(ms), payload });
  const saved = (step: number, ms: number, values: unknown, next: readonly string[], ns = "") =>
    debug(
      "checkpoint",
      step,
      ms,
      {
        values,
        next,
        metadata: { step, source: "loop" },
        checkpoint: { checkpoint_id: `${ns}${step}` },
        parent_checkpoint: null,
        tasks: next.map((name) => ({ id: `${name}-${step + 1}`, name })),
      },
      ns,
    );
  return { trace, take, debug, saved };
}

describe("a run, as its events tell it", () => {
  test("tasks wait, run, and end with what they gave; tokens belong to the task that said them", () => {
    const { trace, take, debug, saved } = traced();
    take("metadata", { run_id: "run", attempt: 1 });
    saved(0, 0, { n: 0 }, ["a", "b"]);
    expect([...trace.tasks.values()].map(({ name, status, step }) => [name, status, step])).toEqual([
      ["a", "waiting", 1],
      ["b", "waiting", 1],
    ]);
    debug("task", 1, 1, { id: "a-1", name: "a", input: { n: 0 } });
    take("messages", [
      { id: "m", type: "AIMessageChunk", content: "Good " },
      { langgraph_checkpoint_ns: "a:a-1" },
    ]);
    take("messages", [
      { id: "m", type: "AIMessageChunk", content: "day" },
      { langgraph_checkpoint_ns: "a:a-1" },
    ]);
    debug("task_result", 1, 5, { id: "a-1", name: "a", result: { n: 1 }, interrupts: [] });
    const [task] = trace.tasks.values();
    expect(task).toMatchObject({ status: "done", result: { n: 1 }, messages: ["m"], tries: 1 });
    expect((task?.endedAt ?? 0) - (task?.begunAt ?? 0)).toBe(4);
    expect(trace.messages.get("m")).toMatchObject({ type: "ai", text: "Good day" });
    debug("task", 1, 6, { id: "b-1", name: "b", input: {} });
    debug("task_result", 1, 9, {
      id: "b-1",
      name: "b",
      error: '{"name":"TypeError","message":"no"}',
      interrupts: [],
    });
    expect(trace.tasks.get("b-1")).toMatchObject({ status: "failed", error: "TypeError: no" });
  });

  test("an event that comes again changes nothing", () => {
    const { trace } = traced();
    const event = { id: "7", event: "messages", data: [{ id: "m", type: "ai", content: "x" }, {}] };
    expect([trace.take(event), trace.take(event), trace.take({ ...event, id: "3" })]).toEqual([
      true,
      false,
      false,
    ]);
    expect(trace.messages.get("m")?.text).toBe("x");
  });

  test("a task that is tried again, a run that is begun again, and what is left when it ends", () => {
    const { trace, take, debug, saved } = traced();
    saved(0, 0, {}, ["a"]);
    debug("task", 1, 1, { id: "a-1", name: "a" });
    const task = trace.tasks.get("a-1");
    if (task === undefined) throw new Error("it was not told");
    trace.tried(task, "backoff");
    expect(task.status).toBe("retrying");
    trace.tried(task, "running");
    expect([task.status, task.tries]).toEqual(["running", 2]);
    take("metadata", { attempt: 2 });
    expect([trace.attempt, task.status]).toEqual([2, "stopped"]);
    debug("task", 1, 8, { id: "a-1", name: "a" });
    expect(task.status).toBe("running");
    trace.end(Date.parse(T) + 9);
    expect(task.status).toBe("stopped");
  });

  test("messages of a failed try, and of a try that ended with the server, are abandoned until they are written again", () => {
    const { trace, take, debug, saved } = traced();
    const write = (id: string, content: string) =>
      take("messages", [{ id, type: "AIMessageChunk", content }, { langgraph_checkpoint_ns: "a:a-1" }]);
    take("metadata", { attempt: 1 });
    saved(0, 0, {}, ["a"]);
    debug("task", 1, 1, { id: "a-1", name: "a" });
    write("first", "Good ");
    write("same", "Good ");
    expect([...trace.abandonedMessages]).toEqual([]);
    take("logs", { task: "a-1", level: "warn", message: "failed", try: 1 });
    expect([...trace.abandonedMessages]).toEqual(["first", "same"]);
    write("second", "Good ");
    write("same", "Good day");
    expect([...trace.abandonedMessages]).toEqual(["first"]);
    expect(trace.messages.get("same")).toMatchObject({ text: "Good day" });
    take("metadata", { attempt: 2 });
    debug("task", 1, 8, { id: "a-1", name: "a" });
    write("third", "Good ");
    expect([...trace.abandonedMessages].toSorted()).toEqual(["first", "same", "second"]);
    debug("task_result", 1, 9, { id: "a-1", name: "a", result: {}, interrupts: [] });
    take("metadata", { attempt: 3 });
    expect(trace.abandonedMessages.has("third")).toBe(false);
  });

  test("what does not stop when another fails lasts until the run has ended, and so does the run", () => {
    const { trace, debug, saved } = traced();
    saved(0, 0, {}, ["stubborn", "broken"]);
    debug("task", 1, 1, { id: "stubborn-1", name: "stubborn" });
    debug("task", 1, 1, { id: "broken-1", name: "broken" });
    debug("task_result", 1, 5, { id: "broken-1", name: "broken", error: '{"message":"no"}' });
    trace.end(Date.parse(T) + 510);
    expect(timeRangeOf(aRun({}), trace, null)).toEqual({ from: Date.parse(T), to: Date.parse(T) + 510 });
    const slowest = slowestTaskOf(timelineGroups(trace));
    expect(slowest).toMatchObject({ name: "stubborn", status: "stopped", begunAt: Date.parse(T) + 1 });
    expect(slowest?.endedAt).toBe(Date.parse(T) + 510);
  });

  test("the run of an answer begins when it was given, however long the question waited", () => {
    const { trace, debug, saved } = traced();
    saved(1, -2_040_000, {}, ["review"]);
    debug("task", 2, 4, { id: "review-2", name: "review" });
    debug("task_result", 2, 8, { id: "review-2", name: "review", result: {} });
    saved(2, 9, {}, []);
    const run = aRun({ kwargs: { command: { resume: true } } });
    const range = { from: Date.parse(T) + 4, to: Date.parse(T) + 9 };
    expect(timeRangeOf(run, trace, null)).toEqual(range);
    expect([questionWaitMs(run, trace), questionWaitMs(aRun({}), trace)]).toEqual([2_040_000, null]);
  });

  test("its supersteps are numbered from 1 on, whatever the thread has counted; those of a replay from the replayed one on", () => {
    const { trace, debug } = traced();
    debug("task", 7, 1, { id: "a", name: "a" });
    debug("task", 8, 2, { id: "b", name: "b" });
    const groups = timelineGroups(trace);
    const numbers = (metadata: JsonRecord) =>
      groups.map(({ step }) => createStepNumbering(aRun({ metadata }), groups)(step));
    expect(numbers({})).toEqual([1, 2]);
    expect(numbers({ replay: { run: "other", step: 3 } })).toEqual([3, 4]);
    expect(numbers({ replay: "yes" })).toEqual([1, 2]);
    expect(numbers({ replay: { run: "other", step: "3" } })).toEqual([1, 2]);
  });

  test("tasks of subgraphs stand below the task that ran them; times span all of them", () => {
    const { trace, debug, saved } = traced();
    saved(0, 0, {}, ["outer"]);
    debug("task", 1, 2, { id: "outer-1", name: "outer" });
    debug("task", 1, 3, { id: "x", name: "inner" }, "outer:outer-1");
    debug("task_result", 1, 42, { id: "x", name: "inner", result: null, interrupts: [] }, "outer:outer-1");
    const [group] = timelineGroups(trace);
    expect(group?.step).toBe(1);
    expect(group?.lines.map(({ task, depth }) => [task.name, depth])).toEqual([
      ["outer", 0],
      ["inner", 1],
    ]);
    expect(timeRangeOf(aRun({}), trace, null)).toEqual({ from: Date.parse(T), to: Date.parse(T) + 42 });
    expect(axisTicksOf({ from: 0, to: 42 }, 5)).toEqual([0, 10, 20, 30, 40]);
    // Times are whole milliseconds.
    expect(axisTicksOf({ from: 0, to: 2 }, 5)).toEqual([0, 1, 2]);
  });
});

describe("a thread that waits", () => {
  const interrupts = { task: [{ id: "q", value: "Well?" }] };
  const thread = (part: Partial<Thread>): Thread => ({
    thread_id: "t",
    created_at: T,
    updated_at: T,
    status: "interrupted",
    metadata: {},
    config: {},
    interrupts: {},
    ...part,
  });
  const runs = [aRun({ run_id: "newest" }), aRun({ run_id: "older" })];

  test("waits with its newest run: at a question, or at a breakpoint", () => {
    const asks = pausedRunOf(thread({ interrupts }), runs);
    expect(asks).toEqual({ run: "newest", questions: interrupts.task });
    expect(asks === null ? "" : pauseLabel(asks)).toBe("waiting for an answer");
    const pauses = pausedRunOf(thread({}), runs);
    expect(pauses === null ? "" : pauseLabel(pauses)).toBe("paused");
  });

  test("does not wait while it runs, nor once it is idle", () => {
    expect(pausedRunOf(thread({ status: "idle" }), runs)).toBeNull();
    expect(pausedRunOf(thread({ interrupts }), [aRun({ status: "running" }), ...runs])).toBeNull();
    expect(pausedRunOf(thread({ interrupts }), [])).toBeNull();
  });
});

describe("messages", () => {
  test("what is no tool call is left out; calls are told apart by any index", () => {
    expect(toChatMessage({ type: "ai", content: "hi", tool_calls: [null, 1, { name: "f" }] }).calls).toEqual([
      { id: "", name: "f", args: "{}" },
    ]);
    const chunks = [
      [{ index: 50_000_000, id: "a", name: "f", args: "{" }, null],
      [{ index: 2, id: "b", name: "g", args: "[" }],
      [{ index: 50_000_000, args: "}" }],
      [{ index: 2, args: "]" }],
    ];
    const message = chunks.reduce<ReturnType<typeof toChatMessage> | undefined>(
      (before, tool_call_chunks) =>
        appendChunk(before, { type: "ai", id: "m", content: "", tool_call_chunks }),
      undefined,
    );
    expect(message?.calls).toMatchObject([
      { id: "a", name: "f", args: "{}" },
      { id: "b", name: "g", args: "[]" },
    ]);
  });

  test("of all forms: roles, blocks, calls that come in pieces", () => {
    expect(
      toChatMessage({ role: "user", content: [{ type: "text", text: "hi" }, { type: "image_url" }] }),
    ).toMatchObject({
      type: "human",
      text: "hi[image_url]",
    });
    const { trace, take } = traced();
    for (const args of ['{"a', '":1}']) {
      const chunk = {
        index: 0,
        id: args.startsWith("{") ? "c" : null,
        name: args.startsWith("{") ? "f" : null,
        args,
      };
      take("messages", [{ id: "m", type: "ai", content: "", tool_call_chunks: [chunk] }, {}]);
    }
    expect(trace.messages.get("m")?.calls).toEqual([{ id: "c", name: "f", args: '{"a":1}', index: 0 }]);
  });

  test("are found in a state by their form, whatever the key", () => {
    expect(conversationKey({ n: [1], talk: [{ type: "human", content: "a", id: "1" }] })).toBe("talk");
    expect(conversationKey({ list: [{ type: "x", content: "a" }] })).toBeNull();
  });
});

test.each([
  ["", {}],
  ["0192D3A4-0000-7000-8000-000000000001", { ids: ["0192d3a4-0000-7000-8000-000000000001"] }],
  ["user=ann n:3 word", { metadata: { user: "ann", n: 3 } }],
  ["=x y=", {}],
])("search for %j", (text, filter) => {
  expect(threadFilterOf({ text, status: "", graph: "" })).toEqual(filter);
});

describe("a graph that is drawn", () => {
  const definition = {
    initial: "outer",
    states: {
      outer: {
        id: "outer",
        initial: "inner",
        states: { inner: { id: "outer.inner" } },
        on: { done: { target: "#end" } },
      },
      end: { id: "end", type: "final" },
    },
  };

  test("shows what is in a subgraph once it is opened", () => {
    expect(subgraphPathsOf(definition)).toEqual(["outer"]);
    expect([...nodeIndexesByPath(buildVisibleChart(definition, new Set())).keys()]).toEqual(["outer", "end"]);
    expect([...nodeIndexesByPath(buildVisibleChart(definition, new Set(["outer"]))).keys()]).toEqual([
      "outer",
      "outer/inner",
      "end",
    ]);
  });

  test("lights what runs, and marks how the rest ended", () => {
    const { trace, debug } = traced();
    debug("task", 1, 0, { id: "o", name: "outer" });
    debug("task", 1, 1, { id: "i", name: "inner" }, "outer:o");
    debug("task_result", 1, 2, { id: "i", name: "inner", result: {}, interrupts: [] }, "outer:o");
    const chart = buildVisibleChart(definition, new Set(["outer"]));
    const at = nodeIndexesByPath(chart);
    const marks = nodeMarksOf(chart, undefined, trace.tasks.values());
    expect([marks.get(at.get("outer") ?? -1), marks.get(at.get("outer/inner") ?? -1)]).toEqual([
      "running",
      "done",
    ]);
    expect(marks.has(at.get("end") ?? -1)).toBe(false);
    expect(nodeMarksOf(chart, "end", []).get(at.get("end") ?? -1)).toBe("running");
  });
});

describe("the arrows that a run has taken", () => {
  const leads = (...targets: readonly string[]) => ({
    done: targets.map((target) => ({ target: `#${target}`, guard: "chosen" })),
  });
  const chart = buildChart({
    initial: "a",
    states: {
      a: { id: "a", on: leads("b", "c") },
      b: { id: "b" },
      c: { id: "c" },
      d: { id: "d" },
    },
  });
  const words = (ways: Parameters<typeof markTakenTransitions>[1]) => {
    const { chart: shown, taken } = markTakenTransitions(chart, ways);
    const name = (place: number) => shown.states[place]?.name ?? "";
    return shown.arrows
      .filter((_, place) => taken.has(place))
      .map(({ from, to }) => `${name(from)} ${name(to)}`);
  };

  test("are those between what ran in one superstep and in the next, declared or not", () => {
    expect(words([])).toEqual([]);
    expect(words([[["a"], ["b"], ["d"]]])).toEqual(["a b", "b d"]);
    expect(words([[["a"], ["b", "c"], ["d"]]])).toEqual(["a b", "a c", "b d", "c d"]);
    // The edges into `c` are declared, so `d` leads to `b`.
    expect(
      words([
        [
          ["a", "d"],
          ["c", "b"],
        ],
      ]),
    ).toEqual(["a b", "a c"]);
    expect(
      words([
        [
          ["c", "a"],
          ["b", "d"],
        ],
      ]),
    ).toEqual(["a b", "c d"]);
    expect(words([[["nobody"], ["b"]]])).toEqual([]);
  });

  test("are found in the events of a run, also of one that goes on from a pause, and of a graph within", () => {
    const { trace, debug, saved } = traced();
    debug("task", 3, 0, { id: "x", name: "b" });
    saved(3, 1, {}, ["outer"]);
    saved(0, 2, {}, ["inner"], "outer:o");
    saved(1, 3, {}, [], "outer:o");
    saved(4, 4, {}, []);
    expect(takenPathsOf(trace)).toEqual([
      [["b"], ["outer"], ["__end__"]],
      [[], ["outer/inner"], ["outer/__end__"]],
    ]);
  });
});
