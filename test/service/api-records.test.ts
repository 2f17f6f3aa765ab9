import { describe, expect, test } from "vitest";
import type { Checkpoint, PendingTaskWrites } from "../../src/model/checkpoint.ts";
import type { Interrupt } from "../../src/model/interrupt.ts";
import { contains } from "../../src/model/json.ts";
import { newThreadRecord } from "../../src/model/thread.ts";
import { runDraftOf, type RunRequest } from "../../src/service/run-draft.ts";
import { pendingInterruptsOf, apiRun, apiState, apiThread } from "../../src/service/api-records.ts";
import { agent, RUN, runRecord, THREAD } from "../http/support.ts";

const NOW = Date.UTC(2026, 10, 20, 12, 0, 0, 5);
const ISO = "2026-11-20T12:00:00.005+00:00";
const interrupt: Interrupt = {
  value: { question: "ok?" },
  id: "a27f7ef7ab8dbf83180f29fe9b348864",
  resumable: true,
  ns: ["ask:t1"],
  when: "during",
};

describe("a thread", () => {
  const thread = newThreadRecord(THREAD, NOW, { metadata: { a: 1 } });

  test("a new one has every field that the contract names", () => {
    expect(apiThread(thread, null)).toEqual({
      thread_id: THREAD,
      created_at: ISO,
      updated_at: ISO,
      state_updated_at: ISO,
      metadata: { a: 1 },
      status: "idle",
      config: {},
      values: null,
      interrupts: {},
    });
  });

  test.each([
    [{ rest: "success" }, "idle"],
    [{ rest: "interrupted" }, "interrupted"],
    [{ rest: "error" }, "error"],
    [{ active: RUN }, "busy"],
    [{ rest: "error", queue: [RUN] }, "busy"],
  ] as const)("%j is shown as %s", (change, status) => {
    const error = { error: "TypeError", message: "kaboom" };
    const shown = apiThread({ ...thread, ...change, error }, {});
    expect(shown["status"]).toBe(status);
    expect(shown["error"]).toEqual(status === "error" ? error : undefined);
  });
});

