import type { Run } from "@langchain/langgraph-sdk";
import { expect } from "vitest";
import { graph, list, messages, value } from "../../../src/index.ts";
import { gated } from "../support/latches.ts";
import { aUuid, NOBODY } from "../support/wire.ts";
import { type Asked, proves } from "./table.ts";

const echo = graph({
  state: { said: value(""), log: list<string>(), messages: messages() },
  nodes: {
    say: async ({ said }, ctx) => {
      const message = ctx.message();
      for (const token of ["you ", "said ", said]) message.write(token);
      return { log: [said], messages: [message.end()] };
    },
  },
  edges: { start: "say" },
});
const fails = graph({
  state: { log: list<string>() },
  nodes: {
    bad: async () => {
      throw new TypeError("kaboom");
    },
  },
  edges: { start: "bad" },
});

/** The gates of the current test. Each client has a server, and so a graph, of its own. */
let gate = gated();
const options = () => {
  gate = gated();
  return { graphs: { echo, fails, held: gate.held } };
};

interface Part {
  readonly id?: string;
  readonly event: string;
  readonly data: unknown;
}

async function parts(stream: AsyncIterable<Part>): Promise<Part[]> {
  const found: Part[] = [];
  for await (const part of stream) found.push(part);
  return found;
}
const events = (found: readonly Part[]) => found.map(({ event }) => event);

/** A run that waits within its second node, on a new thread. */
async function holding({ client }: Asked, name: string) {
  const { thread_id: thread } = await client.threads.create();
  const { run_id: run } = await client.runs.create(thread, "held", { input: { name } });
  await gate.waits(name);
  return { thread, run };
}

const ended = (name: string) => ({ name, log: [`${name} began`, `${name} ended`] });

