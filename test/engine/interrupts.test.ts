import { describe, expect, test } from "vitest";
import { z } from "zod";
import { graph, list, to, value, type Ctx } from "../../src/index.ts";
import { Thread } from "./driver.ts";

const log = { log: list<string>() };
const ids = (thread: Thread) =>
  Object.values(thread.interrupts)
    .flat()
    .map(({ id }) => id);

/** A node that asks each question in turn, and writes down the answers. */
const asks =
  (...questions: string[]) =>
  async (_: unknown, ctx: Ctx) => {
    const answers: string[] = [];
    for (const question of questions)
      answers.push(`${question}=${JSON.stringify(await ctx.interrupt(question))}`);
    return { log: answers };
  };

const one = graph({ state: log, nodes: { ask: asks("ok?") }, edges: { start: "ask" } });
const two = graph({ state: log, nodes: { ask: asks("first", "second") }, edges: { start: "ask" } });
const pair = graph({
  state: log,
  nodes: { a: asks("qa"), b: asks("qb"), c: async () => ({ log: ["c"] }) },
  edges: { start: ["a", "b", "c"] },
});

describe("a question", () => {
  test("pauses the run, in the order of the official stream, and stores no checkpoint", async () => {
    const thread = new Thread(one);
    const { plan, trace, facts, checkpoints } = await thread.run({ input: {} });
    const [task] = checkpoints.at(-1)?.next ?? [];
    const question = {
      value: "ok?",
      id: expect.stringMatching(/^[0-9a-f]{32}$/),
      resumable: true,
      ns: [`ask:${task?.id}`],
      when: "during",
    };
    expect(plan).toEqual({ kind: "paused", interrupts: { [task?.id ?? ""]: [question] } });
    expect(trace).toEqual(["checkpoint:-1(input)", "checkpoint:0", "task:ask", "interrupt:1", "result:ask"]);
    expect(facts.at(-1)).toMatchObject({ t: "result", interrupts: [question] });
    expect(facts.at(-1)).not.toHaveProperty("update");
    expect(thread.interrupts).toEqual(plan.kind === "paused" && plan.interrupts);
  });

  test.each([true, false, 0, "", null, "text", { a: [1] }, {}, []])(
    "the answer %j reaches the node",
    async (resume) => {
      const thread = new Thread(one);
      await thread.run({ input: {} });
      const before = thread.checkpoints.length;
      const { plan, values, trace, checkpoints } = await thread.run({ command: { resume } });
      expect(plan.kind).toBe("done");
      expect(values).toEqual({ log: [`ok?=${JSON.stringify(resume)}`] });
      expect(trace).toEqual(["checkpoint:0", "task:ask", "result:ask", "checkpoint:1"]);
      expect(checkpoints).toHaveLength(1);
      expect(thread.checkpoints).toHaveLength(before + 1);
      expect(thread.interrupts).toEqual({});
    },
  );

  test("can be asked twice: the node runs from its start, and the n-th question gets the n-th answer", async () => {
    const thread = new Thread(two);
    await thread.run({ input: {} });
    const [first] = ids(thread);
    const { plan } = await thread.run({ command: { resume: 1 } });
    expect(plan.kind).toBe("paused");
    const [second] = ids(thread);
    expect(second).not.toBe(first);
    expect(Object.values(thread.interrupts).flat()).toMatchObject([{ value: "second" }]);
    const { values } = await thread.run({ command: { resume: 2 } });
    expect(values).toEqual({ log: ["first=1", "second=2"] });
  });

  test("keeps its id when the run without an answer asks it again", async () => {
    const thread = new Thread(one);
    await thread.run({ input: {} });
    const before = ids(thread);
    const { plan, trace } = await thread.run({ input: null });
    expect(plan.kind).toBe("paused");
    expect(trace).toEqual(["checkpoint:0", "task:ask", "interrupt:1", "result:ask"]);
    expect(ids(thread)).toEqual(before);
  });

  test("that the node swallows, or wraps in another error, is asked all the same", async () => {
    const swallow = async (_: unknown, ctx: Ctx) => {
      await ctx.interrupt("q").catch(() => undefined);
      return { log: ["went on"] };
    };
    const wrap = async (_: unknown, ctx: Ctx) => {
      try {
        return { log: [String(await ctx.interrupt("q"))] };
      } catch (cause) {
        throw new Error("wrapped", { cause });
      }
    };
    for (const run of [swallow, wrap]) {
      const thread = new Thread(graph({ state: log, nodes: { a: run }, edges: { start: "a" } }));
      expect((await thread.run({ input: {} })).plan.kind).toBe("paused");
    }
  });

  test("that nobody awaits still pauses, and ends no process", async () => {
    const forgets = async (_: unknown, ctx: Ctx) => {
      void ctx.interrupt("q");
      return { log: ["went on"] };
    };
    const thread = new Thread(graph({ state: log, nodes: { a: forgets }, edges: { start: "a" } }));
    expect((await thread.run({ input: {} })).plan.kind).toBe("paused");
  });

  test("whose value cannot be stored fails the node, naming the path", async () => {
    const thread = new Thread(
      graph({
        state: log,
        nodes: { a: async (_, ctx) => ({ log: [String(await ctx.interrupt({ f: () => 1 }))] }) },
        edges: { start: "a" },
      }),
    );
    expect((await thread.run({ input: {} })).error?.message).toContain("interrupt.f cannot be stored");
  });
});