describe("a run", () => {
  test("one with nothing but an assistant: every field, with the nulls that the contract shows", () => {
    const shown = apiRun(runRecord(), { isRunning: false, position: undefined });
    expect(shown).toEqual({
      run_id: RUN,
      thread_id: THREAD,
      assistant_id: agent.assistant_id,
      created_at: ISO,
      updated_at: ISO,
      metadata: { created_by: "system", graph_id: "agent", assistant_id: agent.assistant_id },
      status: "pending",
      multitask_strategy: "reject",
      kwargs: {
        input: null,
        command: null,
        config: {
          configurable: {
            run_id: RUN,
            thread_id: THREAD,
            graph_id: "agent",
            assistant_id: agent.assistant_id,
            user_id: "",
            checkpoint_id: null,
          },
          metadata: { created_by: "system", graph_id: "agent", assistant_id: agent.assistant_id },
        },
        context: {},
        webhook: null,
        temporary: false,
        stream_mode: ["values"],
        feedback_keys: null,
        interrupt_before: null,
        interrupt_after: null,
        subgraphs: false,
        resumable: false,
        durability: "async",
      },
    });
  });

  test("running is laid over pending, and over nothing else", () => {
    const running = { isRunning: true, position: undefined };
    expect(apiRun(runRecord(), running)["status"]).toBe("running");
    expect(apiRun({ ...runRecord(), status: "error" }, running)["status"]).toBe("error");
  });

  const assistant = {
    ...agent,
    metadata: { created_by: "me", level: "assistant", only: 1 },
    config: { tags: ["a"], recursion_limit: 5, configurable: { x: 1, y: 1 } },
    context: { model: "m", size: 1 },
  };

  test("what a request says goes before the assistant's, and ids are never the client's", () => {
    const request: RunRequest = {
      assistant_id: "agent",
      metadata: { level: "run" },
      config: {
        recursion_limit: 9,
        configurable: { y: 2, run_id: "mine", thread_id: "mine", graph_id: "mine", assistant_id: "mine" },
        other: true,
      },
      context: { size: 2 },
    };
    const thread = newThreadRecord(THREAD, NOW, {
      metadata: { level: "thread", graph_id: "older", place: "thread" },
    });
    const { kwargs, metadata } = runDraftOf(RUN, request, assistant, thread);
    const ids = { graph_id: "agent", assistant_id: agent.assistant_id };
    expect(metadata).toEqual({ created_by: "me", level: "run", only: 1, place: "thread", ...ids });
    expect(kwargs.config).toEqual({
      tags: ["a"],
      recursion_limit: 9,
      other: true,
      configurable: { x: 1, y: 2, user_id: "", checkpoint_id: null, run_id: RUN, thread_id: THREAD, ...ids },
      metadata,
    });
    expect(kwargs.context).toEqual({ model: "m", size: 2 });
  });

  test("a thread's own config stays its own", () => {
    const thread = {
      ...newThreadRecord(THREAD, NOW, {}),
      config: { configurable: { leaked: 1 }, tags: ["leaked"] },
    };
    const { kwargs } = runDraftOf(RUN, { assistant_id: "agent" }, agent, thread);
    expect(JSON.stringify(kwargs)).not.toContain("leaked");
  });

  test("who made it is always named", () => {
    const made = { ...agent, metadata: {} };
    const { kwargs } = runDraftOf(RUN, { assistant_id: "agent" }, made, newThreadRecord(THREAD, NOW, {}));
    expect(kwargs.config.metadata["created_by"]).toBe("user");
  });

  test.each([
    [{ stream_mode: "updates" }, { stream_mode: ["updates"] }],
    [{ stream_mode: [] }, { stream_mode: ["values"] }],
    [{ checkpoint_during: false }, { durability: "exit" }],
    [{ checkpoint_during: true }, { durability: "async" }],
    [{ durability: "sync", checkpoint_during: false }, { durability: "sync" }],
    [
      { stream_resumable: true, stream_subgraphs: true },
      { resumable: true, subgraphs: true },
    ],
    [
      { interrupt_before: "*", interrupt_after: ["a"] },
      { interrupt_before: "*", interrupt_after: ["a"] },
    ],
  ] as const)("%j becomes %j", (request, kwargs) => {
    const thread = newThreadRecord(THREAD, NOW, {});
    expect(runDraftOf(RUN, { assistant_id: "agent", ...request }, agent, thread).kwargs).toMatchObject(
      kwargs,
    );
  });

  test.each([
    ["input", { input: { a: [1, { b: Number.POSITIVE_INFINITY }] } }],
    ["input", { input: JSON.parse('{"__proto__":{}}') as object }],
    ["command", { command: { resume: () => 1 } }],
    ["metadata", { metadata: { a: 1n } }],
    ["config", { config: { configurable: new Map() as unknown as object } }],
    ["context", { context: { a: Symbol("a") } }],
  ])("what cannot be stored in %s is refused by name", (at, request) => {
    const thread = newThreadRecord(THREAD, NOW, {});
    let refused: unknown;
    try {
      runDraftOf(RUN, { assistant_id: "agent", ...request } as RunRequest, agent, thread);
    } catch (cause) {
      refused = cause;
    }
    expect(refused).toMatchObject({ code: "validation.failed", fields: [{ at }] });
  });
});

