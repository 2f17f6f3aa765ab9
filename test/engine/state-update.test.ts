import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  END,
  graph,
  list,
  messages,
  reduce,
  send,
  to,
  untracked,
  value,
  ephemeral,
} from "../../src/index.ts";
import type { Ctx } from "../../src/index.ts";
import type { StateWrite } from "../../src/ports/state-update.ts";
import { Thread } from "./driver.ts";

const says = (word: string) => async () => ({ log: [word] });

/** one -> two and three, side by side -> four (after both) -> END */
const side = () =>
  graph({
    state: { log: list<string>(), total: reduce(z.number().default(0), (a, b) => a + b), say: value("") },
    nodes: {
      one: says("one"),
      two: says("two"),
      three: says("three"),
      four: { after: ["two", "three"], run: says("four") },
    },
    edges: { start: "one", one: ["two", "three"] },
  });

/** one -> two -> three by the state */
const line = () =>
  graph({
    state: {
      log: list<string>(),
      say: value(""),
      said: messages(),
      brief: ephemeral<string>(),
      live: untracked<string>(),
      count: z.number().optional(),
    },
    nodes: {
      one: says("one"),
      two: says("two"),
      three: { input: z.object({ n: z.number() }).partial(), run: says("three") },
    },
    edges: {
      start: "one",
      one: "two",
      two: (state) => (state.say === "stop" ? END : state.say === "send" ? send("three", { n: 1 }) : "three"),
    },
  });

const nextOf = (thread: Thread) => thread.head?.next.map(({ name }) => name);
const paused = async (made: unknown, before: readonly string[]) => {
  const thread = new Thread(made);
  await thread.run({ input: { log: [] }, interrupt_before: before });
  return thread;
};

