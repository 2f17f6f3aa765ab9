import { describe, expect, test } from "vitest";
import { graph, list } from "../../src/index.ts";
import {
  ConcurrencyLimiter,
  unlimitedConcurrency,
  type ConcurrencyLimits,
} from "../../actors/concurrency-limiter.ts";
import { defaultLimits } from "../../actors/create-system.ts";
import { RunMemoryBudget } from "../../actors/run-memory-budget.ts";
import { SimulatedClock } from "../simulation/clock.ts";
import { SimulatedScheduler } from "../simulation/scheduler.ts";
import { Server } from "./server.ts";

/** A limiter of runs that are named `tenant/graph/number`. */
function gate(limits: Partial<ConcurrencyLimits>) {
  const heap = () => ({ used: 0, limit: 1 });
  const states = new RunMemoryBudget(new SimulatedScheduler(new SimulatedClock()), heap, defaultLimits);
  const door = new ConcurrencyLimiter({ ...unlimitedConcurrency, ...limits }, states);
  const started: string[] = [];
  return {
    door,
    started,
    ask: (...runs: string[]) => {
      for (const run of runs) {
        const [tenant = "", graph = ""] = run.split("/");
        door.acquire({ run, tenant, graph, bytes: { state: 0, input: 0 } }, () => started.push(run));
      }
    },
    leave: (...runs: string[]) => {
      for (const run of runs) door.release(run);
      return started.splice(0);
    },
  };
}

describe("who may start", () => {
  test("everyone, without limits", () => {
    const { ask, started, door } = gate({});
    ask("a/g/1", "a/g/2");
    expect(started).toEqual(["a/g/1", "a/g/2"]);
    expect(door.waiting).toBe(0);
  });

  test("as many as there are slots, then in the order of asking", () => {
    const { ask, leave, started, door } = gate({ all: 2 });
    ask("a/g/1", "a/g/2", "a/h/3", "a/g/4");
    expect(started.splice(0)).toEqual(["a/g/1", "a/g/2"]);
    expect([door.position("a/h/3"), door.position("a/g/4"), door.position("a/g/1")]).toEqual([
      1,
      2,
      undefined,
    ]);
    expect(leave("a/g/2")).toEqual(["a/h/3"]);
    expect(leave("a/g/1", "a/h/3")).toEqual(["a/g/4"]);
    expect(leave("a/g/4")).toEqual([]);
    ask("a/g/5", "a/g/6");
    expect(started).toEqual(["a/g/5", "a/g/6"]);
  });

  test("tenants take turns, however many runs one has", () => {
    const { ask, leave, started } = gate({ all: 1 });
    ask("big/g/0", ...Array.from({ length: 1_000 }, (_, i) => `big/g/${i + 1}`), "small/g/1", "other/g/1");
    expect(started.splice(0)).toEqual(["big/g/0"]);
    expect(leave("big/g/0")).toEqual(["big/g/1"]);
    expect(leave("big/g/1")).toEqual(["small/g/1"]);
    expect(leave("small/g/1")).toEqual(["other/g/1"]);
    expect(leave("other/g/1")).toEqual(["big/g/2"]);
  });

  test("a graph at its limit holds up nobody else", () => {
    const { ask, leave, started } = gate({ all: 2, perGraph: { slow: 1 } });
    ask("a/slow/1", "a/slow/2", "a/quick/3", "a/quick/4");
    expect(started.splice(0)).toEqual(["a/slow/1", "a/quick/3"]);
    expect(leave("a/quick/3")).toEqual(["a/quick/4"]);
    expect(leave("a/slow/1")).toEqual(["a/slow/2"]);
  });

  test("a tenant at its limit holds up nobody else", () => {
    const { ask, leave, started } = gate({ perTenant: 1 });
    ask("a/g/1", "a/g/2", "b/g/1", "b/g/2");
    expect(started.splice(0)).toEqual(["a/g/1", "b/g/1"]);
    expect(leave("b/g/1")).toEqual(["b/g/2"]);
    expect(leave("a/g/1")).toEqual(["a/g/2"]);
  });

  test("who gave up waiting is not served, and leaves its place", () => {
    const { ask, leave, started, door } = gate({ all: 1 });
    ask("a/g/1", "a/g/2", "a/g/3");
    started.length = 0;
    expect(leave("a/g/2")).toEqual([]);
    expect(door.position("a/g/3")).toBe(1);
    expect(leave("a/g/1")).toEqual(["a/g/3"]);
    expect(door.waiting).toBe(0);
  });

  test("nobody, once it is closed", () => {
    const { ask, leave, door, started } = gate({ all: 1 });
    ask("a/g/1", "a/g/2");
    started.length = 0;
    door.close();
    expect(leave("a/g/1")).toEqual([]);
    expect(door.waiting).toBe(1);
  });
});

test("a run whose log cannot be opened is refused, and gives its slot back", async () => {
  const simple = graph({
    state: { log: list<string>() },
    nodes: { work: async () => ({ log: ["worked"] }) },
    edges: { start: "work" },
  });
  const server = await Server.start(simple, { limits: { concurrent: { ...unlimitedConcurrency, all: 1 } } });
  const key = await server.thread();
  const open = server.runLogs.open.bind(server.runLogs);
  server.runLogs.open = () => {
    throw new Error("a fault made for this test");
  };
  await expect(server.admit(key)).rejects.toThrow("a fault made for this test");
  server.runLogs.open = open;
  const run = await server.admit(key);
  expect(await server.do(server.system.settled(key, run.run_id))).toMatchObject({ status: "success" });
});