describe("a state", () => {
  const checkpoint: Checkpoint = {
    id: "1f0c0000-0000-6000-8001-000000000001",
    parent: "1f0c0000-0000-6000-8000-000000000001",
    ns: "",
    step: 1,
    source: "loop",
    created_at: NOW,
    run_id: RUN,
    metadata: { created_by: "system", graph_id: "agent", assistant_id: agent.assistant_id },
    writes: { plan: { a: 1 } },
    next: [
      { id: "t1", name: "ask", path: ["__pregel_pull", "ask"], triggers: [] },
      { id: "t2", name: "leaf", path: ["__pregel_push", 0], triggers: [] },
      { id: "t3", name: "leaf", path: ["__pregel_push", 1], triggers: [] },
    ],
    engine: null,
    graph: "h",
    channels: {},
  };
  const left = (task: string, change: Partial<PendingTaskWrites>): PendingTaskWrites => ({
    ns: "",
    checkpoint: checkpoint.id,
    task,
    name: "any",
    interrupts: [],
    resumes: [],
    steps: {},
    error: null,
    ...change,
  });
  const writes = [
    left("t1", { interrupts: [interrupt] }),
    left("t2", { result: { value: {} } }),
    left("t3", { error: { error: "TypeError", message: "kaboom" } }),
  ];
  const parts = { thread: THREAD, checkpoint, values: { a: 1 }, writes, withWrites: true };

  test("checkpoints as objects and as flat ids", () => {
    const at = (checkpoint_id: string | null) => ({
      thread_id: THREAD,
      checkpoint_ns: "",
      checkpoint_id,
      checkpoint_map: null,
    });
    expect(apiState(parts)).toMatchObject({
      values: { a: 1 },
      created_at: ISO,
      checkpoint_id: checkpoint.id,
      parent_checkpoint_id: checkpoint.parent,
      checkpoint: at(checkpoint.id),
      parent_checkpoint: at(checkpoint.parent),
    });
    expect(apiState({ ...parts, checkpoint: { ...checkpoint, parent: null } })).toMatchObject({
      parent_checkpoint: null,
      parent_checkpoint_id: null,
    });
  });

  test("the metadata that the contract names", () => {
    expect(apiState(parts)["metadata"]).toEqual({
      source: "loop",
      step: 1,
      parents: {},
      writes: { plan: { a: 1 } },
      run_id: RUN,
      thread_id: THREAD,
      user_id: "",
      created_by: "system",
      graph_id: "agent",
      assistant_id: agent.assistant_id,
    });
    expect(apiState({ ...parts, withWrites: false })["metadata"]).not.toHaveProperty("writes");
  });

  test("tasks with what they wait for or failed with; one that has finished is not to run again", () => {
    const state = apiState(parts);
    expect(state["next"]).toEqual(["ask", "leaf"]);
    expect(state["interrupts"]).toEqual([interrupt]);
    const rest = { checkpoint: null, state: null, result: null };
    // A finished task shows what it wrote.
    expect(state["tasks"]).toEqual([
      {
        id: "t1",
        name: "ask",
        path: ["__pregel_pull", "ask"],
        error: null,
        interrupts: [interrupt],
        ...rest,
      },
      {
        id: "t2",
        name: "leaf",
        path: ["__pregel_push", 0],
        error: null,
        interrupts: [],
        ...rest,
        result: {},
      },
      {
        id: "t3",
        name: "leaf",
        path: ["__pregel_push", 1],
        error: '{"name":"TypeError","message":"kaboom"}',
        interrupts: [],
        ...rest,
      },
    ]);
  });

  test("an answered interrupt, and one of a task that is not to run, does not wait", () => {
    expect(
      pendingInterruptsOf(checkpoint, [left("t1", { interrupts: [interrupt], result: { value: 1 } })]),
    ).toEqual([]);
    expect(pendingInterruptsOf(checkpoint, [left("gone", { interrupts: [interrupt] })])).toEqual([]);
  });
});

describe("contained", () => {
  const whole = { a: 1, b: { c: [1, 2, { d: null }], e: "x" } };
  test.each([
    [{}, true],
    [{ a: 1 }, true],
    [{ b: { e: "x" } }, true],
    [{ b: { c: [2] } }, true],
    [{ b: { c: [{ d: null }, 1] } }, true],
    [{ b: { c: [] } }, true],
    [{ a: 2 }, false],
    [{ a: { a: 1 } }, false],
    [{ z: undefined }, false],
    [{ b: { c: [3] } }, false],
    [{ b: { c: { 0: 1 } } }, false],
    [{ constructor: {} }, false],
  ])("%j: %s", (part, is) => {
    expect(contains(whole, part)).toBe(is);
  });
});