proves(
  "runs",
  {
    stream: [
      "tells what a run does as it does it: every mode, on a thread and without one",
      async ({ client }) => {
        const { thread_id } = await client.threads.create();
        const created: unknown[] = [];
        const found = await parts(
          client.runs.stream(thread_id, "echo", {
            input: { said: "hi" },
            streamMode: ["values", "updates", "messages-tuple"],
            onRunCreated: (run) => created.push(run),
          }),
        );
        expect(events(found)).toEqual([
          "metadata",
          "values",
          ...Array(3).fill("messages"),
          "updates",
          "values",
        ]);
        const tokens = found.filter(({ event }) => event === "messages");
        const texts = tokens.map(({ data }) => (data as [{ content: string }])[0].content);
        expect(texts.join("")).toBe("you said hi");
        expect(found.at(-1)?.data).toMatchObject({ said: "hi", log: ["hi"] });
        expect(found[0]?.data).toMatchObject({ run_id: aUuid, attempt: 1 });
        expect(created).toEqual([{ run_id: (found[0] as { data: Run }).data.run_id, thread_id }]);
        const alone = await parts(client.runs.stream(null, "echo", { input: { said: "b" } }));
        expect(alone.at(-1)).toMatchObject({ event: "values", data: { log: ["b"] } });
        const failed = await parts(client.runs.stream(thread_id, "fails", { input: {} }));
        expect(failed.at(-1)).toMatchObject({
          event: "error",
          data: { error: "TypeError", message: "kaboom" },
        });
      },
    ],
    create: [
      "begins a run and answers at once; one to begin later waits",
      async ({ client }) => {
        const { thread_id } = await client.threads.create();
        const made = await client.runs.create(thread_id, "echo", {
          input: { said: "a" },
          metadata: { a: 1 },
        });
        expect(made).toMatchObject({
          run_id: aUuid,
          thread_id,
          status: "pending",
          multitask_strategy: "reject",
          metadata: { a: 1 },
        });
        expect(await client.runs.join(thread_id, made.run_id)).toMatchObject({ log: ["a"] });
        expect(await client.runs.create(null, "echo", { input: { said: "b" } })).toMatchObject({
          status: "pending",
        });
        const later = await client.runs.create(thread_id, "echo", {
          input: { said: "c" },
          afterSeconds: 3_600,
        });
        expect(await client.runs.get(thread_id, later.run_id)).toMatchObject({ status: "pending" });
        expect((await client.threads.getState(thread_id)).values).toMatchObject({ log: ["a"] });
      },
    ],
    createBatch: [
      "begins several runs without a thread, and answers in their order",
      async ({ client, url }) => {
        const made = await client.runs.createBatch([
          { assistantId: "held", input: { name: "a" }, metadata: { n: 1 } },
          { assistantId: "held", input: { name: "b" }, metadata: { n: 2 } },
        ]);
        expect(made).toMatchObject([
          { run_id: aUuid, metadata: { n: 1 } },
          { run_id: aUuid, metadata: { n: 2 } },
        ]);
        // The headers arrive at once: from then on clients wait for the results, which would otherwise be deleted.
        const joined = await Promise.all(
          made.map(({ run_id, thread_id }) => fetch(`${url}/threads/${thread_id}/runs/${run_id}/join`)),
        );
        for (const name of ["a", "b"]) gate.open(name);
        const results = await Promise.all(joined.map((answer) => answer.json()));
        expect(results).toEqual([ended("a"), ended("b")]);
        const wrong = client.runs.createBatch([{ assistantId: "echo" }, { assistantId: "nope" }]);
        await expect(wrong).rejects.toMatchObject({ status: 404 });
      },
    ],
    wait: [
      "answers the final values, the interrupt that it paused at, or throws its error",
      async ({ client }) => {
        const { thread_id } = await client.threads.create();
        expect(await client.runs.wait(thread_id, "echo", { input: { said: "a" } })).toMatchObject({
          log: ["a"],
          messages: [{ type: "ai", content: "you said a" }],
        });
        expect(await client.runs.wait(null, "echo", { input: { said: "b" } })).toMatchObject({ log: ["b"] });
        await expect(client.runs.wait(thread_id, "fails", { input: {} })).rejects.toThrow(
          "TypeError: kaboom",
        );
        const quiet = { input: {}, raiseError: false } as const;
        expect(await client.runs.wait(thread_id, "fails", quiet)).toMatchObject({
          __error__: { error: "TypeError", message: "kaboom" },
        });
        const paused = { interruptBefore: ["say"], input: { said: "c" } };
        expect(await client.runs.wait(thread_id, "echo", paused)).toHaveProperty("__interrupt__");
        expect(await client.runs.wait(thread_id, "echo", { input: null })).toMatchObject({ log: ["a", "c"] });
      },
    ],
    list: [
      "lists the runs of a thread, newest first, by status, in pages, with the fields asked for",
      async ({ client }) => {
        const { thread_id } = await client.threads.create();
        const made: string[] = [];
        for (const assistant of ["echo", "fails", "echo"]) {
          const { run_id } = await client.runs.create(thread_id, assistant, { input: {} });
          await client.runs.join(thread_id, run_id);
          made.unshift(run_id);
        }
        const found = async (query?: Parameters<typeof client.runs.list>[1]) =>
          (await client.runs.list(thread_id, query)).map(({ run_id }) => run_id);
        expect(await found()).toEqual(made);
        expect(await found({ limit: 1, offset: 1 })).toEqual([made[1]]);
        expect(await found({ status: "error" })).toEqual([made[1]]);
        expect(await client.runs.list(thread_id, { limit: 1, select: ["run_id", "status"] })).toEqual([
          { run_id: made[0], status: "success" },
        ]);
      },
    ],
    get: [
      "gives the run with how it stands and what it was asked with",
      async (asked) => {
        const { client } = asked;
        const { thread, run } = await holding(asked, "a");
        expect(await client.runs.get(thread, run)).toMatchObject({
          run_id: run,
          thread_id: thread,
          status: "running",
          kwargs: { input: { name: "a" }, stream_mode: ["values"], webhook: null },
        });
        gate.open("a");
        await client.runs.join(thread, run);
        expect(await client.runs.get(thread, run)).toMatchObject({ status: "success" });
        await expect(client.runs.get(thread, NOBODY)).rejects.toMatchObject({ status: 404 });
      },
    ],
    cancel: [
      "ends a run and keeps what it did, or takes it back; of an ended one it does nothing",
      async (asked) => {
        const { client } = asked;
        const { thread, run } = await holding(asked, "a");
        await client.runs.cancel(thread, run, true);
        expect(await client.runs.get(thread, run)).toMatchObject({ status: "interrupted" });
        expect((await client.threads.getState(thread)).values).toMatchObject({ log: ["a began"] });
        await client.runs.cancel(thread, run);
        const back = await client.runs.create(thread, "held", { input: { name: "b" } });
        await gate.waits("b");
        await client.runs.cancel(thread, back.run_id, true, "rollback");
        await expect(client.runs.get(thread, back.run_id)).rejects.toMatchObject({ status: 404 });
        expect((await client.threads.getState(thread)).values).toMatchObject({ log: ["a began"] });
      },
    ],
    cancelMany: [
      "ends runs by their ids, or all that stand so",
      async (asked) => {
        const { client } = asked;
        const a = await holding(asked, "a");
        const b = await holding(asked, "b");
        await client.runs.cancelMany({ threadId: a.thread, runIds: [a.run] });
        await client.runs.join(a.thread, a.run);
        expect(await client.runs.get(a.thread, a.run)).toMatchObject({ status: "interrupted" });
        expect(await client.runs.get(b.thread, b.run)).toMatchObject({ status: "running" });
        await client.runs.cancelMany({ status: "all" });
        await client.runs.join(b.thread, b.run);
        expect(await client.runs.get(b.thread, b.run)).toMatchObject({ status: "interrupted" });
        const lost = client.runs.cancelMany({ threadId: a.thread, runIds: [NOBODY] });
        await expect(lost).rejects.toMatchObject({ status: 404 });
      },
    ],
    join: [
      "waits for the end of a run and answers its values",
      async (asked) => {
        const { client } = asked;
        const { thread, run } = await holding(asked, "a");
        const joined = client.runs.join(thread, run);
        gate.open("a");
        expect(await joined).toEqual(ended("a"));
        expect(await client.runs.join(thread, run)).toEqual(ended("a"));
      },
    ],
    joinStream: [
      "gives all of a run under way, or what follows an event; the same again once it has ended",
      async (asked) => {
        const { client } = asked;
        const { thread, run } = await holding(asked, "a");
        const reading = parts(client.runs.joinStream(thread, run, { lastEventId: "-1" }));
        gate.open("a");
        const all = await reading;
        expect(events(all)).toEqual(["metadata", "values", "values", "values"]);
        expect(all.at(-1)?.data).toEqual(ended("a"));
        expect(await parts(client.runs.joinStream(thread, run, { lastEventId: "-1" }))).toEqual(all);
        const lastEventId = String(all[1]?.id);
        expect(await parts(client.runs.joinStream(thread, run, { lastEventId }))).toEqual(all.slice(2));
        const { run_id } = await client.runs.create(null, "held", { input: { name: "b" } });
        const alone = client.runs.joinStream(null, run_id, { lastEventId: "-1" });
        expect(await alone.next()).toMatchObject({ value: { event: "metadata", data: { run_id } } });
        gate.open("b");
        expect((await parts(alone)).at(-1)?.data).toEqual(ended("b"));
      },
    ],
    delete: [
      "takes an ended run away; one under way is in the way of it",
      async (asked) => {
        const { client } = asked;
        const { thread, run } = await holding(asked, "a");
        await expect(client.runs.delete(thread, run)).rejects.toMatchObject({ status: 409 });
        gate.open("a");
        await client.runs.join(thread, run);
        await client.runs.delete(thread, run);
        await expect(client.runs.get(thread, run)).rejects.toMatchObject({ status: 404 });
        expect(await client.runs.list(thread)).toEqual([]);
        await expect(client.runs.delete(thread, run)).rejects.toMatchObject({ status: 404 });
      },
    ],
  },
  options,
);
