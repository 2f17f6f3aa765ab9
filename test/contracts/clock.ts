import { describe, expect, test } from "vitest";
import type { Clock } from "../../src/ports/clock.ts";

export interface ClockRig {
  readonly clock: Clock;
  /** Lets at least `ms` milliseconds pass. */
  pass(ms: number): Promise<void>;
}

/** The contract of every clock. */
export function clockContract(kind: string, make: () => ClockRig): void {
  describe(`clock: ${kind}`, () => {
    test("wall time is whole milliseconds", () => {
      const { clock } = make();
      expect(Number.isSafeInteger(clock.now())).toBe(true);
      expect(new Date(clock.now()).getUTCFullYear()).toBeGreaterThan(2020);
    });

    test("monotonic time never goes back", () => {
      const { clock } = make();
      let last = clock.mono();
      for (let i = 0; i < 1_000; i++) {
        const next = clock.mono();
        expect(next).toBeGreaterThanOrEqual(last);
        last = next;
      }
    });

    test("both move on with time", async () => {
      const { clock, pass } = make();
      const [wall, mono] = [clock.now(), clock.mono()];
      await pass(20);
      // Tolerates rounding, and timers that fire within their last millisecond.
      expect(clock.now() - wall).toBeGreaterThanOrEqual(18);
      expect(clock.mono() - mono).toBeGreaterThanOrEqual(18);
    });
  });
}
