import { beforeEach, describe, expect, test } from "vitest";
import { ConcurrencyLimiter, unlimitedConcurrency } from "../../actors/concurrency-limiter.ts";
import { RunMemoryBudget } from "../../actors/run-memory-budget.ts";
import { SimulatedClock } from "../simulation/clock.ts";
import { SimulatedScheduler } from "../simulation/scheduler.ts";

const LIMITS = { largeState: 100, maxStateBytes: 1_000 };
let scheduler: SimulatedScheduler;
let heap: { used: number; limit: number };
let states: RunMemoryBudget;
let limiter: ConcurrencyLimiter;
let begun: string[];

beforeEach(() => {
  scheduler = new SimulatedScheduler(new SimulatedClock());
  // There is no memory left: no run begins just because time passes.
  heap = { used: 10_000, limit: 0 };
  begun = [];
  open();
});

function open(concurrent = unlimitedConcurrency): void {
  states = new RunMemoryBudget(scheduler, () => heap, LIMITS);
  limiter = new ConcurrencyLimiter(concurrent, states);
}

/**
 * Requests memory for runs named `tenant/name`, with states of `state` bytes and, if `input` is given, inputs of that
 * size.
 */
function ask(state: number, names: readonly string[], input = 0): void {
  for (const run of names) {
    const [tenant = ""] = run.split("/");
    limiter.acquire({ run, tenant, graph: "g", bytes: { state, input } }, () => begun.push(run));
  }
}

/** The runs that have begun since the last call. */
const newlyBegun = () => begun.splice(0);

describe("runs in progress", () => {
  test.each<[string, number[], number]>([
    ["as many small ones as want to", Array(50).fill(99), 50],
    ["large ones until their states reach the limit", [400, 400, 400, 400], 3],
    ["one that exceeds the limit by itself", [5_000, 5_000], 1],
    ["small ones beside large ones that wait", [1_000, 500, 99, 500, 99], 3],
  ])("may be %s", (_, sizes, count) => {
    for (const [i, size] of sizes.entries()) ask(size, [`a/${i}`]);
    expect(begun).toHaveLength(count);
    expect(limiter.waiting).toBe(sizes.length - count);
  });

  test("count with the larger of state and input", () => {
    ask(300, ["a/1"], 600);
    expect(states.bytes).toBe(600);
    states.setState("a/1", 500);
    expect(states.bytes).toBe(600);
    states.setState("a/1", 900);
    expect(states.bytes).toBe(900);
    ask(0, ["a/2", "a/3"], 200);
    expect(newlyBegun()).toEqual(["a/1", "a/2"]);
  });

  test("count from when their states become large, until they end", () => {
    ask(0, ["a/1", "a/2"]);
    states.setState("a/1", 99);
    expect(states.bytes).toBe(0);
    states.setState("a/1", 1_000);
    expect(states.bytes).toBe(1_000);
    ask(100, ["a/3"]);
    expect(newlyBegun()).toEqual(["a/1", "a/2"]);
    limiter.release("a/2");
    expect(newlyBegun()).toEqual([]);
    limiter.release("a/1");
    expect(newlyBegun()).toEqual(["a/3"]);
    limiter.release("a/3");
    expect(states.bytes).toBe(0);
  });

  test("let others begin when their states are smaller than expected", async () => {
    ask(1_000, ["a/1", "a/2"]);
    states.setState("a/1", 50);
    await scheduler.settle();
    expect(newlyBegun()).toEqual(["a/1", "a/2"]);
    expect(states.bytes).toBe(1_000);
  });

  test("of before a restart begin in any case, and count", () => {
    for (const run of ["a/1", "a/2", "a/3"])
      limiter.forceAcquire({ run, tenant: "a", graph: "g", bytes: { state: 700, input: 0 } });
    expect(states.bytes).toBe(2_100);
    ask(100, ["a/4"]);
    limiter.release("a/1");
    expect(newlyBegun()).toEqual([]);
    limiter.release("a/2");
    expect(newlyBegun()).toEqual(["a/4"]);
  });
});

