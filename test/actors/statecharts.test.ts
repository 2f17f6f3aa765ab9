import { multitaskStrategies } from "../../src/model/run.ts";
import { describe, expect, test } from "vitest";
import { createActor, fromCallback, transition, type AnyActorLogic } from "xstate";
import { getShortestPaths } from "xstate/graph";
import { ChildActorMap } from "../../actors/child-actor-map.ts";

import type { RunEvent, RunInput, TaskEvent, ThreadEvent } from "../../actors/actor-events.ts";
import { createRunChart, type RunEffects, type RunLogic } from "../../actors/run/run-chart.ts";
import { interpretStatechart, type Interpreter } from "../../actors/statechart-interpreter.ts";
import { createTaskChart, taskChartConfig, type TaskLogic } from "../../actors/task-chart.ts";
import { decideMultitask, strongerStop } from "../../actors/thread/multitask.ts";
import {
  threadSituationOf,
  createThreadChart,
  threadChartConfig,
  type ThreadActorLogic,
} from "../../actors/thread/thread-chart.ts";
import { xstateInterpreter } from "./xstate-interpreter.ts";
import type { SettledState } from "../../src/model/thread.ts";

const interpreters: readonly (readonly [string, Interpreter])[] = [
  ["the interpreter of Heddle", interpretStatechart],
  ["the interpreter of XState", xstateInterpreter],
];
const none = () => undefined;
/** The effects and children that were requested since the log was last emptied. */
const log: string[] = [];
const noted = (name: string) => (): void => void log.push(name);
/** A child that does nothing but log the events that it receives. */
const idle = fromCallback<{ readonly type: string }, object>(({ receive, input }) => {
  log.push(`start ${JSON.stringify(input)}`);
  receive(({ type }) => log.push(type));
  return noted("stop");
});
const threadLogic = (interpret: Interpreter, run: AnyActorLogic = idle): ThreadActorLogic =>
  interpret(createThreadChart({ ask: noted("ask"), start: noted("start") }, run));
const runEffects = Object.fromEntries(
  ["load", "plan", "abortPlanning", "abort", "sayClosing", "close"].map((name) => [name, noted(name)]),
) as unknown as RunEffects;
const runLogic = (interpret: Interpreter): RunLogic => interpret(createRunChart(runEffects, idle, 500));

/** Returns whether the event changes anything. */
const can = (logic: AnyActorLogic, state: object, event: object) =>
  transition(logic, state as never, event as never)[0] !== state;

const names = (actors: unknown) =>
  actors instanceof ChildActorMap ? actors.names(Infinity) : Object.keys(actors as object);

/** The result of these events, on which both interpreters must agree. */
function agreedAfter(logics: readonly AnyActorLogic[], input: object, events: readonly object[]): object {
  const [one, other] = logics.map((logic) => {
    log.length = 0;
    const actor = createActor(logic, { input });
    // The failure of an actor is not reported here.
    actor.subscribe({ error: none });
    actor.start();
    for (const event of events) actor.send(event);
    const { value, status, output, context, children } = actor.getSnapshot() as {
      readonly [name: string]: unknown;
      readonly context: object;
    };
    // XState starts and stops children after the effects of a transition.
    const asked = [...log].sort();
    actor.stop();
    const { waiting, ...rest } = context as { readonly waiting?: ChildActorMap };
    return {
      events,
      asked,
      value,
      status,
      output,
      context: { ...rest, ...(waiting !== undefined && { waiting: names(waiting) }) },
      children: status === "active" ? names(children) : [],
    };
  });
  expect(one).toEqual(other);
  return one ?? {};
}

