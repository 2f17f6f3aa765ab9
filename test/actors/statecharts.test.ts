import { describe, expect, test } from "vitest";
import { createActor, createMachine, fromCallback, initialTransition, transition } from "xstate";
import { getShortestPaths } from "xstate/graph";
import { Children } from "../../actors/child-actors.ts";
import type { RunEvent, RunInput, TaskEvent, TaskInput, ThreadEvent } from "../../actors/messages.ts";
import { taskChart, taskMachine, type TaskMachine } from "../../actors/task.ts";
import { runChart } from "../../actors/run/run-chart.ts";
import { runMachine, type RunMachine } from "../../actors/run/run-machine.ts";
import { situationOf } from "../../actors/thread/thread-chart.ts";
import { xstateThreadChart } from "../../actors/thread/xstate-chart.ts";
import { threadMachine } from "../../actors/thread/thread-machine.ts";
import type { SettledState } from "../../src/model/thread.ts";

const idleRun = fromCallback<RunEvent, RunInput>(() => undefined) as unknown as RunMachine;
const thread = xstateThreadChart({ ask: () => undefined, start: () => undefined }, idleRun);

/** What the thread's chart can be told, its run's ends included. */
const threadEvents = [
  ...(["reject", "enqueue", "interrupt", "rollback"] as const).flatMap((strategy) =>
    [true, false].map((starts) => ({ type: "RUN.ADMITTED", run: strategy, strategy, starts }) as const),
  ),
  { type: "RUN.READY", run: "enqueue" },
  { type: "RUN.READY", run: "interrupt" },
  { type: "RUN.STARTED", run: "enqueue" },
  { type: "RUN.CANCEL", run: "enqueue", action: "interrupt" },
  { type: "RUN.CANCEL", run: "interrupt", action: "rollback" },
  { type: "RUN.WITHDRAWN", run: "enqueue" },
  { type: "STATE.UPDATED", rest: "idle" },
  { type: "STATE.UPDATED", rest: "interrupted" },
  { type: "RUN.CLOSING" },
  { type: "GIVE.UP" },
  ...(["idle", "success", "interrupted", "error"] as const).map((rest) => ({
    type: "xstate.done.actor.run",
    actorId: "run",
    output: { status: "success", rest },
  })),
] as unknown as ThreadEvent[];

describe("the thread's chart, walked through", () => {
  const paths = getShortestPaths(thread, {
    input: { thread: "_/t", active: null, queue: [], rest: "idle" as SettledState },
    events: threadEvents,
    serializeState: (state) =>
      JSON.stringify([
        state.value,
        state.context.queue.length,
        state.context.stop,
        state.context.active !== null,
      ]),
    stopWhen: (state) => state.context.queue.length > 2,
    limit: 20_000,
  });
  const states = paths.map(({ state }) => state);
  const names = new Set(states.map(({ value }) => JSON.stringify(value)));

  test("reaches every state, by the contract's words", () => {
    expect([...names].sort()).toEqual(
      [
        '"error"',
        '"failed"',
        '"idle"',
        '"interrupted"',
        '"success"',
        '{"pending":"running"}',
        '{"pending":"settling"}',
        '{"pending":"starting"}',
        '{"pending":"stopping"}',
        '{"pending":"waiting"}',
      ].sort(),
    );
  });

  test("has work exactly while it is pending", () => {
    for (const { value, context } of states.filter(({ status }) => status === "active")) {
      const working = situationOf(value) !== "resting";
      expect(context.active !== null, JSON.stringify(value)).toBe(working);
      expect(working || context.queue.length === 0, JSON.stringify(value)).toBe(true);
    }
  });

  test("a refused strategy changes nothing", () => {
    for (const state of states.filter(({ value }) => situationOf(value) !== "resting")) {
      expect(state.can({ type: "RUN.ADMITTED", run: "x", strategy: "reject", starts: true })).toBe(false);
    }
  });

  test("is stopping only for a reason", () => {
    const stops = (inner: string) =>
      states
        .filter(({ value }) => JSON.stringify(value) === JSON.stringify({ pending: inner }))
        .map(({ context }) => context.stop);
    expect(stops("stopping")).not.toContain(null);
    expect(new Set(stops("running"))).toEqual(new Set([null]));
  });

  test("is what the actor does, in every state at every event", () => {
    const machine = threadMachine({ ask: () => undefined, start: () => undefined }, idleRun);
    let compared = 0;
    for (const { state, steps } of paths) {
      const told = steps.map(({ event }) => event).filter(({ type }) => !type.startsWith("xstate.init"));
      for (const event of state.status === "active" ? threadEvents : []) {
        const actor = createActor(machine, {
          input: { thread: "_/t", active: null, queue: [], rest: "idle" },
        });
        actor.start();
        for (const one of [...told, event]) actor.send(one as ThreadEvent);
        // From the start: what the walk takes for one state may differ in the names of its runs.
        const input = { thread: "_/t", active: null, queue: [], rest: "idle" } as const;
        let [next] = initialTransition(thread, input);
        for (const one of [...told, event]) [next] = transition(thread, next, one as ThreadEvent);
        const seen = ({ value, status, context }: Pick<typeof next, "value" | "status" | "context">) => ({
          after: [...told, event],
          value,
          status,
          context,
        });
        expect(seen(actor.getSnapshot() as unknown as typeof next)).toEqual(seen(next));
        actor.stop();
        compared++;
      }
    }
    expect(compared).toBeGreaterThan(400);
  });
});