describe("what an update makes", () => {
  test("its values go through the rules of the channels, and the edges of its node say what runs next", async () => {
    const thread = await paused(line(), ["two"]);
    const before = thread.head;
    const { checkpoint, values } = await thread.update([
      { values: { log: ["edited"], say: "x" }, as_node: "one" },
    ]);
    expect(values).toMatchObject({ log: ["one", "edited"], say: "x" });
    expect(thread.stored()).toEqual(values);
    expect(checkpoint).toMatchObject({
      source: "update",
      parent: before?.id,
      step: 2,
      run_id: null,
      writes: { one: { log: ["edited"], say: "x" } },
      metadata: { graph_id: "g" },
    });
    expect(nextOf(thread)).toEqual(["two"]);
    const { values: end } = await thread.run({});
    expect(end).toMatchObject({ log: ["one", "edited", "two", "three"] });
  });

  const table: readonly (readonly [string, readonly Partial<StateWrite>[], readonly string[]])[] = [
    ["as the node that ran last, where none is named", [{ values: { say: "x" } }], ["two"]],
    ["as another node", [{ values: { say: "x" }, as_node: "two" }], ["three"]],
    ["by the state with the update in it", [{ values: { say: "stop" }, as_node: "two" }], []],
    ["to what an edge sends", [{ values: { say: "send" }, as_node: "two" }], ["three"]],
    ["without values: its edges alone", [{ as_node: "two" }], ["three"]],
    ["as the start", [{ values: { say: "x" }, as_node: "__start__" }], ["one"]],
    ["as an input", [{ values: { say: "x" }, as_node: "__input__" }], ["__start__"]],
    ["as the end", [{ as_node: "__end__" }], []],
    ["as a copy", [{ as_node: "__copy__" }], ["two"]],
    ["with nothing at all: the same once more", [{}], ["two"]],
    ["with an empty update", [{ values: {} }], ["two"]],
    [
      "by a command",
      [{ command: { update: { say: "x" }, goto: "three" }, as_node: "one" }],
      ["three", "two"],
    ],
    [
      "by a command that sends",
      [{ command: { goto: { node: "three", input: { n: 2 } } }, as_node: "three" }],
      ["three"],
    ],
    ["pairs of key and value", [{ values: [["say", "stop"]], as_node: "two" }], []],
    ["several updates in a list", [{ values: [{ log: ["a"] }, { log: ["b"] }], as_node: "three" }], []],
  ];
  test.each(table)("it leads on %s", async (_, writes, next) => {
    const thread = await paused(line(), ["two"]);
    const { checkpoint, values } = await thread.update(writes);
    expect(nextOf(thread)).toEqual(next);
    expect(checkpoint.source).toBe(
      writes[0]?.as_node === "__copy__" ? "fork" : writes[0]?.as_node === "__input__" ? "input" : "update",
    );
    expect(thread.stored()).toEqual(values);
  });

  test("an input is applied by the run that goes on from it", async () => {
    const thread = new Thread(line());
    const { checkpoint } = await thread.update([{ values: { say: "stop" }, as_node: "__input__" }]);
    expect(checkpoint).toMatchObject({
      step: -1,
      source: "input",
      parent: null,
      writes: { __start__: { say: "stop" } },
    });
    expect((await thread.run({})).values).toMatchObject({ say: "stop", log: ["one", "two"] });
  });

  test("on a thread without a state it is the start's, and keys have what they begin with", async () => {
    const thread = new Thread(line());
    const { checkpoint, values } = await thread.update([{ values: { log: ["x"] } }]);
    expect(checkpoint).toMatchObject({ step: 0, parent: null });
    expect(values).toMatchObject({ log: ["x"], say: "" });
    expect(nextOf(thread)).toEqual(["one"]);
  });

  test("after an update, the node that it named was the last", async () => {
    const thread = await paused(line(), ["two"]);
    await thread.update([{ as_node: "two" }]);
    await thread.update([{}]);
    expect(nextOf(thread)).toEqual(["three"]);
    await thread.update([{ values: { say: "stop" } }]);
    expect(nextOf(thread)).toEqual([]);
  });

  test("several updates are those of tasks side by side: a join waits for all of them", async () => {
    const both = await paused(side(), ["two", "three"]);
    await both.update([
      { values: { log: ["2"], total: 1 }, as_node: "two" },
      { values: { log: ["3"], total: 2 }, as_node: "three" },
    ]);
    expect(nextOf(both)).toEqual(["four"]);
    expect(both.values).toMatchObject({ log: ["one", "2", "3"], total: 3 });
    const one = await paused(side(), ["two", "three"]);
    await one.update([{ values: { log: ["2"] }, as_node: "two" }]);
    expect(nextOf(one)).toEqual([]);
    await one.update([{ values: { log: ["3"] }, as_node: "three" }]);
    expect(nextOf(one)).toEqual(["four"]);
  });

  test.each([["two"], ["three"], ["two", "three"]])(
    "as %s, at a state whose next task is their join: it stays complete",
    async (...names) => {
      const thread = await paused(side(), ["four"]);
      await thread.update(names.map((name) => ({ values: { log: [`${name}, edited`] }, as_node: name })));
      expect(nextOf(thread)).toEqual(["four"]);
      expect(thread.head?.engine).not.toHaveProperty("joins");
      const { values } = await thread.run({});
      expect(values["log"]).toEqual([
        "one",
        "three",
        "two",
        ...names.map((name) => `${name}, edited`),
        "four",
      ]);
      expect(thread.head?.engine).not.toHaveProperty("joins");
    },
  );

  test("as a node before those of a complete join, both run again, and the join once", async () => {
    const thread = await paused(side(), ["four"]);
    await thread.update([{ values: { log: ["again"] }, as_node: "one" }]);
    expect(nextOf(thread)).toEqual(["three", "two"]);
    const { values } = await thread.run({});
    expect(values["log"]).toEqual(["one", "three", "two", "again", "three", "two", "four"]);
  });

  test("as a node of a join whose node is next for another reason, the join begins with it", async () => {
    const thread = await paused(side(), ["two", "three"]);
    await thread.update([{ command: { goto: "four" }, as_node: "four" }]);
    expect(nextOf(thread)).toEqual(["four"]);
    await thread.update([{ values: { log: ["2"] }, as_node: "two" }]);
    expect(nextOf(thread)).toEqual([]);
    expect(thread.head?.engine).toMatchObject({ joins: { four: ["two"] } });
  });

  test("as a node of a complete join that is deferred: its node still runs once", async () => {
    const thread = await paused(
      graph({
        state: { log: list<string>() },
        nodes: {
          one: says("one"),
          two: says("two"),
          three: says("three"),
          long: says("long"),
          longer: says("longer"),
          four: { after: ["two", "three"], defer: true, run: says("four") },
        },
        edges: { start: "one", one: ["two", "three", "long"], long: "longer" },
      }),
      ["longer"],
    );
    expect(nextOf(thread)).toEqual(["longer"]);
    await thread.update([{ values: { log: ["2"] }, as_node: "two" }]);
    expect(nextOf(thread)).toEqual(["four"]);
    expect(thread.head?.engine).not.toHaveProperty("joins");
  });

  test("messages get ids, and are replaced by theirs", async () => {
    const thread = await paused(line(), ["two"]);
    const first = await thread.update([{ values: { said: { role: "user", content: "a" } }, as_node: "one" }]);
    const [a] = first.values["said"] as readonly { id: string }[];
    await thread.update([{ values: { said: [{ role: "user", content: "b" }] }, as_node: "one" }]);
    await thread.update([{ values: { said: [{ id: a?.id, role: "user", content: "A" }] }, as_node: "one" }]);
    expect(thread.stored()["said"]).toMatchObject([{ content: "A" }, { content: "b" }]);
  });

  test("what lives for a step is gone after the next one", async () => {
    const thread = await paused(line(), ["two"]);
    await thread.update([{ values: { brief: "x" }, as_node: "one" }]);
    expect(thread.values).toMatchObject({ brief: "x" });
    await thread.update([{ values: { say: "y" }, as_node: "one" }]);
    expect(thread.stored()).not.toHaveProperty("brief");
  });
});