/** The events that the thread's chart may receive, including the ends of its run. */
const threadEvents = [
  ...multitaskStrategies.flatMap((strategy) =>
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

describe.each(interpreters)("the thread's chart, walked through with %s", (_, interpret) => {
  const thread = threadLogic(interpret);
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
      const working = threadSituationOf(value) !== "resting";
      expect(context.active !== null, JSON.stringify(value)).toBe(working);
      expect(working || context.queue.length === 0, JSON.stringify(value)).toBe(true);
    }
  });

  test("a refused strategy changes nothing", () => {
    for (const state of states.filter(({ value }) => threadSituationOf(value) !== "resting")) {
      const refused = { type: "RUN.ADMITTED", run: "x", strategy: "reject", starts: true };
      expect(can(thread, state, refused)).toBe(false);
    }
  });

  test("does with a new run what the multitask rules decide, in every state", () => {
    for (const state of states.filter(({ status }) => status === "active")) {
      const { active, queue, stop } = state.context;
      const isWaiting = JSON.stringify(state.value) === '{"pending":"waiting"}';
      for (const strategy of multitaskStrategies) {
        const decision = decideMultitask(strategy, threadSituationOf(state.value));
        const event = { type: "RUN.ADMITTED", run: "new", strategy, starts: true } as const;
        const [{ value, context }] = transition(thread, state, event);
        const expected = { ...state.context };
        switch (decision.kind) {
          case "start":
            Object.assign(expected, { active: "new" });
            break;
          case "refuse":
            break;
          case "queue":
            Object.assign(expected, { queue: [...queue, "new"] });
            break;
          case "supersede":
            // A run that waits for a slot has not begun, so the new one takes its place.
            if (isWaiting) Object.assign(expected, { active: "new", queue: [], stop: null });
            else
              Object.assign(expected, {
                queue: ["new"],
                stop: decision.active ? strongerStop(stop, decision.action) : stop,
              });
            break;
          default:
            decision satisfies never;
        }
        const where = `${strategy} in ${JSON.stringify(state.value)} with ${active} and ${queue.length} waiting`;
        expect(context, where).toEqual(expected);
        expect(threadSituationOf(value), where).toBe(
          decision.kind === "start" ? "working" : threadSituationOf(state.value),
        );
      }
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

  test("is the same with both interpreters, in every state at every event", () => {
    const logics = interpreters.map(([, one]) => threadLogic(one));
    const input = { thread: "_/t", active: null, queue: [], rest: "idle" };
    let compared = 0;
    for (const { state, steps } of paths) {
      // From the initial state: paths to the same state may differ in the names of its runs.
      const before = steps.map(({ event }) => event).filter(({ type }) => !type.startsWith("xstate.init"));
      for (const event of state.status === "active" ? threadEvents : []) {
        agreedAfter(logics, input, [...before, event]);
        compared++;
      }
    }
    expect(compared).toBeGreaterThan(400);
  });
});

test.each(interpreters)(
  "with %s, a thread's actor tells its run to begin, to stop, and stops it when it is given up",
  (_, interpret) => {
    const heard: string[] = [];
    const run = fromCallback<RunEvent, RunInput>(({ receive, input }) => {
      heard.push(`+${input.run}`);
      receive((event) => heard.push(event.type === "CANCEL" ? event.action : event.type));
      return () => heard.push(`-${input.run}`);
    });
    const actor = createActor(threadLogic(interpret, run), {
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
  },
);

const restStates = ["idle", "success", "interrupted", "error"] as const;
const wakings = interpreters.flatMap(([name, interpret]) =>
  restStates.map((rest) => [rest, name, interpret] as const),
);

test.each(wakings)("a passive thread wakes in %s with %s", (rest, _, interpret) => {
  const logic = threadLogic(interpret);
  const input = { thread: "_/t", active: null, queue: [], rest };
  const woken = createActor(logic, { input });
  const passive = createActor(logic, {
    input,
    snapshot: logic.snapshotIn(rest, threadChartConfig.context({ input })),
  });
  for (const actor of [woken, passive]) {
    actor.start();
    expect(actor.getSnapshot().value).toBe(rest);
    actor.send({ type: "RUN.ADMITTED", run: "a", strategy: "reject", starts: true });
    expect(actor.getSnapshot().value).toEqual({ pending: "starting" });
    actor.stop();
  }
});

test.each(interpreters)(
  "with %s, a thread whose run was in progress wakes at work, with that run first",
  (_, interpret) => {
    const started: string[] = [];
    const chart = createThreadChart({ ask: none, start: (__, run) => started.push(run) }, idle);
    const actor = createActor(interpret(chart) as ThreadActorLogic, {
      input: { thread: "_/t", active: "a", queue: ["b"], rest: "success" },
    });
    actor.start();
    expect(actor.getSnapshot().value).toEqual({ pending: "starting" });
    expect(started).toEqual(["a"]);
    actor.stop();
  },
);

describe.each(interpreters)("the run's chart, walked through with %s", (_, interpret) => {
  const run = runLogic(interpret);
  const done = (task: string, end: string) => ({
    type: `xstate.done.actor.task:${task}`,
    actorId: `task:${task}`,
    output: { task, end },
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
    { type: "PAUSED" },
    { type: "COMMITTED" },
    { type: "CANCEL", action: "interrupt" },
    { type: "CANCEL", action: "rollback" },
    done("1", "done"),
    done("2", "done"),
    done("2", "failed"),
    { type: "xstate.after.grace.run.running.aborting" },
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
    serializeState: (state) =>
      JSON.stringify([state.value, names(state.context.waiting), state.context.stop]),
    limit: 20_000,
  });
  const states = paths.map(({ state }) => state);

  test("reaches every state, by the contract's words", () => {
    const names = new Set(states.map(({ value }) => JSON.stringify(value)));
    for (const inner of [
      "loading",
      "planning",
      "aborting",
      "paused",
      "executing",
      "committing",
      "draining",
      "closing",
    ]) {
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
    expect(inside("executing", "draining").every(({ context }) => context.waiting.size > 0)).toBe(true);
    expect(inside("closing").every(({ context }) => context.waiting.size === 0)).toBe(true);
  });

  test("a run that is stopped while a step is computed is given a grace period", () => {
    expect(inside("planning").every(({ context }) => context.stop === null)).toBe(true);
    expect(inside("aborting").every(({ context }) => context.stop !== null)).toBe(true);
  });

  test("a stopped run starts no task", () => {
    expect(inside("executing").every(({ context }) => context.stop === null)).toBe(true);
  });

  test("a stopped run does not stay paused", () => {
    expect(inside("paused").every(({ context }) => context.stop === null)).toBe(true);
  });

  test("a closing run can no longer be stopped", () => {
    expect(inside("closing").some((state) => can(run, state, { type: "CANCEL", action: "rollback" }))).toBe(
      false,
    );
  });

  test("is the same with both interpreters, in every state at every event", () => {
    const logics = interpreters.map(([, one]) => runLogic(one));
    let compared = 0;
    for (const { state, steps } of paths) {
      const before = steps.map(({ event }) => event).filter(({ type }) => !type.startsWith("xstate.init"));
      for (const event of state.status === "active" ? events : []) {
        agreedAfter(logics, { thread: "_/t", run: "r", within: null }, [...before, event]);
        compared++;
      }
    }
    expect(compared).toBeGreaterThan(300);
  });
});

const taskInput = { thread: "_/t", run: "r", within: null, task: "1", name: "a" };
const taskLogic = (interpret: Interpreter, execute: () => void = noted("execute")): TaskLogic =>
  interpret(createTaskChart({ execute }, { run: () => idle, task: () => idle }));

describe.each(interpreters)("the task's chart with %s", (_, interpret) => {
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
  test.each(rows)("%j ends it %s", (types, end) => {
    let executed = 0;
    const actor = createActor(
      taskLogic(interpret, () => executed++),
      { input: taskInput },
    );
    actor.start();
    for (const type of types) actor.send({ type } as TaskEvent);
    expect(actor.getSnapshot().output).toEqual({ task: "1", end });
    expect(actor.getSnapshot().status).toBe("done");
    expect(executed).toBe(types.includes("TRY") ? 2 : 1);
  });

  test("is the same with both interpreters, in every state at every event", () => {
    const logics = interpreters.map(([, one]) => taskLogic(one));
    const types = ["DONE", "INTERRUPTED", "FAILED", "RETRY", "TRY", "CANCEL", "ENTER"] as const;
    const events = [
      ...types.map((type) => ({ type })),
      { type: "JOINED", tasks: [{ id: "2", name: "b" }] },
      { type: "xstate.done.actor.task:2", actorId: "task:2", output: { task: "2", end: "done" } },
      {
        type: "xstate.done.actor.subgraph",
        actorId: "subgraph",
        output: { status: "success", rest: "idle" },
      },
      { type: "xstate.error.actor.task:2", actorId: "task:2", error: new Error("a fault") },
    ] as unknown as TaskEvent[];
    const paths = getShortestPaths(taskLogic(interpret), {
      input: taskInput,
      // A child has a name of its own, so it is started once.
      events: (state) =>
        events.filter(({ type }) => names(state.children).length === 0 || !/^(ENTER|JOINED)$/.test(type)),
      serializeState: (state) => JSON.stringify([state.value, state.status, names(state.children)]),
      limit: 20_000,
    });
    expect(new Set(paths.map(({ state }) => state.value))).toEqual(
      new Set(Object.keys(taskChartConfig.states)),
    );
    for (const { state, steps } of paths) {
      const before = steps.map(({ event }) => event).filter(({ type }) => !type.startsWith("xstate.init"));
      for (const event of state.status === "active" ? events : [])
        agreedAfter(logics, taskInput, [...before, event]);
    }
  });

  test("a graph that runs as its node begins, is told to stop, and stops with the task", () => {
    const heard: string[] = [];
    const graph = fromCallback<RunEvent, RunInput>(({ receive, input }) => {
      heard.push(`+${input.within}`);
      receive((event) => heard.push(event.type === "CANCEL" ? event.action : event.type));
      return () => heard.push("-");
    });
    const chart = createTaskChart({ execute: none }, { run: () => graph, task: () => idle });
    const actor = createActor(interpret(chart) as TaskLogic, { input: taskInput });
    actor.start();
    actor.send({ type: "ENTER" });
    actor.send({ type: "CANCEL" });
    expect(heard).toEqual(["+1", "BEGIN", "interrupt"]);
    actor.send({ type: "FAILED" });
    expect(heard).toEqual(["+1", "BEGIN", "interrupt", "-"]);
    expect(actor.getSnapshot().output).toEqual({ task: "1", end: "cancelled" });
  });
});

test.each(interpreters)(
  "with %s, a fault in a child that nothing handles fails the actor",
  (_, interpret) => {
    const task = taskLogic(interpret, () => {
      throw new TypeError("a fault");
    });
    const chart = createRunChart(runEffects, task, 500);
    const actor = createActor(interpret(chart) as RunLogic, {
      input: { thread: "_/t", run: "r", within: null },
    });
    const failures: unknown[] = [];
    actor.subscribe({ error: (cause) => failures.push(cause) });
    actor.start();
    actor.send({ type: "BEGIN" });
    actor.send({ type: "PLANNED", tasks: [{ id: "1", name: "a" }], hold: false });
    expect(failures).toEqual([new TypeError("a fault")]);
  },
);
