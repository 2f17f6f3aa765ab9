import { expect, test } from "vitest";
import { runChaos, type Outcome } from "./driver.ts";

/** Characters: the longest evidence of a violation that is printed. */
const MOST = 2000;

/** Returns the findings in a form that a failed test prints in full. */
const reported = ({ violations, seed }: Outcome) =>
  violations.map(({ invariant, message, evidence }) => {
    const shown = (JSON.stringify(evidence) ?? "").slice(0, MOST);
    return `${invariant}: ${message} (seed ${seed}): ${shown}`;
  });

test("kills and stops under load: nothing acknowledged is lost, nothing is repeated, every stream goes on", async () => {
  const outcome = await runChaos({
    kills: 2,
    stops: 2,
    seed: 20_261,
    threads: 20,
    clients: 12,
    longest: 1_500,
    least: 60,
  });
  expect(reported(outcome)).toEqual([]);
  expect(outcome.runs).toBeGreaterThan(20);
  expect(outcome.stateless).toBeGreaterThan(5);
  expect(outcome.events).toBeGreaterThan(100);
  expect(outcome.machineEvents).toBeGreaterThan(3);
}, 300_000);

test("the same where half of the threads have a graph of LangGraph.js", async () => {
  const outcome = await runChaos({
    kills: 1,
    stops: 1,
    seed: 4,
    threads: 12,
    clients: 8,
    longest: 800,
    least: 20,
    hosted: true,
  });
  expect(reported(outcome)).toEqual([]);
  expect(outcome.runs).toBeGreaterThan(10);
}, 300_000);

test("a server that answers before its batch is on its way is found out", async () => {
  const outcome = await runChaos({
    kills: 6,
    seed: 8,
    threads: 20,
    clients: 12,
    longest: 800,
    plant: "ack-early",
  });
  expect(outcome.violations.map(({ invariant }) => invariant)).toContain("I1");
}, 300_000);

test("a server that loses timers of machines is found out", async () => {
  const outcome = await runChaos({
    kills: 1,
    seed: 5,
    threads: 12,
    clients: 8,
    longest: 800,
    least: 80,
    plant: "lose-timers",
  });
  expect(outcome.violations.map(({ invariant }) => invariant)).toContain("I14");
}, 300_000);