describe("runs that wait for memory", () => {
  test("begin in the order in which they asked; tenants take turns", () => {
    ask(1_000, ["a/1", "a/2", "a/3", "b/1", "a/4", "b/2", "c/1"]);
    expect(newlyBegun()).toEqual(["a/1"]);
    const order: string[] = [];
    for (let run: string | undefined = "a/1"; run !== undefined; run = newlyBegun()[0]) {
      if (run !== "a/1") order.push(run);
      limiter.release(run);
    }
    expect(order).toEqual(["a/2", "b/1", "c/1", "a/3", "b/2", "a/4"]);
  });

  test("hold up no small ones that wait for a slot", () => {
    open({ ...unlimitedConcurrency, all: 2 });
    ask(1_000, ["a/1"]);
    ask(0, ["a/2"]);
    ask(1_000, ["a/3"]);
    ask(0, ["a/4"]);
    expect(newlyBegun()).toEqual(["a/1", "a/2"]);
    expect([limiter.position("a/3"), limiter.position("a/4")]).toEqual([1, 2]);
    limiter.release("a/2");
    expect(newlyBegun()).toEqual(["a/4"]);
    limiter.release("a/1");
    expect(newlyBegun()).toEqual(["a/3"]);
  });

  test("may be withdrawn", () => {
    ask(1_000, ["a/1", "a/2", "a/3"]);
    limiter.release("a/2");
    expect(limiter.isWaiting("a/2")).toBe(false);
    limiter.release("a/1");
    expect(newlyBegun()).toEqual(["a/1", "a/3"]);
  });

  test("begin one each second while the heap has room, in turns too", async () => {
    ask(1_000, ["a/1", "a/2", "a/3", "b/1"]);
    expect(newlyBegun()).toEqual(["a/1"]);
    heap = { used: 499, limit: 1_000 };
    await scheduler.advance(999);
    expect(newlyBegun()).toEqual([]);
    await scheduler.advance(1);
    expect(newlyBegun()).toEqual(["a/2"]);
    await scheduler.advance(1_000);
    expect(newlyBegun()).toEqual(["b/1"]);
    heap = { used: 500, limit: 1_000 };
    await scheduler.advance(5_000);
    expect(newlyBegun()).toEqual([]);
    heap = { used: 499, limit: 1_000 };
    await scheduler.advance(1_000);
    expect(newlyBegun()).toEqual(["a/3"]);
    // No timer is left.
    expect(scheduler.timers).toBe(0);
  });

  test("begin so too where the heap is full of garbage, while the states take little of it", async () => {
    ask(1_000, ["a/1", "a/2", "a/3"]);
    heap = { used: 8_000, limit: 8_000 };
    await scheduler.advance(1_000);
    expect(newlyBegun()).toEqual(["a/1", "a/2"]);
    await scheduler.advance(5_000);
    expect(newlyBegun()).toEqual([]);
  });

  test("begin so too where memory ran out only after they had begun to wait for a slot", async () => {
    open({ ...unlimitedConcurrency, all: 2 });
    ask(0, ["a/1", "a/2"]);
    ask(100, ["a/3"]);
    states.setState("a/1", 1_000);
    limiter.release("a/2");
    expect(newlyBegun()).toEqual(["a/1", "a/2"]);
    heap = { used: 0, limit: 1_000 };
    await scheduler.advance(1_000);
    expect(newlyBegun()).toEqual(["a/3"]);
  });

  test("do not begin after a stop", async () => {
    heap = { used: 0, limit: 1_000 };
    ask(1_000, ["a/1", "a/2"]);
    limiter.close();
    expect(scheduler.timers).toBe(0);
    limiter.release("a/1");
    await scheduler.advance(5_000);
    expect(newlyBegun()).toEqual(["a/1"]);
  });
});