describe("several questions", () => {
  test("of two tasks: a plain answer is refused, naming both; the finished sibling is kept and not repeated", async () => {
    const thread = new Thread(pair);
    const { plan, trace } = await thread.run({ input: {} });
    expect(plan.kind === "paused" && Object.keys(plan.interrupts)).toHaveLength(2);
    expect(trace.slice(-4)).toEqual(["result:c", "interrupt:2", "result:a", "result:b"]);
    const [a, b] = ids(thread) as [string, string];
    const refusal = thread.engine.refuses(thread.record({ command: { resume: "x" } }), thread.interrupts);
    expect(refusal?.code).toBe("resume.ambiguous");
    expect(refusal?.message).toContain(a);
    expect(refusal?.message).toContain(b);
    const { error } = await thread.run({ command: { resume: "x" } });
    expect(error?.message).toBe(refusal?.message);
    const { values, trace: resumed } = await thread.run({ command: { resume: { [a]: 1, [b]: 2 } } });
    expect(values).toEqual({ log: ["qa=1", "qb=2", "c"] });
    expect(resumed).toEqual(["checkpoint:0", "task:a", "task:b", "result:a", "result:b", "checkpoint:1"]);
  });

  test("answered one by one: the other stays pending", async () => {
    const thread = new Thread(pair);
    await thread.run({ input: {} });
    const [a, b] = ids(thread) as [string, string];
    const { plan, trace, values } = await thread.run({ command: { resume: { [b]: "B" } } });
    expect(plan).toMatchObject({ kind: "paused" });
    expect(ids(thread)).toEqual([a]);
    expect(values).toEqual({ log: [] });
    expect(trace).toEqual(["checkpoint:0", "task:b", "result:b", "interrupt:1"]);
    expect((await thread.run({ command: { resume: "A" } })).values).toEqual({
      log: ['qa="A"', 'qb="B"', "c"],
    });
  });

  test("asked at once in one node are all recorded, and may be answered in any order", async () => {
    const thread = new Thread(
      graph({
        state: log,
        nodes: {
          a: async (_, ctx) => ({
            log: await Promise.all([ctx.interrupt<string>("x"), ctx.interrupt<string>("y")]),
          }),
        },
        edges: { start: "a" },
      }),
    );
    await thread.run({ input: {} });
    const [x, y] = ids(thread) as [string, string];
    expect((await thread.run({ command: { resume: { [y]: "Y" } } })).plan.kind).toBe("paused");
    expect(ids(thread)).toEqual([x]);
    expect((await thread.run({ command: { resume: "X" } })).values).toEqual({ log: ["X", "Y"] });
  });

  test.each([
    ["nothing waits", one, { resume: 1 }, false],
    ["an id that does not wait", one, { resume: { ["0".repeat(32)]: 1 } }, true],
  ])("%s: the resume is refused", async (_, definition, command, asked) => {
    const thread = new Thread(definition);
    if (asked) await thread.run({ input: {} });
    expect(thread.engine.refuses(thread.record({ command }), thread.interrupts)?.code).toBe("resume.invalid");
    const { error } = await thread.run({ command });
    expect(error?.message).toMatch(/wait/);
    if (asked) expect(ids(thread)).toHaveLength(1);
  });

  test("a map of 32 hex digits is by id, any other object is one plain answer", async () => {
    const thread = new Thread(one);
    await thread.run({ input: {} });
    const [id = ""] = ids(thread);
    const refuses = (resume: unknown) =>
      thread.engine.refuses(thread.record({ command: { resume } }), thread.interrupts);
    expect(refuses({ [id]: 1 })).toBeNull();
    expect(refuses({ [id]: 1, other: 2 })).toBeNull();
    expect((await thread.run({ command: { resume: { [id]: "by id" } } })).values).toEqual({
      log: ['ok?="by id"'],
    });
  });
});