describe("what tasks have left", () => {
  const half = () =>
    graph({
      state: { log: list<string>() },
      nodes: {
        one: says("one"),
        asks: async (_: unknown, ctx: Ctx) => ({ log: [String(await ctx.interrupt("what?"))] }),
        says: async () => to("end", { log: ["said"] }),
        end: says("end"),
        next: says("next"),
      },
      edges: { start: "one", one: ["asks", "says"], asks: "next" },
    });

  test("what has ended counts at the latest state; a question is dropped with its task", async () => {
    const thread = new Thread(half());
    expect((await thread.run({ input: { log: [] } })).plan.kind).toBe("paused");
    await thread.update([{ values: { log: ["for it"] }, as_node: "asks" }]);
    expect(thread.values).toEqual({ log: ["one", "said", "for it"] });
    expect(nextOf(thread)).toEqual(["end", "next"]);
    expect(thread.interrupts).toEqual({});
  });

  test("not at a state that was named", async () => {
    const thread = new Thread(half());
    await thread.run({ input: { log: [] } });
    await thread.update([{ values: { log: ["for it"] }, as_node: "asks" }], thread.head ?? undefined);
    expect(thread.values).toEqual({ log: ["one", "for it"] });
    expect(nextOf(thread)).toEqual(["next"]);
  });

  test("at the end what has ended counts too", async () => {
    const thread = new Thread(half());
    await thread.run({ input: { log: [] } });
    await thread.update([{ as_node: "__end__" }]);
    expect(thread.values).toEqual({ log: ["one", "said"] });
    expect(nextOf(thread)).toEqual([]);
    expect((await thread.run({})).plan.kind).toBe("done");
  });
});

