import { describe, expect, test } from "vitest";
import { z } from "zod";
import { graph, list, value } from "../../src/index.ts";
import { toIso } from "../../src/model/time.ts";
import { SimulatedClock } from "../simulation/clock.ts";
import { type Client, lines } from "./support/clients.ts";
import { differs } from "./support/suite-variant.ts";
import { serve } from "./support/server.ts";
import { get, HEX32, newThread, post } from "./support/wire.ts";

interface Question {
  readonly id: string;
  readonly value: unknown;
}

/** One question; the answer is stored unchanged. */
const asks = graph({
  state: { answers: list<unknown>(), log: list<string>() },
  nodes: {
    before: async () => ({ log: ["before"] }),
    ask: async (_, ctx) => ({ answers: [await ctx.interrupt({ question: "what?" })] }),
    after: async () => ({ log: ["after"] }),
  },
  edges: { start: "before", before: "ask", ask: "after" },
});

/** Two questions in one node, in sequence. */
const twice = graph({
  state: { answers: list<unknown>() },
  nodes: {
    ask: async (_, ctx) => {
      const first = await ctx.interrupt("first?");
      return { answers: [first, await ctx.interrupt(`second, after ${String(first)}?`)] };
    },
  },
  edges: { start: "ask" },
});

/** Two parallel nodes that ask, and a third one that does not: updates are applied in the order of names. */
const aside = graph({
  state: { answers: list<unknown>() },
  nodes: {
    left: async (_, ctx) => ({ answers: [["left", await ctx.interrupt("left?")]] }),
    right: async (_, ctx) => ({ answers: [["right", await ctx.interrupt("right?")]] }),
    quiet: async () => ({ answers: ["quiet"] }),
  },
  edges: { start: ["left", "right", "quiet"] },
});

const steps = graph({
  state: { log: list<string>(), extra: value<string>() },
  nodes: {
    one: async () => ({ log: ["one"] }),
    two: async ({ extra }) => ({ log: [extra === undefined ? "two" : `two ${extra}`] }),
    three: async () => ({ log: ["three"] }),
  },
  edges: { start: "one", one: "two", two: "three" },
});

const questions = (answer: unknown): readonly Question[] =>
  (answer as { __interrupt__?: readonly Question[] }).__interrupt__ ?? [];

async function serveAll(connect: (url: string) => Client) {
  const { url } = await serve({ graphs: { asks, twice, aside, steps } });
  const client = connect(url);
  const { thread_id } = await client.threads.create();
  const wait = (name: string, options: Parameters<Client["runs"]["wait"]>[2]) =>
    client.runs.wait(thread_id, name, options);
  return { client, url, thread_id, wait };
}