test("a thread's actor tells its run to begin, to stop, and stops it when it is given up", () => {
  const heard: string[] = [];
  const run = fromCallback<RunEvent, RunInput>(({ receive, input }) => {
    heard.push(`+${input.run}`);
    receive((event) => heard.push(event.type === "CANCEL" ? event.action : event.type));
    return () => heard.push(`-${input.run}`);
  }) as unknown as RunMachine;
  const actor = createActor(threadMachine({ ask: () => undefined, start: () => undefined }, run), {
    input: { thread: "_/t", active: null, queue: [], rest: "idle" },
  });
  actor.start();
  actor.send({ type: "RUN.ADMITTED", run: "a", strategy: "reject", starts: true });
  actor.send({ type: "RUN.STARTED", run: "a" });
  actor.send({ type: "RUN.ADMITTED", run: "b", strategy: "interrupt", starts: false });
  actor.send({ type: "RUN.CANCEL", run: "a", action: "rollback" });
  expect(heard).toEqual(["+a", "BEGIN", "interrupt", "rollback"]);
  actor.send({ type: "GIVE.UP" });
  expect(heard).toEqual(["+a", "BEGIN", "interrupt", "rollback", "-a"]);
  expect(actor.getSnapshot().status).toBe("done");
});

test.each(["idle", "success", "interrupted", "error"] as const)("a passive thread wakes in %s", (rest) => {
  const actor = createActor(threadMachine({ ask: () => undefined, start: () => undefined }, idleRun), {
    input: { thread: "_/t", active: null, queue: [], rest },
  });
  actor.start();
  expect(actor.getSnapshot().value).toBe(rest);
  actor.stop();
});

test("a thread whose run was in progress wakes at work, with that run first", () => {
  const started: string[] = [];
  const machine = threadMachine({ ask: () => undefined, start: (_, run) => started.push(run) }, idleRun);
  const actor = createActor(machine, {
    input: { thread: "_/t", active: "a", queue: ["b"], rest: "success" },
  });
  actor.start();
  expect(actor.getSnapshot().value).toEqual({ pending: "starting" });
  expect(started).toEqual(["a"]);
  actor.stop();
});

const noGraph = (): never => {
  throw new TypeError("no task here is a graph");
};

