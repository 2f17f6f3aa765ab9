import { describe, expect, test } from "vitest";
import type { Scheduler } from "../../src/ports/scheduler.ts";

export interface SchedulerRig {
  readonly scheduler: Scheduler;
  /** Milliseconds, monotonic. */
  now(): number;
  /** Lets ready work run and at least `ms` milliseconds pass. */
  pass(ms: number): Promise<void>;
}

/** The contract of every scheduler. */
export function schedulerContract(kind: string, make: () => SchedulerRig): void {
  describe(`scheduler: ${kind}`, () => {
    test("soon: after the current turn and its promise callbacks", async () => {
      const { scheduler, pass } = make();
      const order: string[] = [];
      scheduler.soon(() => order.push("soon"));
      void Promise.resolve()
        .then(() => order.push("first callback"))
        .then(() => order.push("second callback"));
      order.push("turn");
      await pass(1);
      expect(order).toEqual(["turn", "first callback", "second callback", "soon"]);
    });

    test("soon: in the order of the calls, each with its promise callbacks", async () => {
      const { scheduler, pass } = make();
      const order: string[] = [];
      for (const name of ["a", "b", "c"]) {
        scheduler.soon(() => {
          order.push(name);
          void Promise.resolve().then(() => order.push(`${name}'s callback`));
        });
      }
      await pass(1);
      expect(order).toEqual(["a", "a's callback", "b", "b's callback", "c", "c's callback"]);
    });

    test("soon: what is asked for meanwhile comes behind what is ready", async () => {
      const { scheduler, pass } = make();
      const order: string[] = [];
      scheduler.soon(() => {
        order.push("a");
        scheduler.soon(() => order.push("asked for by a"));
      });
      scheduler.soon(() => order.push("b"));
      await pass(1);
      expect(order).toEqual(["a", "b", "asked for by a"]);
    });

    test("after: once, and not before its time", async () => {
      const { scheduler, now, pass } = make();
      const start = now();
      const fired: number[] = [];
      scheduler.after(30, () => fired.push(now() - start));
      await pass(40);
      await pass(40);
      expect(fired).toHaveLength(1);
      // A timer may fire within its last millisecond.
      expect(fired[0]).toBeGreaterThanOrEqual(29);
    });

    test("after: by time, whatever the order of the calls", async () => {
      const { scheduler, pass } = make();
      const order: number[] = [];
      for (const ms of [40, 1, 20]) scheduler.after(ms, () => order.push(ms));
      await pass(60);
      expect(order).toEqual([1, 20, 40]);
    });

    test("after: ended, it does not fire; ended twice, or after it has fired, nothing happens", async () => {
      const { scheduler, pass } = make();
      let fired = 0;
      const cancel = scheduler.after(5, () => fired++);
      const kept = scheduler.after(5, () => fired++);
      cancel();
      cancel();
      await pass(20);
      expect(fired).toBe(1);
      kept();
    });

    test.each([2 ** 31, 2 ** 32 + 5, 1e12])("after: %d ms do not fire early", async (ms) => {
      const { scheduler, pass } = make();
      let fired = 0;
      const cancel = scheduler.after(ms, () => fired++);
      await pass(10);
      expect(fired).toBe(0);
      cancel();
    });
  });
}