describe.each(lines)("interrupts over %s", (_, connect) => {
  const start = () => serveAll(connect);

  test("a question pauses the run: it is success, the thread interrupted, the question in both", async () => {
    const { client, thread_id, wait } = await start();
    const paused = await wait("asks", { input: {} });
    const question = {
      value: { question: "what?" },
      id: expect.stringMatching(HEX32) as unknown,
      resumable: true,
      ns: [expect.stringMatching(/^ask:[0-9a-f-]{36}$/) as unknown],
      when: "during",
    };
    expect(paused).toEqual({ answers: [], log: ["before"], __interrupt__: [question] });
    expect(await client.runs.list(thread_id)).toMatchObject([{ status: "success" }]);

    const state = await client.threads.getState(thread_id);
    expect(state.next).toEqual(["ask"]);
    expect(state.tasks).toMatchObject([{ name: "ask", error: null, interrupts: [question] }]);
    expect(state).toMatchObject({ interrupts: questions(paused) });
    expect(await client.threads.get(thread_id)).toMatchObject({
      status: "interrupted",
      values: { answers: [], log: ["before"] },
      interrupts: { [state.tasks[0]?.id ?? ""]: questions(paused) },
    });
  });

  test("the answer is what the question returns in the node, and the graph goes on to its end", async () => {
    const { client, thread_id, wait } = await start();
    await wait("asks", { input: {} });
    const answer = { deep: ["x", null, { y: 1 }], text: "é\n" };
    expect(await wait("asks", { command: { resume: answer } })).toEqual({
      answers: [answer],
      log: ["before", "after"],
    });
    expect(await client.threads.get(thread_id)).toMatchObject({ status: "idle", interrupts: {} });
    expect(await client.threads.getState(thread_id)).toMatchObject({ next: [], tasks: [], interrupts: [] });
  });

  test.each([[false], [0], [""], [[]], [{}]])("an answer may be falsy or empty: %j", async (answer) => {
    const { wait } = await start();
    await wait("asks", { input: {} });
    expect(await wait("asks", { command: { resume: answer } })).toMatchObject({ answers: [answer] });
  });

  test("an answer may be null", async () => {
    const { wait } = await start();
    await wait("asks", { input: {} });
    expect(await wait("asks", { command: { resume: null } })).toMatchObject({
      answers: [null],
      log: ["before", "after"],
    });
  });

  test("the one question may be answered by its id", async () => {
    const { wait } = await start();
    const [question] = questions(await wait("asks", { input: {} }));
    const resume = { [question?.id ?? ""]: "yes" };
    expect(await wait("asks", { command: { resume } })).toMatchObject({ answers: ["yes"] });
  });

  test("an object whose keys are no ids is the answer itself", async () => {
    const { wait } = await start();
    const [question] = questions(await wait("asks", { input: {} }));
    const resume = { [question?.id ?? ""]: "yes", other: 1 };
    expect(await wait("asks", { command: { resume } })).toMatchObject({ answers: [resume] });
  });

  test.skipIf(differs("question ids"))(
    "two questions of one node come one after the other, each with an id of its own",
    async () => {
      const { wait } = await start();
      const first = questions(await wait("twice", { input: {} }));
      expect(first).toMatchObject([{ value: "first?" }]);
      const second = questions(await wait("twice", { command: { resume: 1 } }));
      expect(second).toMatchObject([{ value: "second, after 1?" }]);
      expect(second[0]?.id).not.toBe(first[0]?.id);
      expect(await wait("twice", { command: { resume: 2 } })).toEqual({ answers: [1, 2] });
    },
  );

  test("questions side by side are answered together, by id", async () => {
    const { wait } = await start();
    const asked = questions(await wait("aside", { input: {} }));
    expect(asked.map(({ value }) => value)).toEqual(["left?", "right?"]);
    const resume = Object.fromEntries(asked.map(({ id, value }) => [id, `${String(value)} yes`]));
    expect(await wait("aside", { command: { resume } })).toEqual({
      answers: [["left", "left? yes"], "quiet", ["right", "right? yes"]],
    });
  });

  test("or one at a time: the other one goes on waiting under the same id", async () => {
    const { client, thread_id, wait } = await start();
    const [left, right] = questions(await wait("aside", { input: {} }));
    const half = await wait("aside", { command: { resume: { [right?.id ?? ""]: 2 } } });
    expect(questions(half)).toEqual([left]);
    expect(await client.threads.get(thread_id)).toMatchObject({ status: "interrupted" });
    expect((await client.threads.getState(thread_id)).next).toEqual(["left"]);
    // A single question needs no id.
    expect(await wait("aside", { command: { resume: 1 } })).toEqual({
      answers: [["left", 1], "quiet", ["right", 2]],
    });
  });

  test("a plain answer to several questions is refused with 422 naming them, and costs nothing", async () => {
    const { client, thread_id, wait } = await start();
    const asked = questions(await wait("aside", { input: {} }));
    for (const resume of [1, null, "yes", { left: 1 }]) {
      const refused = wait("aside", { command: { resume } });
      await expect(refused).rejects.toMatchObject({ status: 422 });
      for (const { id } of asked) {
        await expect(refused).rejects.toThrow(id);
      }
    }
    expect(await client.runs.list(thread_id)).toHaveLength(1);
    expect(await client.threads.get(thread_id)).toMatchObject({ status: "interrupted" });
    const resume = Object.fromEntries(asked.map(({ id }) => [id, "yes"]));
    expect(await wait("aside", { command: { resume } })).not.toHaveProperty("__interrupt__");
  });

  test("an answer to a question that nobody asked, or that is answered, is refused with 422", async () => {
    const { wait } = await start();
    const refused = { status: 422 };
    const first = wait("asks", { command: { resume: 1 } });
    await expect(first).rejects.toMatchObject(refused);
    const [question] = questions(await wait("asks", { input: {} }));
    const unknown = { [question?.id ?? ""]: 1, ["0".repeat(32)]: 2 };
    await expect(wait("asks", { command: { resume: unknown } })).rejects.toMatchObject(refused);
    const resume = { [question?.id ?? ""]: 1 };
    await wait("asks", { command: { resume } });
    await expect(wait("asks", { command: { resume } })).rejects.toMatchObject(refused);
  });

  test("the stream of a paused run ends with the question, as an update and with the values", async () => {
    const { client, thread_id } = await start();
    const got: unknown[] = [];
    const stream = client.runs.stream(thread_id, "asks", {
      input: { log: [] },
      streamMode: ["values", "updates"] as ("values" | "updates")[],
    });
    for await (const { event, data } of stream) got.push([event, data]);
    const { interrupts } = (await client.threads.getState(thread_id)) as unknown as { interrupts: unknown };
    expect(interrupts).toHaveLength(1);
    expect(got.slice(1)).toEqual([
      ["values", { answers: [], log: [] }],
      ["updates", { before: { log: ["before"] } }],
      ["values", { answers: [], log: ["before"] }],
      ["updates", { __interrupt__: interrupts }],
      ["values", { answers: [], log: ["before"], __interrupt__: interrupts }],
    ]);

    const resumed: unknown[] = [];
    const command = { resume: "yes" };
    for await (const { event, data } of client.runs.stream(thread_id, "asks", {
      command,
      streamMode: "updates",
    })) {
      resumed.push([event, data]);
    }
    expect(resumed.slice(1)).toEqual([
      ["updates", { ask: { answers: ["yes"] } }],
      ["updates", { after: { log: ["after"] } }],
    ]);
  });

  test.skipIf(differs("answer schemas"))(
    "an answer that the node's schema refuses fails the run, and the question stays",
    async () => {
      const { client, thread_id, wait } = await start();
      await wait("approval", { input: { topic: "tea" } });
      const refused = await wait("approval", { command: { resume: "sure" }, raiseError: false });
      expect(refused).toMatchObject({ __error__: { error: "InvalidResumeError" } });
      // The thread still shows the waiting question.
      expect(await client.threads.get(thread_id)).toMatchObject({ status: "interrupted" });
      const { tasks } = await client.threads.getState(thread_id);
      expect(tasks).toMatchObject([{ name: "review", interrupts: [{ when: "during" }] }]);
      expect(await wait("approval", { command: { resume: { ok: true } } })).toMatchObject({ sent: true });
    },
  );
});

