import { describe, expect, test } from "vitest";
import {
  actionOnQueuedRuns,
  decideMultitask,
  strongerStop,
  type MultitaskDecision,
  type ThreadSituation,
} from "../../actors/thread/multitask.ts";
import { multitaskStrategies, type MultitaskStrategy } from "../../src/model/run.ts";

const rows: [MultitaskStrategy, ThreadSituation, MultitaskDecision][] = [
  ["reject", "resting", { kind: "start" }],
  ["enqueue", "resting", { kind: "start" }],
  ["interrupt", "resting", { kind: "start" }],
  ["rollback", "resting", { kind: "start" }],
  ["reject", "working", { kind: "refuse" }],
  ["enqueue", "working", { kind: "queue" }],
  ["interrupt", "working", { kind: "supersede", action: "interrupt", active: true }],
  ["rollback", "working", { kind: "supersede", action: "rollback", active: true }],
  ["reject", "settling", { kind: "refuse" }],
  ["enqueue", "settling", { kind: "queue" }],
  ["interrupt", "settling", { kind: "supersede", action: "interrupt", active: false }],
  ["rollback", "settling", { kind: "supersede", action: "rollback", active: false }],
];

describe("the multitask rules", () => {
  test.each(rows)("%s while the thread is %s", (strategy, situation, decision) => {
    expect(decideMultitask(strategy, situation)).toEqual(decision);
  });

  test("once the run in progress is told to stop, one that would be refused waits for that; the others do as before", () => {
    for (const [strategy, situation, decision] of rows) {
      const left = strategy === "reject" && situation !== "resting" ? { kind: "queue" } : decision;
      expect(decideMultitask(strategy, situation, true)).toEqual(left);
    }
  });

  test("each rule is decided in each situation", () => {
    expect(rows.map(([strategy, situation]) => `${strategy} ${situation}`).sort()).toEqual(
      multitaskStrategies
        .flatMap((strategy) =>
          ["resting", "working", "settling"].map((situation) => `${strategy} ${situation}`),
        )
        .sort(),
    );
  });

  test("what supersedes the run in progress also ends the runs that wait, in the same way", () => {
    for (const [strategy, situation, decision] of rows.filter(([, where]) => where !== "resting")) {
      const action = decision.kind === "supersede" ? decision.action : null;
      expect(actionOnQueuedRuns(strategy), `${strategy} ${situation}`).toBe(action);
    }
  });

  test("a rollback is never softened to an interrupt", () => {
    expect(strongerStop("rollback", "interrupt")).toBe("rollback");
    expect(strongerStop("interrupt", "rollback")).toBe("rollback");
    expect(strongerStop(null, "interrupt")).toBe("interrupt");
  });
});
