import { describe, expect, test } from "vitest";
import * as xstate from "xstate";
import {
  createMachine,
  fromCallback,
  fromEventObservable,
  fromObservable,
  fromPromise,
  fromTransition,
} from "xstate";
import { kindOfActor } from "../../src/machines/actor-logic.ts";
import { RunningPromiseActors } from "../../src/machines/running-promise-actors.ts";
import {
  type ActorResult,
  matchesEventDescriptor,
  type RunningActor,
} from "../../src/machines/machine-driver.ts";
import { isMachine, type Machine, type XStateLibrary } from "../../src/machines/xstate-types.ts";
import { createXState5Driver } from "../../src/machines/xstate5-driver.ts";

describe("matchesEventDescriptor", () => {
  test.each([
    ["APPROVE", ["APPROVE"], true],
    ["APPROVE", ["REJECT"], false],
    ["order.paid", ["order.*"], true],
    ["order", ["order.*"], true],
    ["orders.paid", ["order.*"], false],
    ["anything", ["*"], true],
    ["anything", [], false],
  ])("%s by %j: %s", (type, events, handled) => {
    expect(matchesEventDescriptor(type, events)).toBe(handled);
  });
});

describe("kindOfActor", () => {
  const observable = () => ({ subscribe: () => ({ unsubscribe: () => undefined }) });
  test.each([
    ["promise", fromPromise(async () => 1)],
    ["machine", createMachine({})],
    ["transition", fromTransition((state: number) => state, 0)],
    ["callback or observable", fromCallback(() => undefined)],
    ["callback or observable", fromObservable(observable)],
    ["callback or observable", fromEventObservable(observable as never)],
    ["missing", undefined],
    ["missing", "name"],
  ])("%s", (kind, logic) => {
    expect(kindOfActor(logic)).toBe(kind);
  });
});

test.each([
  [true, createMachine({})],
  [false, {}],
  [false, null],
  [false, fromPromise(async () => 1)],
])("isMachine: %s", (is, value) => {
  expect(isMachine(value)).toBe(is);
});

test("the driver computes a context once, with the input", () => {
  const inputs: unknown[] = [];
  const machine = createMachine({
    context: ({ input }) => {
      inputs.push(input);
      return {};
    },
    on: { t: { actions: () => undefined } },
  });
  const driver = createXState5Driver(xstate as unknown as XStateLibrary, machine as unknown as Machine);
  const { snapshot } = driver.begin(1);
  driver.take(snapshot, { to: [], event: { type: "t" } });
  driver.begin(undefined);
  expect(inputs).toEqual([1, undefined]);
});

describe("RunningPromiseActors", () => {
  const actor = () => {
    let end: (result: ActorResult) => void = () => undefined;
    let stops = 0;
    const result = new Promise<ActorResult>((resolve) => (end = resolve));
    return {
      result,
      end: (output: unknown) => end({ output }),
      stop: () => void stops++,
      stops: () => stops,
    };
  };
  const { signal } = new AbortController();
  const started = (one: RunningActor, of = signal) => ({
    start: () => one,
    emit: () => undefined,
    signal: of,
  });

  test("the first result ends the wait for the others, and a second wait finds the same actor", async () => {
    const live = new RunningPromiseActors();
    const [a, b] = [actor(), actor()];
    const waits = [live.waitFor("r", "a", started(a)), live.waitFor("r", "b", started(b))];
    a.end(1);
    expect(await Promise.all(waits)).toEqual([{ output: 1 }, undefined]);
    b.end(2);
    const start = () => {
      throw new Error("it is at work already");
    };
    expect(await live.waitFor("r", "b", { ...started(b), start })).toEqual({ output: 2 });
  });

  test("actors that are not retained, and those of an aborted task, are stopped", async () => {
    const live = new RunningPromiseActors();
    const [a, b] = [actor(), actor()];
    const abort = new AbortController();
    const waits = [
      live.waitFor("r", "a", started(a, abort.signal)),
      live.waitFor("r", "b", started(b, abort.signal)),
    ];
    live.endWaits("r");
    await Promise.all(waits);
    live.retain("r", new Set(["b"]));
    expect([a.stops(), b.stops()]).toEqual([1, 0]);
    const wait = live.waitFor("r", "b", started(b, abort.signal));
    abort.abort();
    expect(await wait).toBeUndefined();
    expect(b.stops()).toBe(1);
  });

  test("what an actor emits while no task waits for it is given to the next one, in order", async () => {
    const live = new RunningPromiseActors();
    const one = actor();
    let emits: (event: unknown) => void = () => undefined;
    const start = (emit: typeof emits) => {
      emits = emit;
      emit(1);
      return one;
    };
    const seen: unknown[] = [];
    const waits = (by: string) =>
      live.waitFor("r", "a", { start, emit: (event) => seen.push([by, event]), signal });
    const first = waits("first");
    live.endWaits("r");
    await first;
    emits(2);
    const second = waits("second");
    emits(3);
    one.end("over");
    await second;
    expect(seen).toEqual([
      ["first", 1],
      ["second", 2],
      ["second", 3],
    ]);
  });

  test("one whose task is aborted before it begins is not started", async () => {
    const start = () => {
      throw new Error("nobody wants it any more");
    };
    const wanted = { start, emit: () => undefined, signal: AbortSignal.abort() };
    expect(await new RunningPromiseActors().waitFor("r", "a", wanted)).toBeUndefined();
  });

  test("those of a run that is over are stopped, those of others are not", async () => {
    const live = new RunningPromiseActors();
    const [a, b] = [actor(), actor()];
    void live.waitFor("r", "a", started(a));
    void live.waitFor("other", "b", started(b));
    live.stop("r");
    live.stop("r");
    expect([a.stops(), b.stops()]).toEqual([1, 0]);
  });
});