describe("an answer that the schema refuses", () => {
  const strict = graph({
    state: { ok: value<boolean>() },
    nodes: {
      a: async (_, ctx) => {
        const schema = z.object({ ok: z.boolean() });
        const first = await ctx.interrupt("first", { schema });
        const second = await ctx.interrupt("second", { schema });
        return { ok: first.ok && second.ok };
      },
    },
    edges: { start: "a" },
  });

  test("ends the run in an error that says what is wrong; the question stays, the answer is dropped", async () => {
    const thread = new Thread(strict);
    await thread.run({ input: {} });
    const before = ids(thread);
    const { error } = await thread.run({ command: { resume: { ok: "yes" } } });
    expect(error).toMatchObject({
      error: "InvalidResumeError",
      message: expect.stringContaining("resume.ok"),
    });
    expect(ids(thread)).toEqual(before);
    expect((await thread.run({ command: { resume: { ok: true } } })).plan.kind).toBe("paused");
    expect((await thread.run({ command: { resume: 1 } })).error?.error).toBe("InvalidResumeError");
    expect((await thread.run({ command: { resume: { ok: true } } })).values).toEqual({ ok: true });
  });

  test.each([
    ["a schema that throws", { schema: z.number().refine(async () => true) }, 1],
    ["an answer that cannot be stored", {}, JSON.parse('{"__proto__": {"x": 1}}') as unknown],
  ])("%s costs no question", async (_, options, resume) => {
    const thread = new Thread(
      graph({
        state: log,
        nodes: { a: async (_state, ctx) => ({ log: [String(await ctx.interrupt("q", options))] }) },
        edges: { start: "a" },
      }),
    );
    await thread.run({ input: {} });
    expect((await thread.run({ command: { resume } })).error?.error).toBe("InvalidResumeError");
    expect(ids(thread)).toHaveLength(1);
  });

  test("is dropped even if the node swallows it", async () => {
    const thread = new Thread(
      graph({
        state: log,
        nodes: {
          a: async (_, ctx) => {
            await ctx.interrupt("q", { schema: z.number() }).catch(() => 0);
            return { log: ["went on"] };
          },
        },
        edges: { start: "a" },
      }),
    );
    await thread.run({ input: {} });
    expect((await thread.run({ command: { resume: "x" } })).error?.error).toBe("InvalidResumeError");
    expect((await thread.run({ command: { resume: 1 } })).values).toEqual({ log: ["went on"] });
  });
});

