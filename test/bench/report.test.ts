import { expect, test } from "vitest";
import { reportRow } from "../../bench/report.ts";
import type { Figures, Row } from "../../bench/rows/row.ts";

const row: Row = {
  name: "row",
  what: "a row",
  goals: [{ figure: "per_s", least: 100 }],
  run: () => Promise.reject(new Error("not asked for")),
};

test.each([
  ["what is reached", { per_s: 100, ok_p99_ms: 50 }, []],
  ["what is not", { per_s: 99, ok_p99_ms: 50 }, ["per s"]],
  ["a door that answers late", { per_s: 100, ok_p99_ms: 51 }, ["/ok p99 ms"]],
  ["a door that was not asked", { per_s: 100 }, []],
  ["a figure that is missing", { ok_p99_ms: 10 }, ["per s"]],
] as const)("%s", (_, figures: Figures, missed) => {
  expect(reportRow(row, () => [figures], undefined).missed).toEqual(missed);
});

test("a row without a target misses nothing", () => {
  const { goals: _, ...free } = row;
  expect(reportRow(free, () => [{ ok_p99_ms: 500 }], undefined).missed).toBeUndefined();
});
