import { expect, test } from "vitest";
import { graph, list } from "../../src/index.ts";
import type { Execution, EngineStep } from "../../src/ports/engine.ts";
import { Thread } from "./driver.ts";

const inner = graph({
  state: { log: list<string>() },
  nodes: { a: async () => ({ log: ["a"] }), b: async () => ({ log: ["b"] }) },
  edges: { start: "a", a: "b" },
});
const outer = graph({
  state: { log: list<string>() },
  nodes: { sub: inner, beside: async () => ({ log: ["beside"] }) },
  edges: { start: ["sub", "beside"] },
});

const tasksOf = (step: EngineStep) => (step.plan.kind === "tasks" ? step.plan.tasks : []);

test("an attempt that is taken up after the root's fork still begins the subgraph where the run said", async () => {
  const thread = new Thread(outer);
  const first = await thread.open(thread.record({ input: {} })).begin();
  thread.keep(first);
  const root = thread.head;
  const sub = tasksOf(first).find(({ name }) => name === "sub");
  const ns = `sub:${sub?.id}`;
  const id = "1f1e6560-2160-6710-8001-36cf6744fd7b";
  const configurable = { checkpoint_ns: ns, checkpoint_id: id, checkpoint_map: { "": root?.id, [ns]: id } };
  const run = thread.record({ input: null, config: { configurable, metadata: {} } });
  const leads = (execution: Execution, step: EngineStep) =>
    tasksOf(step)
      .filter(({ name }) => name === "sub")
      .map((task) => {
        execution.call(task.id);
        return execution.enter(task.id).from;
      });

  const attempt = thread.open(run);
  const forked = await attempt.begin();
  thread.keep(forked);
  expect(forked.checkpoints).toMatchObject([{ source: "fork", parent: root?.id }]);
  expect(tasksOf(forked).map(({ name }) => name)).toEqual(["beside", "sub"]);
  expect(leads(attempt, forked)).toEqual([{ ns, id }]);

  const later = thread.open({ ...run, attempt: 2 });
  const again = await later.begin();
  expect(again.checkpoints).toEqual([]);
  expect(leads(later, again)).toEqual([{ ns, id }]);
});