describe.each(lines)("breakpoints over %s", (_, connect) => {
  const start = () => serveAll(connect);

  test("interrupt_before: the run pauses before the node; input null goes on to the end", async () => {
    const { client, thread_id, wait } = await start();
    const paused = await wait("steps", { input: {}, interruptBefore: ["two"] });
    expect(paused).toEqual({ log: ["one"], __interrupt__: [] });
    expect(await client.runs.list(thread_id)).toMatchObject([{ status: "success" }]);
    expect(await client.threads.get(thread_id)).toMatchObject({ status: "interrupted", interrupts: {} });
    const state = await client.threads.getState(thread_id);
    expect(state).toMatchObject({ next: ["two"], tasks: [{ name: "two", interrupts: [] }] });
    expect(await wait("steps", { input: null })).toEqual({ log: ["one", "two", "three"] });
    expect(await client.threads.get(thread_id)).toMatchObject({ status: "idle" });
  });

  test("interrupt_after: the run pauses after the node", async () => {
    const { client, thread_id, wait } = await start();
    const paused = await wait("steps", { input: {}, interruptAfter: ["two"] });
    expect(paused).toEqual({ log: ["one", "two"], __interrupt__: [] });
    expect((await client.threads.getState(thread_id)).next).toEqual(["three"]);
    expect(await wait("steps", { input: null })).toEqual({ log: ["one", "two", "three"] });
  });

  test("they are set for each call, and may differ", async () => {
    const { client, thread_id, wait } = await start();
    const next = async () => (await client.threads.getState(thread_id)).next;
    await wait("steps", { input: {}, interruptBefore: ["one"] });
    expect(await next()).toEqual(["one"]);
    await wait("steps", { input: null, interruptAfter: ["one"] });
    expect(await next()).toEqual(["two"]);
    await wait("steps", { input: null, interruptBefore: ["three"] });
    expect(await next()).toEqual(["three"]);
    expect(await wait("steps", { input: null })).toEqual({ log: ["one", "two", "three"] });
  });

  test("the star stands for every node: one step for each call", async () => {
    const { client, thread_id, wait } = await start();
    const logs: unknown[] = [];
    let input: Record<string, unknown> | null = {};
    do {
      const { log } = (await wait("steps", { input, interruptAfter: "*" })) as { log: string[] };
      logs.push(log);
      input = null;
    } while ((await client.threads.getState(thread_id)).next.length > 0);
    expect(logs).toEqual([["one"], ["one", "two"], ["one", "two", "three"]]);
  });

  test("the same breakpoint does not hold again what it held before", async () => {
    const { wait } = await start();
    const interruptBefore = ["two"];
    await wait("steps", { input: {}, interruptBefore });
    expect(await wait("steps", { input: null, interruptBefore })).toEqual({ log: ["one", "two", "three"] });
  });

  test("the stream ends with an empty list of interrupts", async () => {
    const { client, thread_id } = await start();
    const got: unknown[] = [];
    const stream = client.runs.stream(thread_id, "steps", {
      input: {},
      interruptBefore: ["two"],
      streamMode: ["updates", "values"] as ("values" | "updates")[],
    });
    for await (const { event, data } of stream) got.push([event, data]);
    expect(got.slice(-2)).toEqual([
      ["updates", { __interrupt__: [] }],
      ["values", { log: ["one"], __interrupt__: [] }],
    ]);
  });

  test("a breakpoint waits for no answer: a resume is refused with 422", async () => {
    const { url, thread_id, wait } = await start();
    await wait("steps", { input: {}, interruptBefore: ["two"] });
    const asked = { command: { resume: 1 }, strict_resume: differs("answers where nothing waits") };
    const refused = await post(`${url}/threads/${thread_id}/runs/wait`, { assistant_id: "steps", ...asked });
    expect(refused.status).toBe(422);
    expect(await refused.json()).toMatchObject({ code: "resume.invalid" });
    expect(await wait("steps", { input: null })).toEqual({ log: ["one", "two", "three"] });
    // After the last node, no node could ask: the answer is refused.
    await expect(wait("steps", { command: { resume: 1 } })).rejects.toMatchObject({ status: 422 });
  });

  test("a command may bring an update and lead elsewhere", async () => {
    const { wait } = await start();
    await wait("steps", { input: {}, interruptBefore: ["two"] });
    const updated = await wait("steps", { command: { update: { extra: "more" }, goto: "two" } });
    expect(updated).toMatchObject({ extra: "more" });
    expect((updated as { log: string[] }).log).toContain("two more");
  });
});

