import { describe, expect, it } from "vitest";
import { newThreadRecord } from "../../src/model/thread.ts";
import { RecordCache } from "../../src/storage/record-cache.ts";

const KIB = 1024;
/** The size of one generation. */
const MOST = 2048 * KIB;

const record = (name: string, epoch = 1) => ({ ...newThreadRecord(name, 1_000, {}), epoch });

function filled(recent: RecordCache, count: number, size: number, prefix: string): void {
  for (let i = 0; i < count; i++) recent.set(`${prefix}${i}`, record(`${prefix}${i}`), size);
}

function heldOf(recent: RecordCache, count: number, prefix: string): number {
  return Array.from({ length: count }, (_, i) => recent.get(`${prefix}${i}`)).filter((it) => it !== undefined)
    .length;
}

describe("records of threads remembered", () => {
  it("gives back the one that was set last", () => {
    const recent = new RecordCache();
    recent.set("a", record("a", 1), 100);
    recent.set("a", record("a", 2), 100);
    expect(recent.get("a")?.epoch).toBe(2);
    expect(recent.get("b")).toBeUndefined();
  });

  it("gives back the newer one where an older generation holds another", () => {
    const recent = new RecordCache();
    recent.set("a", record("a", 1), 100);
    filled(recent, 33, 64 * KIB, "x");
    recent.set("a", record("a", 2), 100);
    expect(recent.get("a")?.epoch).toBe(2);
  });

  it("holds two generations of so many bytes, however many records that is", () => {
    for (const size of [KIB, 16 * KIB, 256 * KIB]) {
      const recent = new RecordCache();
      const count = (8 * MOST) / size;
      filled(recent, count, size, "x");
      const held = heldOf(recent, count, "x") * size;
      expect(held).toBeGreaterThanOrEqual(MOST);
      expect(held).toBeLessThanOrEqual(2 * (MOST + size));
    }
  });

  it("counts what a record grows to", () => {
    const recent = new RecordCache();
    filled(recent, 64, 100, "x");
    filled(recent, 64, 100 * KIB, "x");
    filled(recent, 64, 100 * KIB, "y");
    expect(heldOf(recent, 64, "x") + heldOf(recent, 64, "y")).toBeLessThanOrEqual(42);
  });

  it("does not count one that is set again twice", () => {
    const recent = new RecordCache();
    recent.set("a", record("a"), KIB);
    for (let i = 0; i < 4 * KIB; i++) recent.set("b", record("b", i), KIB);
    expect(recent.get("a")).toBeDefined();
  });

  it("forgets one, in both generations, and all", () => {
    const recent = new RecordCache();
    recent.set("a", record("a"), 100);
    filled(recent, 33, 64 * KIB, "x");
    recent.set("a", record("a"), 100);
    recent.delete("a");
    expect(recent.get("a")).toBeUndefined();
    expect(recent.get("x32")).toBeDefined();
    recent.clear();
    expect(heldOf(recent, 33, "x")).toBe(0);
  });

  it("does not count what it has forgotten", () => {
    const recent = new RecordCache();
    recent.set("a", record("a"), KIB);
    for (let i = 0; i < 64; i++) {
      recent.set("b", record("b"), 100 * KIB);
      recent.delete("b");
    }
    expect(recent.get("a")).toBeDefined();
  });
});
