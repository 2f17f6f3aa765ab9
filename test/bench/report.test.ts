import { expect, test } from "vitest";
import { isTargetMet, reportPeer, reportRow } from "../../bench/report.ts";
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

test("beside the peer stands what was asked for, as a ratio of where the target was set", () => {
  const there = { per_s: 20, p50_ms: 500 };
  const { figures } = reportPeer(
    { ...row, peer: { share: 1, there } },
    [{ per_s: 90, p50_ms: 3 }],
    [{ per_s: 10, p50_ms: 600 }],
    undefined,
  );
  const told = figures.map(({ figure, ratio }) => [figure, ratio.median, ratio.asked]);
  expect(told).toEqual([
    ["per_s", 9, 5],
    // There is no target for it.
    ["p50_ms", 0.005, undefined],
  ]);
});

test("beside a control too", () => {
  const against = [{ row: "control", figure: "per_s", there: 200 }] as const;
  const of = (name: string) => (name === "row" ? [{ per_s: 80 }] : [{ per_s: 100 }]);
  expect(reportRow({ ...row, against }, of, undefined).ratios).toMatchObject({
    "control per s": { median: 0.8, asked: 0.5 },
  });
});

test.each([
  ["per_s", 0.8, 0.5, true],
  ["per_s", 0.5, 0.5, true],
  ["per_s", 0.4, 0.5, false],
  ["cpu_us", 0.4, 0.5, true],
  ["cpu_us", 0.6, 0.5, false],
  ["p99_ms", 0.6, undefined, undefined],
] as const)("%s: %d of a control, %s asked: %s", (figure, median, asked, reached) => {
  const ratio = { figure, median, low: median, high: median, ...(asked === undefined ? {} : { asked }) };
  expect(isTargetMet(ratio)).toBe(reached);
});
