import { defineChapter, type TestedServer } from "../conformance-check.ts";
import { aText, expectMatch, expectRefusal } from "../response-pattern.ts";

interface Question {
  readonly id: string;
  readonly value: unknown;
}

async function ask(
  { client }: TestedServer,
  graph: string,
  input: Record<string, unknown>,
): Promise<[string, Question[]]> {
  const { thread_id } = await client.threads.create();
  const answer = (await client.runs.wait(thread_id, graph, { input })) as { __interrupt__?: Question[] };
  return [thread_id, answer.__interrupt__ ?? []];
}

/** The ids of the pending interrupts of a thread, by the value of the interrupt. */
async function pendingOf({ client }: TestedServer, thread: string): Promise<Map<unknown, string>> {
  const { tasks } = await client.threads.getState(thread);
  const asked = tasks.flatMap(({ interrupts }) => interrupts) as unknown as Question[];
  return new Map(asked.map(({ id, value }) => [value, id]));
}

export const interruptChecks = defineChapter("interrupts", {
  "a node asks: the run pauses, the thread waits, the state tells what is asked": async (server) => {
    const { client } = server;
    const [thread, asked] = await ask(server, "approval", { topic: "tea" });
    expectMatch("the questions", asked, [{ id: aText, value: { draft: "Draft: tea" } }]);
    expectMatch("the thread", await client.threads.get(thread), { status: "interrupted" });
    expectMatch("the state", await client.threads.getState(thread), {
      next: ["review"],
      values: { log: ["wrote about tea"] },
      tasks: [{ name: "review", interrupts: [{ value: { draft: "Draft: tea" }, id: asked[0]?.id }] }],
    });
  },
  "a question says that it can be answered, where and when it was asked": async (server) => {
    const [, asked] = await ask(server, "approval", { topic: "tea" });
    expectMatch("the questions", asked, [{ resumable: true, when: "during", ns: [aText] }]);
  },
  "an answer goes into the node, and the run to its end": async (server) => {
    const { client } = server;
    const [thread] = await ask(server, "approval", { topic: "tea" });
    const values = await client.runs.wait(thread, "approval", { command: { resume: { ok: true } } });
    expectMatch("the values", values, { log: ["wrote about tea", "approved", "sent"] });
    expectMatch("the thread", await client.threads.get(thread), { status: "idle", interrupts: {} });
    expectMatch("the state", await client.threads.getState(thread), { next: [], tasks: [] });
  },
  "the thread lists the questions by task": async (server) => {
    const [thread] = await ask(server, "approval", { topic: "tea" });
    const { interrupts: asked } = await server.client.threads.get(thread);
    expectMatch("the questions", Object.values(asked), [[{ value: { draft: "Draft: tea" } }]]);
  },
  "questions side by side are answered by their ids": async (server) => {
    const { client } = server;
    const [thread, asked] = await ask(server, "questions", {});
    expectMatch("the questions", asked.map(({ value }) => String(value)).toSorted(), ["left?", "right?"]);
    const ids = await pendingOf(server, thread);
    const resume = { [String(ids.get("left?"))]: "L", [String(ids.get("right?"))]: "R1" };
    const next = await client.runs.wait(thread, "questions", { command: { resume } });
    expectMatch("the next question", next, { __interrupt__: [{ value: "sure?" }] });
    const values = await client.runs.wait(thread, "questions", { command: { resume: "R2" } });
    expectMatch("the values", values, { log: ["left L", "right R1 R2", "joined"] });
  },
  "one of two questions is answered, the other one waits": async (server) => {
    const { client } = server;
    const [thread] = await ask(server, "questions", {});
    const ids = await pendingOf(server, thread);
    await client.runs.wait(thread, "questions", { command: { resume: { [String(ids.get("left?"))]: "L" } } });
    expectMatch("those that wait", [...(await pendingOf(server, thread)).keys()], ["right?"]);
  },
  "the history shows a question that was answered while another one waited": async (server) => {
    const { client } = server;
    const [thread] = await ask(server, "questions", {});
    for (const question of ["left?", "right?", "sure?"]) {
      const ids = await pendingOf(server, thread);
      const resume = { [String(ids.get(question))]: "yes" };
      await client.runs.wait(thread, "questions", { command: { resume } });
    }
    const states = await client.threads.getHistory(thread);
    const asked = states.find(({ next }) => next.includes("left"))?.tasks;
    expectMatch("the tasks", asked, [
      { name: "left", interrupts: [{ value: "left?" }] },
      { name: "right", interrupts: [{ value: "sure?" }] },
    ]);
  },
  "an answer that could be meant for either of two questions is refused": async (server) => {
    const [thread] = await ask(server, "questions", {});
    const resumed = server.client.runs.wait(thread, "questions", { command: { resume: "whose?" } });
    await expectRefusal("the answer", resumed, 422);
  },
  "interrupt_before stops before a node, and input null goes on": async ({ client }) => {
    const { thread_id } = await client.threads.create();
    await client.runs.wait(thread_id, "steps", { input: { topic: "tea" }, interruptBefore: ["second"] });
    expectMatch("the state", await client.threads.getState(thread_id), {
      values: { log: ["first about tea"] },
      next: ["second"],
    });
    expectMatch("the thread", await client.threads.get(thread_id), { status: "interrupted" });
    const values = await client.runs.wait(thread_id, "steps", { input: null });
    expectMatch("the values", values, { log: ["first about tea", "second after 1"] });
  },
  "interrupt_after stops after a node, and input null goes on": async ({ client }) => {
    const { thread_id } = await client.threads.create();
    await client.runs.wait(thread_id, "steps", { input: { topic: "tea" }, interruptAfter: ["first"] });
    expectMatch("the state", await client.threads.getState(thread_id), {
      values: { log: ["first about tea"] },
      next: ["second"],
    });
    const values = await client.runs.wait(thread_id, "steps", { input: null });
    expectMatch("the values", values, { log: ["first about tea", "second after 1"] });
  },
  'interrupt_before "*" stops before each node': async ({ client }) => {
    const { thread_id } = await client.threads.create();
    const each = { interruptBefore: "*" as const };
    await client.runs.wait(thread_id, "steps", { input: { topic: "tea" }, ...each });
    expectMatch("the state", await client.threads.getState(thread_id), { next: ["first"] });
    await client.runs.wait(thread_id, "steps", { input: null, ...each });
    expectMatch("the state", await client.threads.getState(thread_id), { next: ["second"] });
  },
  "a question of a subgraph is asked and answered by the root": async (server) => {
    const { client } = server;
    const [thread, asked] = await ask(server, "nested", { topic: "ask" });
    expectMatch("the questions", asked, [{ value: "inner?" }]);
    const values = await client.runs.wait(thread, "nested", { command: { resume: "yes" } });
    expectMatch("the values", values, { log: ["inner step", "inner yes", "after"] });
  },
  "the state of a subgraph that asks is shown with subgraphs": async (server) => {
    const [thread] = await ask(server, "nested", { topic: "ask" });
    const state = await server.client.threads.getState(thread, undefined, { subgraphs: true });
    expectMatch("the state", state, {
      next: ["sub"],
      tasks: [
        {
          name: "sub",
          interrupts: [{ value: "inner?" }],
          state: { next: ["ask"], values: { log: ["inner step"] }, tasks: [{ name: "ask" }] },
        },
      ],
    });
  },
  "a command updates the state and says where to go": async ({ client }) => {
    const { thread_id } = await client.threads.create();
    await client.runs.wait(thread_id, "steps", { input: { topic: "tea" } });
    const values = await client.runs.wait(thread_id, "steps", {
      command: { update: { topic: "milk" }, goto: "first" },
    });
    expectMatch("the values", values, {
      topic: "milk",
      log: ["first about tea", "second after 1", "first about milk", "second after 3"],
    });
  },
});
