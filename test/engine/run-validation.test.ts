import { describe, expect, test } from "vitest";
import { z } from "zod";
import { graph, list, messages, send, to, untracked, value } from "../../src/index.ts";
import type { RunKwargs } from "../../src/model/run.ts";
import { Thread } from "./driver.ts";

const made = graph({
  state: {
    topic: z.string().min(2),
    count: z.number().default(0),
    log: list<string>(),
    messages: messages(),
    live: untracked<() => void>(),
    secret: value<string>(),
  },
  input: {
    topic: z.string().max(5),
    count: z.number().int(),
    log: z.any(),
    messages: z.any(),
    live: z.any(),
  },
  output: ["topic", "log"],
  context: z.object({ model: z.enum(["a", "b"]).default("a") }),
  nodes: {
    one: async (s) => ({ log: [s.topic], secret: "s" }),
    two: { input: z.object({ n: z.number() }), run: async ({ n }) => ({ count: n }) },
  },
  edges: { start: "one" },
});

/** Why a run on a thread at rest, which has no state yet, is refused. */
function refused(kwargs: Partial<RunKwargs>, blank = true) {
  const thread = new Thread(made);
  return thread.engine.refuses(thread.record(kwargs), {}, blank);
}

describe("a run is refused before it is admitted", () => {
  test.each<[string, Partial<RunKwargs>, string, string]>([
    [
      "a breakpoint before no node",
      { interrupt_before: ["one", "nope"] },
      "interrupt_before",
      'names "nope", which is no node',
    ],
    ["a breakpoint after no node", { interrupt_after: ["*"] }, "interrupt_after", 'names "*"'],
    ["a goto to no node", { command: { goto: "nope" } }, "command.goto", 'command.goto names "nope"'],
    ["one of several gotos", { command: { goto: ["one", { node: "x", input: 1 }] } }, "command.goto", '"x"'],
    [
      "what a goto brings",
      { command: { goto: { node: "two", input: { n: "1" } } } },
      'send("two").n',
      "expected number",
    ],
    [
      "an update of no key",
      { command: { update: { nope: 1 } } },
      "command.update.nope",
      "the state has no such key",
    ],
    [
      "an update of the wrong kind",
      { command: { update: { log: "x" } } },
      "command.update.log",
      "command.update.log must be an array",
    ],
    [
      "an update beside an answer",
      { command: { resume: 1, update: { nope: 1 } } },
      "command.update.nope",
      "no such key",
    ],
    ["a context", { context: { model: "c" }, input: { topic: "tea" } }, "context.model", "Invalid option"],
    ["an input that its key refuses", { input: { topic: "t" } }, "input.topic", "Too small"],
    ["an input that the graph's input refuses", { input: { topic: "coffee" } }, "input.topic", "Too big"],
    [
      "a key that is no input",
      { input: { topic: "tea", secret: "x" } },
      "input.secret",
      "is no input of this graph; it takes topic, count",
    ],
    [
      "a required key that is not there",
      { input: { count: 1 } },
      "input.topic",
      "is required: the state has no value for it yet",
    ],
    ["no input", { input: null }, "input.topic", "is required: the state has no value for it yet"],
    ["an empty input", { input: {} }, "input.topic", "is required: the state has no value for it yet"],
    ["an input that is none", { input: "tea" }, "input", "must be an object of state keys"],
    ["an input without a key of the state", { input: { more: 1 } }, "input", "it has more"],
    [
      "a message of no kind",
      { input: { topic: "tea", messages: [{ role: "robot", content: "x" }] } },
      "input.messages[0]",
      "robot",
    ],
  ])("%s", (_, kwargs, at, message) => {
    const refusal = refused(kwargs);
    expect(refusal).toMatchObject({ code: "validation.failed" });
    expect(refusal?.fields?.[0]?.at).toBe(at);
    expect(refusal?.message).toContain(message);
  });

  test.each<[string, Partial<RunKwargs>]>([
    ["a good input", { input: { topic: "tea", more: 1 }, interrupt_before: ["one"], interrupt_after: "*" }],
    ["a good command", { command: { goto: ["two", "__end__"].slice(1), update: [["topic", "tea"]] } }],
    ["an input beside a command: it is not looked at", { input: "x", command: { update: { count: 1 } } }],
  ])("not so %s", (_, kwargs) => expect(refused(kwargs)).toBeNull());

  test("what the state may have already is left to the run", async () => {
    expect(refused({ input: { count: 1 } }, false)).toBeNull();
    expect(refused({ input: null }, false)).toBeNull();
    const thread = new Thread(made);
    expect((await thread.run({ input: { count: 1 } })).error).toEqual({
      error: "InvalidUpdateError",
      message: "input.topic is required: the state has no value for it yet",
    });
    expect(thread.head).toBeNull();
    await thread.run({ input: { topic: "tea" } });
    expect((await thread.run({ input: { count: 1 } })).values).toMatchObject({ topic: "tea", count: 1 });
  });

  test("a first run without an input, where the state needs none, is left to the run", () => {
    const thread = new Thread(
      graph({ state: { n: value(0) }, nodes: { a: async () => ({}) }, edges: { start: "a" } }),
    );
    expect(thread.engine.refuses(thread.record({ input: null }), {}, true)).toBeNull();
  });

  test("while the thread works, all but what depends on it", () => {
    const thread = new Thread(made);
    const refuses = (kwargs: Partial<RunKwargs>) => thread.engine.refuses(thread.record(kwargs), null);
    expect(refuses({ command: { resume: 1 } })).toBeNull();
    expect(refuses({ input: { topic: 7 } })?.fields?.[0]?.at).toBe("input.topic");
  });

  test("a schema that throws is the graph's fault: the run tells it", () => {
    const bad = z.string().refine(() => {
      throw new Error("boom");
    });
    const thread = new Thread(
      graph({ state: { a: bad.optional() }, nodes: { n: async () => {} }, edges: { start: "n" } }),
    );
    expect(thread.engine.refuses(thread.record({ input: { a: "x" } }), {}, true)).toBeNull();
  });
});

test("the events of a run show the graph's output, its checkpoints keep all but what is untracked", async () => {
  const thread = new Thread(made);
  const { facts } = await thread.run({ input: { topic: "tea" }, interrupt_after: ["one"] });
  const shown = facts.flatMap((fact) =>
    fact.t === "checkpoint" || fact.t === "interrupt" ? [fact.output] : [],
  );
  expect(shown).toEqual([0, 1, 2].map(() => ["topic", "log"]));
  expect(thread.engine.output("g")).toEqual(["topic", "log"]);
  expect(thread.engine.output("unknown")).toBeNull();
  expect(thread.stored()).toEqual({ topic: "tea", count: 0, log: ["tea"], messages: [], secret: "s" });
});

test("what is untracked is in no checkpoint: not in the input's, not in what a send brings", async () => {
  const seen: unknown[] = [];
  const thread = new Thread(
    graph({
      state: { n: value(0), live: untracked<string>() },
      nodes: {
        a: async (s) => {
          seen.push(s.live);
          return [send("b", s), to("c", { live: "other wire" })];
        },
        b: async (s) => void seen.push(Object.keys(s)),
        c: async (s) => void seen.push(s.live),
      },
      edges: { start: "a" },
    }),
  );
  await thread.run({ input: { n: 1, live: "wire" } });
  expect(seen).toEqual(["wire", "other wire", ["n"]]);
  expect(JSON.stringify([thread.checkpoints, [...thread.writes]])).not.toContain("wire");
});