describe("the run's chart, walked through", () => {
  const idleTask = fromCallback<TaskEvent, TaskInput>(() => undefined) as unknown as TaskMachine;
  const none = () => undefined;
  // Walked through alone, it has no parent to tell.
  const run = runChart({ load: none, plan: none, abort: none, close: none }, idleTask, 500).provide({
    actions: { sayClosing: none },
  });
  const done = (task: string, kind: string) => ({
    type: `xstate.done.actor.task:${task}`,
    actorId: `task:${task}`,
    output: { task, kind },
  });
  const events = [
    { type: "BEGIN" },
    {
      type: "PLANNED",
      tasks: [
        { id: "1", name: "a" },
        { id: "2", name: "b" },
      ],
      hold: false,
    },
    { type: "PLANNED", tasks: [{ id: "1", name: "a" }], hold: true },
    { type: "PLANNED", tasks: [], hold: false },
    { type: "COMMITTED" },
    { type: "CANCEL", action: "interrupt" },
    { type: "CANCEL", action: "rollback" },
    done("1", "done"),
    done("2", "done"),
    done("2", "failed"),
    { type: "xstate.after.grace.run.running.draining" },
    ...(["success", "interrupted", "error", "timeout"] as const).map((status) => ({
      type: "ENDED",
      status,
      rest: "idle",
    })),
  ] as unknown as RunEvent[];
  const paths = getShortestPaths(run, {
    input: { thread: "_/t", run: "r", within: null },
    events,
    serializeState: (state) => JSON.stringify([state.value, state.context.waiting, state.context.stop]),
    limit: 20_000,
  });
  const states = paths.map(({ state }) => state);

  test("reaches every state, by the contract's words", () => {
    const names = new Set(states.map(({ value }) => JSON.stringify(value)));
    for (const inner of ["loading", "planning", "executing", "committing", "draining", "closing"]) {
      expect(names).toContain(JSON.stringify({ running: inner }));
    }
    for (const final of ["success", "interrupted", "error", "timeout"]) {
      expect(names).toContain(JSON.stringify(final));
    }
    expect(names).toContain('"pending"');
  });

  const inside = (...inner: string[]) =>
    states.filter(({ value }) =>
      inner.some((name) => JSON.stringify(value) === JSON.stringify({ running: name })),
    );

  test("leaves executing and draining only when every task has ended", () => {
    expect(inside("executing", "draining").every(({ context }) => context.waiting.length > 0)).toBe(true);
    expect(inside("closing").every(({ context }) => context.waiting.length === 0)).toBe(true);
  });

  test("a stopped run starts no task", () => {
    expect(inside("executing").every(({ context }) => context.stop === null)).toBe(true);
  });

  test("what is closing can no longer be stopped", () => {
    expect(inside("closing").some((state) => state.can({ type: "CANCEL", action: "rollback" }))).toBe(false);
  });

  test("is what the actor does, in every state at every event", () => {
    const effects = { load: none, plan: none, abort: none, close: none };
    const machine = runMachine(effects, taskMachine({ execute: () => undefined }, noGraph), {
      grace: () => undefined,
    });
    let compared = 0;
    for (const { state, steps } of paths) {
      const told = steps
        .map(({ event }) => event as RunEvent)
        .filter(({ type }) => !type.startsWith("xstate.init"));
      for (const event of state.status === "active" ? events : []) {
        const actor = createActor(machine, { input: { thread: "_/t", run: "r", within: null } });
        actor.start();
        for (const one of [...told, event]) {
          const grace = (one.type as string).startsWith("xstate.after.");
          actor.send((grace ? { type: "GRACE" } : one) as RunEvent);
        }
        const [next] = transition(run, state, event);
        const seen = ({
          value,
          status,
          context: { waiting, stop },
        }: Pick<typeof next, "value" | "status" | "context">) => ({
          after: [...told, event],
          value,
          status,
          waiting: waiting instanceof Children ? waiting.names(Infinity) : waiting,
          stop,
        });
        expect(seen(actor.getSnapshot() as unknown as typeof next)).toEqual(seen(next));
        actor.stop();
        compared++;
      }
    }
    expect(compared).toBeGreaterThan(300);
  });
});

describe("the task's chart", () => {
  const rows: [TaskEvent["type"][], string][] = [
    [["DONE"], "done"],
    [["INTERRUPTED"], "interrupted"],
    [["FAILED"], "failed"],
    [["CANCEL", "FAILED"], "cancelled"],
    [["CANCEL", "RETRY"], "cancelled"],
    [["CANCEL", "DONE"], "done"],
    [["CANCEL", "INTERRUPTED"], "interrupted"],
    [["RETRY", "CANCEL"], "cancelled"],
    [["RETRY", "TRY", "DONE"], "done"],
    [["RETRY", "DONE", "TRY", "FAILED"], "failed"],
  ];
  test.each(rows)("%j ends it %s", (types, kind) => {
    let executed = 0;
    const actor = createActor(taskMachine({ execute: () => executed++ }, noGraph), {
      input: { thread: "_/t", run: "r", within: null, task: "1", name: "a" },
    });
    actor.start();
    for (const type of types) actor.send({ type } as TaskEvent);
    expect(actor.getSnapshot().output).toEqual({ task: "1", kind });
    expect(actor.getSnapshot().status).toBe("done");
    expect(executed).toBe(types.includes("TRY") ? 2 : 1);
  });

  test("is what the actor does, state by state: XState reads the same chart", () => {
    const machine = createMachine(taskChart);
    const types = ["DONE", "INTERRUPTED", "FAILED", "RETRY", "TRY", "CANCEL"] as const;
    const paths = getShortestPaths(machine, { events: types.map((type) => ({ type })) });
    expect(paths.length).toBe(Object.keys(taskChart.states).length);
    for (const { state, steps } of paths) {
      const actor = createActor(taskMachine({ execute: () => undefined }, noGraph), {
        input: { thread: "_/t", run: "r", within: null, task: "1", name: "a" },
      });
      actor.start();
      for (const { event } of steps) actor.send(event as TaskEvent);
      expect(actor.getSnapshot().value).toBe(state.value);
    }
  });
});
