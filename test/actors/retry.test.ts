import { describe, expect, test } from "vitest";
import { taskRetryDelay } from "../../actors/run/task-retry-delay.ts";
import { graph, list } from "../../src/index.ts";
import type { NodeCall, TaskOutcome } from "../../src/ports/engine.ts";
import { Server } from "./server.ts";

const failed: TaskOutcome = { kind: "failed", error: { error: "Error", message: "x" } };
const call = (parts: Partial<NodeCall>) => ({ try: 1, tries: 3, ...parts }) as NodeCall;

test("pauses: half a second, doubled, spread by up to a quarter, at most 128 seconds", () => {
  const pauses = [1, 2, 3, 9].map((n) => taskRetryDelay(call({ try: n, tries: 10 }), failed, 0));
  expect(pauses).toEqual([500, 1_000, 2_000, 128_000]);
  expect(taskRetryDelay(call({}), failed, 1)).toBe(625);
});

test("pauses as the node says", () => {
  const backoff = { initial: 10, factor: 3, max: 50, jitter: false };
  const pauses = [1, 2, 3].map((n) => taskRetryDelay(call({ try: n, tries: 4, backoff }), failed, 1));
  expect(pauses).toEqual([10, 30, 50]);
});

test.each<[string, Partial<NodeCall>, TaskOutcome]>([
  ["after the last try", { try: 3 }, failed],
  ["after an abort", {}, { kind: "failed", error: { error: "AbortError", message: "" } }],
  ["after what another try would not mend", {}, { ...failed, final: true }],
  ["after a result", {}, { kind: "returned", value: 1 }],
])("no further try %s", (_, parts, outcome) => expect(taskRetryDelay(call(parts), outcome, 0)).toBeNull());

describe("a task that waits for its next try", () => {
  /** In the first run, all tasks succeed. In the second, one waits for its next try, and the other for `fail`. */
  async function waiting() {
    let isFirst = true;
    let fail: () => void = () => undefined;
    const server = await Server.start(
      graph({
        state: { log: list<string>() },
        nodes: {
          flaky: {
            retry: { attempts: 3, initial: 60_000, max: 60_000 },
            run: () => {
              if (!isFirst) throw new Error("not yet");
            },
          },
          sibling: (_, { signal }) => {
            if (isFirst) return undefined;
            return new Promise<never>((_resolve, reject) => {
              fail = () => reject(new TypeError("broken"));
              signal.addEventListener("abort", () => reject(signal.reason as Error));
            });
          },
        },
        edges: { start: ["flaky", "sibling"] },
      }),
    );
    const key = await server.thread();
    await server.do(server.system.settled(key, (await server.admit(key)).run_id));
    const timers = server.scheduler.timers;
    isFirst = false;
    const { run_id } = await server.admit(key);
    await server.scheduler.settle();
    return { server, key, run_id, timers, fail };
  }

  type Waiting = Awaited<ReturnType<typeof waiting>>;

  test.each<[string, (waits: Waiting) => unknown]>([
    ["is cancelled", ({ server, key, run_id }) => server.system.cancel(key, run_id, "interrupt")],
    ["fails in another task", ({ fail }) => fail()],
  ])("keeps no timer when its run %s", async (_, stop) => {
    const waits = await waiting();
    const { server, key, run_id, timers } = waits;
    expect(server.scheduler.timers).toBeGreaterThan(timers);
    stop(waits);
    await server.do(server.system.settled(key, run_id));
    expect(server.scheduler.timers).toBe(timers);
  });
});
