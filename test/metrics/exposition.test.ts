import { expect, test } from "vitest";
import { Exposition } from "../../src/metrics/exposition.ts";
import type { MetricFamily } from "../../src/metrics/metric-family.ts";
import { Lines } from "../stream/support.ts";

const told = async (...families: MetricFamily[]) =>
  (await new Exposition(families, new Lines()).render()).body;

test("numbers are looked at when somebody asks, each time anew", async () => {
  let count = 0;
  const runs: MetricFamily = { name: "runs_total", help: "Runs", type: "counter", read: () => count };
  const exposition = new Exposition([runs], new Lines());
  const { type, body } = await exposition.render();
  expect(type).toBe("text/plain; version=0.0.4; charset=utf-8");
  expect(body).toBe("# HELP runs_total Runs\n# TYPE runs_total counter\nruns_total 0\n");
  count = 7;
  expect((await exposition.render()).body).toContain("\nruns_total 7\n");
});

test("labels may hold anything; a sample that is not read again is told no more", async () => {
  let graphs = ['a"\\\n', "__proto__"];
  const family: MetricFamily = {
    name: "runs",
    help: "Runs",
    type: "gauge",
    labels: ["graph"],
    read: () => graphs.map((graph, i) => [{ graph }, i]),
  };
  const exposition = new Exposition([family], new Lines());
  expect((await exposition.render()).body).toContain(
    'runs{graph="a\\"\\\\\\n"} 0\nruns{graph="__proto__"} 1\n',
  );
  graphs = ["b"];
  expect((await exposition.render()).body).toBe('# HELP runs Runs\n# TYPE runs gauge\nruns{graph="b"} 0\n');
});

test("what there is not is left out, and so is what cannot be read: the rest is told, and the log tells why", async () => {
  const told: unknown[] = [];
  const logger = Object.assign(new Lines(), { warn: (...line: unknown[]) => void told.push(line) });
  const fine: MetricFamily = { name: "fine", help: "Fine", type: "gauge", read: async () => 1 };
  const none: MetricFamily = { name: "none", help: "None", type: "gauge", read: () => undefined };
  const broken: MetricFamily = {
    name: "broken_total",
    help: "Broken",
    type: "counter",
    read: () => Promise.reject(new Error("the disk is gone")),
  };
  const { body } = await new Exposition([fine, none, broken], logger).render();
  expect(body.split("\n").filter((line) => line !== "" && !line.startsWith("#"))).toEqual(["fine 1"]);
  expect(told).toMatchObject([[/figure/, { figure: "broken_total", error: "Error: the disk is gone" }]]);
});

test("two of them know nothing of one another, and who asks at the same time shares an answer", async () => {
  let reads = 0;
  const family: MetricFamily = { name: "reads", help: "Reads", type: "gauge", read: async () => ++reads };
  expect(await told(family)).toContain("reads 1");
  const other = new Exposition([family], new Lines());
  const [one, two] = await Promise.all([other.render(), other.render()]);
  expect([one === two, reads]).toEqual([true, 2]);
});

test("a distribution counts by size what it is told of once somebody has looked", async () => {
  let observe: (value: number) => void = () => undefined;
  const family: MetricFamily = {
    name: "lag_seconds",
    help: "Lag",
    type: "histogram",
    buckets: [0.1, 1],
    look: (to) => (observe = to),
  };
  const exposition = new Exposition([family], new Lines());
  expect((await exposition.render()).body).toContain("lag_seconds_count 0");
  for (const value of [0.05, 0.5, 5]) observe(value);
  const { body } = await exposition.render();
  expect(body).toContain('lag_seconds_bucket{le="0.1"} 1\nlag_seconds_bucket{le="1"} 2');
  expect(body).toContain("lag_seconds_sum 5.55\nlag_seconds_count 3");
});