test("the refusal of a plain answer is told as a detail, with its code", async () => {
  const { url } = await serve({ graphs: { aside } });
  const runs = `${url}/threads/${await newThread(url)}/runs`;
  await (await post(`${runs}/wait`, { assistant_id: "aside", input: {} })).text();
  for (const way of ["", "/wait", "/stream"]) {
    const refused = await post(`${runs}${way}`, { assistant_id: "aside", command: { resume: 1 } });
    expect(refused.status).toBe(422);
    expect(await refused.json()).toEqual({
      detail: expect.stringMatching(
        /^2 interrupts wait for an answer \([0-9a-f]{32}, [0-9a-f]{32}\)/,
      ) as unknown,
      code: "resume.ambiguous",
    });
  }
});

test("the state of a thread changes when it asks, however long the node took before, and not by an answer that is refused", async () => {
  const clock = new SimulatedClock();
  const slow = graph({
    state: { answer: value<unknown>(null) },
    nodes: {
      before: async () => ({}),
      ask: async (_, ctx) => {
        clock.advance(60_000);
        return { answer: await ctx.interrupt("what?", { schema: z.object({ ok: z.boolean() }) }) };
      },
    },
    edges: { start: "before", before: "ask" },
  });
  const { url } = await serve({ clock, graphs: { slow } });
  const thread = await newThread(url);
  await (await post(`${url}/threads/${thread}/runs/wait`, { assistant_id: "slow", input: {} })).text();
  const asked = clock.now();
  expect(await (await get(`${url}/threads/${thread}`)).json()).toMatchObject({
    status: "interrupted",
    state_updated_at: toIso(asked),
  });
  const command = { resume: { ok: "maybe" } };
  await (await post(`${url}/threads/${thread}/runs/wait`, { assistant_id: "slow", command })).text();
  expect(clock.now()).toBeGreaterThan(asked);
  expect(await (await get(`${url}/threads/${thread}`)).json()).toMatchObject({
    status: "interrupted",
    state_updated_at: toIso(asked),
  });
});