describe("what is refused, by the field", () => {
  const refused = async (thread: Thread, writes: readonly Partial<StateWrite>[]) => {
    const before = thread.head;
    const error = await thread
      .update(writes.map((write) => ({ at: "u.", ...write })))
      .catch((thrown: unknown) => thrown);
    expect(thread.head).toBe(before);
    expect(error).toMatchObject({ name: "ServiceError" });
    return error as { code: string; message: string; fields: readonly { at: string }[] };
  };

  const table: readonly (readonly [string, readonly Partial<StateWrite>[], string, RegExp])[] = [
    [
      "an unknown node",
      [{ as_node: "five" }],
      "u.as_node",
      /"five", which is no node; the nodes are one, two/,
    ],
    ["an inherited name", [{ as_node: "constructor" }], "u.as_node", /no node/],
    ["an unknown key", [{ values: { logg: [] }, as_node: "one" }], "u.values.logg", /no such key/],
    [
      "a value of another type",
      [{ values: { log: "x" }, as_node: "one" }],
      "u.values.log",
      /must be an array/,
    ],
    ["a schema's refusal", [{ values: { count: "x" }, as_node: "one" }], "u.values.count", /number/],
    ["no object", [{ values: "x", as_node: "one" }], "u.values", /must be an object/],
    ["values with the end", [{ values: {}, as_node: "__end__" }], "u.values", /must be null/],
    ["values with a copy", [{ values: {}, as_node: "__copy__" }], "u.values", /must be null/],
    ["what is never stored", [{ values: { live: "x" }, as_node: "one" }], "u.values.live", /never stored/],
    ["several without a node", [{ as_node: "one" }, {}], "u.as_node", /required/],
    ["the end beside others", [{ as_node: "one" }, { as_node: "__end__" }], "u.as_node", /only update/],
    ["a command to nowhere", [{ command: { goto: "five" }, as_node: "one" }], "u.command.goto", /no node/],
    ["an input of another type", [{ values: 1, as_node: "__input__" }], "u.values", /must be an object/],
    [
      "two last values at once",
      [{ values: [{ say: "a" }, { say: "b" }], as_node: "one" }],
      "u.values",
      /say/,
    ],
  ];
  test.each(table)("%s", async (_, writes, at, message) => {
    const error = await refused(await paused(line(), ["two"]), writes);
    expect(error.message).toMatch(message);
    expect(["validation.failed", "state.invalid", "state.concurrent_update"]).toContain(error.code);
    expect(error.fields[0]?.at).toBe(at);
  });

  test("a copy of nothing", async () => {
    const error = await refused(new Thread(line()), [{ as_node: "__copy__" }]);
    expect(error).toMatchObject({ code: "validation.failed", fields: [{ at: "u.as_node" }] });
  });

  test("no node, where several ran side by side or an input came last", async () => {
    const thread = await paused(side(), ["four"]);
    expect((await refused(thread, [{ values: { say: "x" } }])).message).toMatch(/two, three|three, two/);
    await thread.update([{ values: { say: "x" }, as_node: "__input__" }]);
    expect((await refused(thread, [{ values: { say: "x" } }])).message).toMatch(/an input was given last/);
  });

  test("what an edge of the user's throws", async () => {
    const bad = graph({
      state: { log: list<string>() },
      nodes: { one: says("one"), two: says("two") },
      edges: {
        start: "one",
        one: () => {
          throw new TypeError("kaboom");
        },
      },
    });
    const error = await refused(new Thread(bad), [{ values: {}, as_node: "one" }]);
    expect(error).toMatchObject({ code: "state.invalid", fields: [{ at: "u.as_node", message: "kaboom" }] });
  });
});

describe("a graph that has changed", () => {
  const before = () =>
    graph({
      state: { total: z.string().default("five"), log: list<string>() },
      nodes: { one: says("one"), ask: says("ask") },
      edges: { start: "one", one: "ask" },
    });
  const after = (migrate?: () => never) =>
    graph({
      state: {
        total: reduce(z.number().default(0), (a, b) => a + b),
        name: z.string(),
        log: list<string>(),
      },
      nodes: { one: says("one"), approve: says("approve") },
      edges: { start: "one", one: "approve" },
      ...(migrate && { migrate }),
    });
  const changed = async (migrate?: () => never) => {
    const thread = await paused(before(), ["ask"]);
    thread.registry.replace({ g: after(migrate) });
    expect((await thread.run({})).error).toMatchObject({ error: "GraphChangedError" });
    return thread;
  };
  const boom = () => {
    throw new TypeError("cannot");
  };

  test.each([undefined, boom])("is gone on with once an update mends all of the state", async (migrate) => {
    const thread = await changed(migrate);
    await expect(thread.update([{ values: { total: 6 }, as_node: "one" }])).rejects.toThrow(
      /state.name is required/,
    );
    await thread.update([{ values: { total: 6, name: "x" }, as_node: "one" }]);
    expect(thread.values).toEqual({ total: 6, name: "x", log: ["one"] });
    const { error, values } = await thread.run({});
    expect(error).toBeNull();
    expect(values).toEqual({ total: 6, name: "x", log: ["one", "approve"] });
    expect(thread.stored()).toEqual(values);
  });
});
