import { describe, expect, test } from "vitest";
import { z } from "zod";
import { graph, list, messages, send, value } from "../../src/index.ts";
import { Thread } from "./driver.ts";

type Asks = { interrupt(value: unknown): Promise<string> };
/** A literal as plain JavaScript would bring it, without the help of types. */
const define = graph as unknown as (literal: object) => unknown;

const ask = async (_: unknown, ctx: Asks) => ({ log: [await ctx.interrupt("?")] });
const says = (word: string) => async () => ({ log: [word] });
const before = {
  state: { total: z.number().default(1), log: list<string>(), messages: messages() },
  nodes: { begin: says("began"), ask, end: says("end") },
  edges: { start: "begin", begin: "ask", ask: "end" },
};

/** A thread that waits at `ask`, with the graph as it was; from here on `change` is the graph. */
async function paused(change: object, was: object = before) {
  const thread = new Thread(define(was));
  const { plan } = await thread.run({ input: { total: 5 } });
  expect(plan.kind).toBe("paused");
  thread.registry.replace({ g: define({ ...was, ...change }) });
  return thread;
}

const metadata = (thread: Thread) => thread.head?.metadata;
const told = "Nothing is lost: name a node to go on with (command.goto)";

describe("a graph that has changed under a paused thread", () => {
  test("goes on where it fits, and its checkpoints say so", async () => {
    const thread = await paused({ nodes: { ...before.nodes, end: says("another end"), more: says("more") } });
    const { values, error } = await thread.run({ command: { resume: "yes" } });
    expect(error).toBeNull();
    expect(values).toMatchObject({ log: ["began", "yes", "another end"], total: 5 });
    expect(metadata(thread)).toMatchObject({ graph_changed: true });
    // The next run on the thread finds nothing changed any more.
    await thread.run({ input: {} });
    expect(metadata(thread)).not.toHaveProperty("graph_changed");
  });

  test("other bodies, names and options are no change", async () => {
    const thread = await paused({
      name: "x",
      nodes: { ...before.nodes, end: { run: says("other"), retry: 2 } },
    });
    await thread.run({ command: { resume: "yes" } });
    expect(metadata(thread)).not.toHaveProperty("graph_changed");
  });

  test("a second attempt after a crash still says so", async () => {
    const thread = await paused({ nodes: { ...before.nodes, more: says("more") } });
    const record = thread.record({ command: { resume: "yes" } });
    await thread.run({}, { record, stopAfter: 2 });
    expect(metadata(thread)).toMatchObject({ graph_changed: true });
    await thread.run({}, { record: { ...record, attempt: 2 } });
    expect(thread.head?.next).toEqual([]);
    expect(metadata(thread)).toMatchObject({ graph_changed: true });
  });

  const { ask: _, ...others } = before.nodes;
  const renamed = { ...others, approve: ask };
  const edges = { start: "begin", begin: "approve", approve: "end" };

  test.each<[string, object, string[]]>([
    [
      "a node that is gone",
      { nodes: renamed, edges },
      ['it waits at the node "ask", which is gone; the nodes are begin, end, approve'],
    ],
    [
      "a key of another kind",
      { state: { ...before.state, total: list() } },
      ["state.total: must be an array"],
    ],
    [
      "a key with another schema",
      { state: { ...before.state, total: z.string(), more: value(0) } },
      ["state.total: Invalid input: expected string, received number"],
    ],
    [
      "a key that is required now",
      { state: { ...before.state, due: z.string() } },
      ["state.due is required and has no value"],
    ],
    [
      "all of it",
      { nodes: renamed, edges, state: { total: z.string(), log: before.state.log } },
      ['node "ask"', "state.total"],
    ],
  ])("does not go on with %s: it is told, and nothing is lost", async (_name, change, faults) => {
    const thread = await paused(change);
    const { head, interrupts } = thread;
    const writes = thread.writesAt(head);
    for (const kwargs of [{ command: { resume: "yes" } }, { input: null }]) {
      const { error } = await thread.run(kwargs);
      expect(error?.error).toBe("GraphChangedError");
      for (const fault of faults) expect(error?.message).toContain(fault);
      expect(error?.message).toContain(told);
    }
    expect(thread.head).toBe(head);
    expect(thread.writesAt(head)).toEqual(writes);
    expect(thread.interrupts).toEqual(interrupts);
    // With the graph as it was the answer is taken.
    thread.registry.replace({ g: define(before) });
    const { values } = await thread.run({ command: { resume: "yes" } });
    expect(values).toMatchObject({ total: 5, log: ["began", "yes", "end"] });
  });

  test("command.goto mends a node that is gone: what waited there is given up", async () => {
    const thread = await paused({ nodes: renamed, edges });
    const asked = await thread.run({ command: { goto: "approve" } });
    expect(asked.plan.kind).toBe("paused");
    const { values } = await thread.run({ command: { resume: "yes" } });
    expect(values).toMatchObject({ total: 5, log: ["began", "yes", "end"] });
    expect(thread.checkpoints.some((one) => one.metadata["graph_changed"] === true)).toBe(true);
  });

  test("with an update it mends a key as well; without, the key is told", async () => {
    const thread = await paused({ nodes: renamed, edges, state: { ...before.state, total: z.string() } });
    const { error } = await thread.run({ command: { goto: "approve" } });
    expect(error?.message).toContain("state.total");
    expect(error?.message).not.toContain('"ask"');
    const { plan } = await thread.run({ command: { goto: "approve", update: { total: "five" } } });
    expect(plan.kind).toBe("paused");
    const { values } = await thread.run({ command: { resume: "yes" } });
    expect(values).toMatchObject({ total: "five", log: ["began", "yes", "end"] });
  });

  describe("migrate", () => {
    const state = { sum: z.string(), log: before.state.log, messages: before.state.messages };
    const calls: unknown[] = [];
    const migrate = (old: { total?: number; log: string[] }, from: { from: string }) => {
      calls.push([old.total, from.from]);
      return { ...old, sum: `${old.total}`, log: old.log.map((line) => line.toUpperCase()) };
    };

    test("makes the state fit; what it made is stored, and what is not used any more is kept", async () => {
      const hash = (define(before) as { hash: string }).hash;
      const thread = await paused({ state, migrate });
      const { values } = await thread.run({ command: { resume: "yes" } });
      expect(values).toMatchObject({ sum: "5", log: ["BEGAN", "yes", "end"], total: 5 });
      expect(thread.stored()).toEqual(values);
      expect(calls.at(-1)).toEqual([5, hash]);
      const count = calls.length;
      await thread.run({ input: {} });
      expect(calls).toHaveLength(count);
    });

    test("is called for an input too, before what is required is looked for", async () => {
      const thread = new Thread(define({ ...before, edges: { start: "begin" } }));
      await thread.run({ input: { total: 7 } });
      thread.registry.replace({ g: define({ ...before, state, migrate }) });
      const { values, error } = await thread.run({ input: {}, interrupt_before: ["ask"] });
      expect(error).toBeNull();
      expect(values).toMatchObject({ sum: "7", log: ["BEGAN", "began"] });
      expect(thread.stored()).toEqual(values);
      expect(metadata(thread)).not.toHaveProperty("graph_changed");
    });

    test.each<[string, unknown, string]>([
      ["throws", () => JSON.parse("{"), "its migrate function failed: Expected property name"],
      ["returns nothing", () => undefined, "it must return the state"],
      ["is asynchronous", async () => ({}), "it must return the state"],
      ["makes a key that is none", () => ({ sum: "1", sun: 1 }), 'the state has no key "sun"'],
      ["makes what a key refuses", () => ({ sum: 1 }), "state.sum: Invalid input: expected string"],
      ["leaves out what is required", () => ({}), "state.sum is required"],
      ["makes what cannot be stored", () => ({ sum: () => 1 }), "sum cannot be stored"],
    ])("when it %s, it is told and nothing is lost", async (_name, broken, message) => {
      const thread = await paused({ state, migrate: broken });
      const { head } = thread;
      const { error } = await thread.run({ command: { resume: "yes" } });
      expect(error?.error).toBe("GraphChangedError");
      expect(error?.message).toContain(message);
      expect(thread.head).toBe(head);
      expect(thread.interrupts).not.toEqual({});
    });
  });

  test("what finished siblings have left is looked at too", async () => {
    const was = {
      state: { log: list<string>(), extra: value(0) },
      nodes: {
        ask,
        writes: async () => ({ extra: 1 }),
        leads: async () => [send("later", {})],
        later: says("later"),
      },
      edges: { start: ["ask", "writes", "leads"] },
    };
    const thread = new Thread(define(was));
    await thread.run({ input: {} });
    const { later: _later, ...nodes } = was.nodes;
    thread.registry.replace({ g: define({ ...was, state: { log: was.state.log }, nodes }) });
    const { error } = await thread.run({ command: { resume: "yes" } });
    expect(error?.message).toContain(
      'the update of "writes" has "extra", which is no key of the state any more',
    );
    expect(error?.message).toContain('it waits at the node "later", which is gone');
  });

  test("a deferred node that is gone is missed", async () => {
    const was = {
      ...before,
      nodes: { ...before.nodes, end: { defer: true, run: says("end") } },
      edges: { start: ["ask", "end"] },
    };
    const { end: _end, ...nodes } = before.nodes;
    const thread = await paused({ nodes, edges: { start: "ask" } }, was);
    expect((await thread.run({ command: { resume: "yes" } })).error?.message).toContain('the node "end"');
  });

  test("another graph on the same thread is told apart from a changed one", async () => {
    const thread = await paused({});
    thread.registry.replace({
      g: define(before),
      h: define({ ...before, nodes: renamed, edges, migrate: () => ({}) }),
    });
    const record = { ...thread.record({ command: { resume: "yes" } }), graph_id: "h" };
    const { error } = await thread.run({}, { record });
    expect(error?.message).toContain(`was made by the graph "g", not by "h"`);
  });
});
