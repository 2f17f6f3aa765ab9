import { describe, expect, test } from "vitest";
import { newThreadRecord } from "../../src/model/thread.ts";
import { everyStatelessEndIsDelivered, goneWhenDone, nothingHiddenIsLeft } from "./checkers/stateless.ts";
import { indexesAgree, stateIsTheFold } from "./checkers/stored.ts";
import { Ledger } from "./ledger.ts";
import { checkpoint, effect, stored, storedRun } from "./fixtures.ts";

const RUN = "019a1f8d-4800-7000-8000-000000000000";

function oneStateless(bound: boolean) {
  const ledger = new Ledger();
  const entry = ledger.acknowledgeStateless(RUN, "stateless", ledger.now(), true, { bound, last: "join" });
  return { ledger, entry };
}

const bodies = (...nodes: string[]) => nodes.map((node) => effect(RUN, node, node));

describe("runs without a thread", () => {
  test("one that came to its last node is in order, one that did not is lost", () => {
    const { ledger, entry } = oneStateless(false);
    expect(goneWhenDone(ledger, [entry], bodies("plan", "join"))).toEqual([]);
    expect(goneWhenDone(ledger, [entry], bodies("plan"))).toMatchObject([{ invariant: "I1" }]);
  });

  test("one that is bound to its client may be undone after a kill, another may not", () => {
    for (const bound of [true, false]) {
      const { ledger, entry } = oneStateless(bound);
      ledger.gone("killed");
      expect(goneWhenDone(ledger, [entry], [])).toHaveLength(bound ? 0 : 1);
    }
  });

  test("one that had ended before the kill may not", () => {
    const { ledger, entry } = oneStateless(true);
    entry.ended = ledger.now() - 1;
    ledger.gone("killed");
    expect(goneWhenDone(ledger, [entry], [])).toHaveLength(1);
  });

  test("one that is bound to its client and goes on in another life is found", () => {
    const { ledger, entry } = oneStateless(true);
    ledger.gone("killed");
    const [first] = bodies("plan");
    const twice = [first, { ...first, pid: 2 }] as ReturnType<typeof bodies>;
    expect(goneWhenDone(ledger, [entry], twice)).toMatchObject([{ invariant: "I10" }]);
    const free = oneStateless(false);
    expect(goneWhenDone(free.ledger, [free.entry], [...twice, ...bodies("join")])).toEqual([]);
  });

  const delivered = { run: RUN, id: RUN, status: "success" };

  test.each([
    ["delivered twice", [delivered, delivered], undefined],
    ["never delivered", [], "never delivered"],
    ["delivered as stopped", [{ ...delivered, status: "interrupted" }], "cannot have ended as interrupted"],
    ["delivered as failed", [{ ...delivered, status: "error" }], "cannot have ended as error"],
    ["two ends delivered", [delivered, { ...delivered, status: "error" }], "ended once"],
  ])("an end that is %s", (_, all, message) => {
    const { ledger, entry } = oneStateless(false);
    const found = everyStatelessEndIsDelivered(ledger, [entry], all);
    if (message === undefined) expect(found).toEqual([]);
    else expect(found[0]?.message).toContain(message);
  });

  test("one that was rolled back need not be delivered", () => {
    const { ledger, entry } = oneStateless(false);
    ledger.disturb(entry.thread, "rollback", RUN);
    expect(everyStatelessEndIsDelivered(ledger, [entry], [])).toEqual([]);
  });

  test("a thread that is left behind is found, and has to be marked meanwhile", () => {
    const record = newThreadRecord("t", 0, { temporary: "free" });
    expect(nothingHiddenIsLeft(stored({}))).toEqual([]);
    expect(nothingHiddenIsLeft(stored({ record }))).toMatchObject([{ invariant: "I10" }]);
    expect(indexesAgree(stored({ record }, ["t"]))).toEqual([]);
    expect(indexesAgree(stored({ record }))).toHaveLength(1);
  });
});

describe("I6 of a run that stores nothing before its end", () => {
  const folded = (log: string[], durability: string) => {
    const run = storedRun("success", [], 0);
    const kwargs = { ...run.record.kwargs, durability } as typeof run.record.kwargs;
    const writes = { last: { log: ["r:last"] } };
    const checkpoints = [
      checkpoint("b", "a", ["x", ...log], { writes }),
      checkpoint("a", null, ["x"], { writes: { x: { log: ["x"] } } }),
    ];
    return stateIsTheFold(stored({ checkpoints, runs: [{ ...run, record: { ...run.record, kwargs } }] }));
  };

  test("its one checkpoint holds all of its steps; of others it would be a fault", () => {
    expect(folded(["r:first", "r:last"], "exit")).toEqual([]);
    expect(folded(["r:first", "r:last"], "async")).toHaveLength(1);
  });

  test.each([
    ["lost", ["r:first"]],
    ["doubled", ["r:first", "r:last", "r:last"]],
    ["foreign", ["other:first", "r:last"]],
  ])("a %s entry is found", (_, log) => {
    expect(folded(log, "exit")).toHaveLength(1);
  });
});
