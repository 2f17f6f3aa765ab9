import { createActor, type AnyActorRef } from "xstate";
import { describe, expect, test, vi } from "vitest";
import { InspectorRegistry } from "../../actors/inspection/inspector-registry.ts";
import { chartDefinitions } from "../../actors/inspection/chart-definitions.ts";
import { createRunChart, type RunLogic } from "../../actors/run/run-chart.ts";
import { interpretStatechart } from "../../actors/statechart-interpreter.ts";
import { createTaskChart, type TaskLogic } from "../../actors/task-chart.ts";
import { createThreadChart, type ThreadActorLogic } from "../../actors/thread/thread-chart.ts";
import type { LiveThread } from "../../actors/thread/live-thread.ts";
import type { InspectScope, Inspector } from "../../src/ports/inspector.ts";

const nothing = () => undefined;

/** A live thread without a server: its charts are real, but their effects do nothing. */
function live(thread: string, tenant = "_") {
  const interpret = interpretStatechart;
  const task: TaskLogic = interpret(
    createTaskChart({ execute: nothing }, { run: () => run, task: () => task }),
  );
  const sayClosing = () => actor.send({ type: "RUN.CLOSING" });
  const effects = {
    load: nothing,
    plan: nothing,
    abortPlanning: nothing,
    abort: nothing,
    close: nothing,
    sayClosing,
  };
  const run: RunLogic = interpret(createRunChart(effects, task, 500));
  const threads: ThreadActorLogic = interpret(createThreadChart({ ask: nothing, start: nothing }, run));
  const actor = createActor(threads, {
    input: { thread: `${tenant}/${thread}`, active: null, queue: [], rest: "idle" },
  });
  const complaints: unknown[] = [];
  const liveThread = {
    key: { tenant, thread },
    actor,
    runs: new Map(),
    deps: { engine: {}, logger: { error: (...line: unknown[]) => complaints.push(line) } },
  } as unknown as LiveThread;
  return { liveThread, actor: actor as AnyActorRef, complaints, inspect: vi.spyOn(actor.system, "inspect") };
}

function noting(): Inspector & { readonly told: string[] } {
  const told: string[] = [];
  return {
    told,
    actor: ({ kind }, { value }) => told.push(`${kind} is ${JSON.stringify(value)}`),
    event: ({ kind }, { type }, source) =>
      told.push(`${kind} <- ${type}${source === null ? "" : " from another"}`),
    snapshot: ({ kind }, { value }) => told.push(`${kind}: ${JSON.stringify(value)}`),
  };
}

const all: InspectScope = { tenant: "_", thread: null, values: false };
const admitted = { type: "RUN.ADMITTED", run: "r", strategy: "reject", starts: true };

