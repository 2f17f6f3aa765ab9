import { describe, expect, test } from "vitest";
import type { Random } from "../../src/ports/random.ts";

/** The contract of every source of randomness. */
export function randomContract(kind: string, make: () => Random): void {
  describe(`random: ${kind}`, () => {
    test.each([0, 1, 16, 63, 64])("gives exactly %d bytes", (count) => {
      expect(make().bytes(count)).toHaveLength(count);
    });

    test.each([-1, 65, 1.5, Number.NaN])("refuses to give %d bytes", (count) => {
      expect(() => make().bytes(count)).toThrow(TypeError);
    });

    test("does not repeat itself, over many draws of every size", () => {
      const random = make();
      const seen = new Set<string>();
      for (let i = 0; i < 5_000; i++) seen.add(Buffer.from(random.bytes(16 + (i % 49))).toString("hex"));
      expect(seen.size).toBe(5_000);
    });

    test("what it gave stays as it was, and may be changed", () => {
      const random = make();
      const first = random.bytes(16);
      const copy = Uint8Array.from(first);
      const rest = Array.from({ length: 1_000 }, () => random.bytes(16));
      expect(first).toEqual(copy);
      const before = rest.map((bytes) => Uint8Array.from(bytes));
      first.fill(0);
      expect(rest).toEqual(before);
    });

    test("every value of a byte comes up about as often", () => {
      const random = make();
      const counts = Array.from({ length: 256 }, () => 0);
      for (let i = 0; i < 4_000; i++)
        for (const byte of random.bytes(64)) counts[byte] = (counts[byte] ?? 0) + 1;
      // 1,000 are expected of each, with a standard deviation of 32; the bounds are six of them either way.
      expect(Math.min(...counts)).toBeGreaterThan(800);
      expect(Math.max(...counts)).toBeLessThan(1_200);
    });

    test("floats are from 0 to below 1, evenly", () => {
      const random = make();
      const tenths = Array.from({ length: 10 }, () => 0);
      for (let i = 0; i < 10_000; i++) {
        const float = random.float();
        expect(float >= 0 && float < 1).toBe(true);
        const tenth = Math.floor(float * 10);
        tenths[tenth] = (tenths[tenth] ?? 0) + 1;
      }
      expect(Math.min(...tenths)).toBeGreaterThan(800);
      expect(Math.max(...tenths)).toBeLessThan(1_200);
    });
  });
}