describe("commands", () => {
  const paths = graph({
    state: { ...log, n: value(0) },
    nodes: {
      a: async () => ({ log: ["a"] }),
      b: async (s) => ({ log: [`b${s.n}`] }),
      ask: async (s, ctx) => ({ log: [`${s.n}:${String(await ctx.interrupt("q"))}`] }),
    },
    edges: { start: "a" },
  });

  test("goto and update: a checkpoint of their own, then the node, with the update applied", async () => {
    const thread = new Thread(paths);
    await thread.run({ input: {} });
    const { values, trace, checkpoints } = await thread.run({ command: { goto: "b", update: { n: 5 } } });
    expect(values).toEqual({ log: ["a", "b5"], n: 5 });
    expect(trace).toEqual(["checkpoint:2", "task:b", "result:b", "checkpoint:3"]);
    expect(checkpoints[0]).toMatchObject({ source: "input", step: 2, next: [{ name: "b" }] });
    expect(thread.stored()).toEqual(values);
  });

  test("a list of targets, one of them with an input; an update of pairs", async () => {
    const thread = new Thread(paths);
    await thread.run({ input: {} });
    const { values } = await thread.run({
      command: { goto: ["b", { node: "b", input: { n: "sent" } }], update: [["n", 1]] },
    });
    expect(values["log"]).toEqual(["a", "b1", "bsent"]);
  });

  test.each([
    [{ goto: "nowhere" }, 'command.goto names "nowhere"'],
    [{ update: { m: 1 } }, "command.update.m: the state has no such key"],
    [{ update: [1] }, "command.update must be an object, or pairs"],
  ])("%j is refused: %s", async (command, message) => {
    const thread = new Thread(paths);
    await thread.run({ input: {} });
    const { error, checkpoints } = await thread.run({ command });
    expect(error?.message).toContain(message);
    expect(checkpoints).toEqual([]);
  });

  test("an answer with an update and a target: all three hold, also when the step waits for more answers", async () => {
    const thread = new Thread(
      graph({
        state: { ...log, n: value(0) },
        nodes: {
          x: async (s, ctx) => ({ log: [`x${s.n}${String(await ctx.interrupt("x"))}`] }),
          y: async (s, ctx) => ({ log: [`y${s.n}${String(await ctx.interrupt("y"))}`] }),
          z: async (s) => ({ log: [`z${s.n}`] }),
        },
        edges: { start: ["x", "y"] },
      }),
    );
    await thread.run({ input: {} });
    const [x, y] = ids(thread) as [string, string];
    const partly = await thread.run({ command: { resume: { [x]: "!" }, update: { n: 7 }, goto: "z" } });
    expect(partly.plan.kind).toBe("paused");
    expect(ids(thread)).toEqual([y]);
    const { values } = await thread.run({ command: { resume: "?" } });
    expect(values).toEqual({ log: ["x7!", "y7?", "z7"], n: 7 });
    expect(thread.stored()).toEqual(values);
  });

  test("a goto on a thread that waits runs beside what waits", async () => {
    const thread = new Thread(paths);
    await thread.run({ command: { goto: "ask" } });
    expect(ids(thread)).toHaveLength(1);
    const { plan } = await thread.run({ command: { goto: "b" } });
    expect(plan.kind).toBe("paused");
    expect(ids(thread)).toHaveLength(1);
    expect((await thread.run({ command: { resume: "r" } })).values["log"]).toEqual(["0:r", "b0"]);
  });

  test("an empty command is none", async () => {
    const thread = new Thread(paths);
    expect((await thread.run({ input: {}, command: {} })).values).toMatchObject({ log: ["a"] });
  });
});

test("a new input supersedes the question", async () => {
  const thread = new Thread(
    graph({
      state: { n: value(0), ...log },
      nodes: {
        ask: async (s, ctx) => (s.n > 0 ? to("done") : { log: [String(await ctx.interrupt("q"))] }),
        done: async () => ({ log: ["done"] }),
      },
      edges: { start: "ask" },
    }),
  );
  await thread.run({ input: {} });
  const { plan, values, checkpoints } = await thread.run({ input: { n: 1 } });
  expect(plan.kind).toBe("done");
  expect(values).toEqual({ n: 1, log: ["done"] });
  expect(checkpoints.map((c) => c.step)).toEqual([1, 2, 3, 4]);
  expect(thread.interrupts).toEqual({});
});