describe("inspection", () => {
  test("nobody looks: an actor that is made gets no hook", () => {
    const inspection = new InspectorRegistry();
    const { liveThread, actor, inspect } = live("t");
    inspection.actorCreated(liveThread, actor);
    actor.start();
    actor.send(admitted);
    expect(inspect).not.toHaveBeenCalled();
  });

  test("a hook is there while somebody looks, on who lives and on who wakes, and is gone with the last", () => {
    const inspection = new InspectorRegistry();
    const [here, later] = [live("a"), live("b")];
    here.actor.start();
    const seen = noting();
    const stop = inspection.add(all, seen, [here.liveThread]);
    expect(here.inspect).toHaveBeenCalledTimes(1);
    expect(seen.told).toEqual(['thread is "idle"']);
    inspection.actorCreated(later.liveThread, later.actor);
    later.actor.start();
    expect(seen.told.slice(1)).toEqual(['thread is "idle"', "thread <- xstate.init"]);
    stop();
    const before = seen.told.length;
    here.actor.send(admitted);
    later.actor.send(admitted);
    const third = live("c");
    inspection.actorCreated(third.liveThread, third.actor);
    expect(third.inspect).not.toHaveBeenCalled();
    expect(seen.told).toHaveLength(before);
  });

  test("other tenants and other threads get none", () => {
    const inspection = new InspectorRegistry();
    inspection.add({ ...all, thread: "a" }, noting(), []);
    for (const one of [live("b"), live("a", "acme")]) {
      inspection.actorCreated(one.liveThread, one.actor);
      expect(one.inspect).not.toHaveBeenCalled();
    }
    const own = live("a");
    inspection.actorCreated(own.liveThread, own.actor);
    expect(own.inspect).toHaveBeenCalledTimes(1);
  });

  test("an actor is told of before what it sets off, and its end before what that sets off", () => {
    const { liveThread, actor } = live("t");
    actor.start();
    const seen = noting();
    new InspectorRegistry().add(all, seen, [liveThread]);
    actor.send(admitted);
    actor.send({ type: "RUN.STARTED", run: "r" });
    const run = () => actor.getSnapshot().children.get("run") as AnyActorRef;
    run().send({ type: "PLANNED", tasks: [{ id: "x", name: "n", input: "secret" }], hold: false });
    const task = run().getSnapshot().children.get("task:x") as AnyActorRef;
    task.send({ type: "DONE" });
    run().send({ type: "PLANNED", tasks: [], hold: false });
    run().send({ type: "ENDED", status: "success", rest: "success" });
    expect(seen.told).toEqual([
      'thread is "idle"',
      "thread <- RUN.ADMITTED",
      'thread: {"pending":"starting"}',
      'run is "pending"',
      "run <- xstate.init from another",
      "thread <- RUN.STARTED",
      'thread: {"pending":"running"}',
      "run <- BEGIN",
      'run: {"running":"loading"}',
      "run <- PLANNED",
      'run: {"running":"executing"}',
      'task is "running"',
      "task <- xstate.init from another",
      "task <- DONE",
      'task: "done"',
      "run <- xstate.done.actor.task:x from another",
      'run: {"running":"planning"}',
      "run <- PLANNED",
      'run: {"running":"closing"}',
      "thread <- RUN.CLOSING from another",
      'thread: {"pending":"settling"}',
      "run <- ENDED",
      'run: "success"',
      "thread <- xstate.done.actor.run from another",
      'thread: "success"',
    ]);
  });

  test("who fails at looking is not shown more, and fails nobody", () => {
    const { liveThread, actor, complaints } = live("t");
    actor.start();
    const fails = () => {
      throw new Error("no");
    };
    new InspectorRegistry().add(all, { actor: nothing, event: fails, snapshot: fails }, [liveThread]);
    actor.send(admitted);
    expect(actor.getSnapshot().value).toEqual({ pending: "starting" });
    expect(complaints).toHaveLength(1);
  });

  test("long lists are cut off, what tasks are given is left out", () => {
    const { liveThread, actor } = live("t");
    actor.start();
    const seen: string[] = [];
    const note = (...what: unknown[]) => seen.push(JSON.stringify(what));
    new InspectorRegistry().add(all, { actor: note, event: note, snapshot: note }, [liveThread]);
    actor.send(admitted);
    actor.send({ type: "RUN.STARTED", run: "r" });
    const tasks = Array.from({ length: 5_000 }, (_, i) => ({ id: `id${i}`, name: "n", input: "secret" }));
    actor.getSnapshot().children.get("run").send({ type: "PLANNED", tasks, hold: false });
    expect(Math.max(...seen.map(({ length }) => length))).toBeLessThan(4_000);
    expect(seen.join()).not.toContain("secret");
  });
});

describe("the charts as definitions", () => {
  test("are plain JSON, with the contract's words for states", () => {
    const { thread, run, task } = chartDefinitions() as { [name: string]: { states: object } };
    expect(Object.keys(thread?.states ?? {})).toEqual(
      expect.arrayContaining(["idle", "pending", "interrupted", "success", "error"]),
    );
    expect(Object.keys(run?.states ?? {})).toEqual(expect.arrayContaining(["pending", "running", "success"]));
    expect(Object.keys(task?.states ?? {})).toEqual(
      expect.arrayContaining(["running", "done", "interrupted"]),
    );
  });
});
