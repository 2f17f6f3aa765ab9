import { expect } from "vitest";
import { graph, list, messages, value } from "../../../src/index.ts";
import type { Ctx } from "../../../src/index.ts";
import { streamOf } from "../support/protocol.ts";
import { aTime, aUuid, NOBODY } from "../support/wire.ts";
import { type Asked, proves } from "./table.ts";

const inner = graph({
  state: { log: list<string>() },
  nodes: { ask: async (_: unknown, ctx: Ctx) => ({ log: [String(await ctx.interrupt("sure?"))] }) },
  edges: { start: "ask" },
});
/** Repeats the last message; `topic` is another key. */
const chat = graph({
  state: { messages: messages(), topic: value("none"), log: list<string>() },
  nodes: {
    answer: async ({ messages: said }) => ({
      messages: [{ type: "ai", content: `you said ${String(said.at(-1)?.content)}` }],
    }),
    last: async () => ({ log: ["last"] }),
  },
  edges: { start: "answer", answer: "last" },
});
const outer = graph({
  state: { log: list<string>() },
  nodes: { sub: inner, after: async () => ({ log: ["after"] }) },
  edges: { start: "sub", sub: "after" },
});

type Said = { messages: { content: string }[]; topic: string; log: string[] };
const contents = ({ messages: said }: Said) => said.map(({ content }) => content);

/** A thread with one run of `chat`. */
async function talked({ client }: Asked, topic = "tea", metadata: Record<string, unknown> = {}) {
  const { thread_id: id } = await client.threads.create({ metadata });
  const input = { topic, messages: [{ role: "user", content: topic }] };
  await client.runs.wait(id, "chat", { input });
  return id;
}

/** A thread that waits for an answer within a subgraph. */
async function paused({ client }: Asked) {
  const { thread_id: id } = await client.threads.create();
  await client.runs.wait(id, "outer", { input: { log: ["begun"] } });
  return id;
}

const idsOf = (threads: readonly { thread_id: string }[]) => threads.map(({ thread_id }) => thread_id);

proves(
  "threads",
  {
    get: [
      "gives the thread with its status, its values and what it waits for",
      async (asked) => {
        const { client } = asked;
        const id = await paused(asked);
        const { assistant_id } = await client.assistants.get("outer");
        expect(await client.threads.get(id)).toMatchObject({
          thread_id: id,
          status: "interrupted",
          metadata: { graph_id: "outer", assistant_id },
          values: { log: ["begun"] },
          created_at: aTime,
          updated_at: aTime,
        });
        const { interrupts } = await client.threads.get(id);
        expect(Object.values(interrupts).flat()).toMatchObject([{ value: "sure?" }]);
        await expect(client.threads.get(NOBODY)).rejects.toMatchObject({ status: 404 });
      },
    ],
    create: [
      "makes one with the id, the metadata and the past that it is given",
      async ({ client }) => {
        const metadata = { owner: "me" };
        const made = await client.threads.create({ threadId: NOBODY, metadata, graphId: "chat" });
        expect(made).toMatchObject({
          thread_id: NOBODY,
          metadata: { owner: "me", graph_id: "chat" },
          status: "idle",
          values: null,
        });
        await expect(client.threads.create({ threadId: NOBODY })).rejects.toMatchObject({ status: 409 });
        expect(await client.threads.create({ threadId: NOBODY, ifExists: "do_nothing" })).toEqual(made);
        const updates = ["__input__", "__start__", "answer"].map((asNode) => ({
          values: { topic: asNode },
          asNode,
        }));
        const supersteps = updates.map((update) => ({ updates: [update] }));
        const { thread_id } = await client.threads.create({ graphId: "chat", supersteps });
        expect(await client.threads.getState(thread_id)).toMatchObject({
          values: { topic: "answer" },
          next: ["last"],
        });
      },
    ],
    copy: [
      "makes a thread of its own with the same past",
      async (asked) => {
        const { client } = asked;
        const id = await talked(asked);
        const copy = await client.threads.copy(id);
        expect(copy).toMatchObject({ thread_id: aUuid, status: "idle" });
        expect(copy.thread_id).not.toBe(id);
        const past = await client.threads.getHistory<Said>(id);
        const copied = await client.threads.getHistory<Said>(copy.thread_id);
        expect(copied.map(({ values, next }) => [values, next])).toEqual(
          past.map(({ values, next }) => [values, next]),
        );
        // From here on the two threads differ.
        await client.runs.wait(copy.thread_id, "chat", {
          input: { messages: [{ role: "user", content: "b" }] },
        });
        const { values } = await client.threads.getState<Said>(copy.thread_id);
        expect(contents(values)).toEqual(["tea", "you said tea", "b", "you said b"]);
        expect(await client.threads.getHistory(id)).toEqual(past);
      },
    ],
    update: [
      "merges metadata, and answers nothing where nothing is wanted",
      async ({ client }) => {
        const { thread_id: id } = await client.threads.create({ metadata: { a: 1, b: { c: 1 } } });
        const updated = await client.threads.update(id, { metadata: { b: { d: 2 } } });
        expect(updated).toMatchObject({ thread_id: id, metadata: { a: 1, b: { d: 2 } } });
        expect(await client.threads.get(id)).toEqual(updated);
        await client.threads.update(id, { metadata: { e: 3 }, returnMinimal: true });
        expect((await client.threads.get(id)).metadata).toEqual({ a: 1, b: { d: 2 }, e: 3 });
        const lost = client.threads.update(NOBODY, { metadata: {} });
        await expect(lost).rejects.toMatchObject({ status: 404 });
      },
    ],
    delete: [
      "takes it away, with its runs and its states",
      async (asked) => {
        const { client } = asked;
        const id = await talked(asked);
        const [run] = await client.runs.list(id);
        await client.threads.delete(id);
        await expect(client.threads.get(id)).rejects.toMatchObject({ status: 404 });
        await expect(client.threads.getState(id)).rejects.toMatchObject({ status: 404 });
        await expect(client.runs.get(id, String(run?.run_id))).rejects.toMatchObject({ status: 404 });
        await expect(client.threads.delete(id)).rejects.toMatchObject({ status: 404 });
        // The id is free: the new thread contains nothing of the old one.
        await client.threads.create({ threadId: id });
        expect(await client.threads.getHistory(id)).toEqual([]);
        expect(await client.runs.list(id)).toEqual([]);
      },
    ],
    prune: [
      "takes away threads, or all but their latest state",
      async (asked) => {
        const { client } = asked;
        const kept = await talked(asked);
        const lost = await talked(asked);
        const { values } = await client.threads.getState(kept);
        expect(await client.threads.prune([kept], { strategy: "keep_latest" })).toEqual({ pruned_count: 1 });
        expect(await client.threads.getHistory(kept)).toMatchObject([{ values, next: [] }]);
        expect(await client.threads.prune([lost, NOBODY])).toEqual({ pruned_count: 1 });
        await expect(client.threads.get(lost)).rejects.toMatchObject({ status: 404 });
        await client.runs.wait(kept, "chat", { input: { messages: [{ role: "user", content: "b" }] } });
        expect(contents((await client.threads.getState<Said>(kept)).values)).toHaveLength(4);
      },
    ],
    search: [
      "finds by metadata, values, status and id, in pages, in the order and with the fields asked for",
      async (asked) => {
        const { client } = asked;
        const tea = await talked(asked, "tea", { owner: { name: "ann" } });
        const milk = await talked(asked, "milk", { owner: { name: "bo", age: 3 } });
        const open = await paused(asked);
        const { thread_id: fresh } = await client.threads.create();
        const found = async (query: Parameters<typeof client.threads.search>[0]) =>
          idsOf(await client.threads.search(query));
        const newest = [fresh, open, milk, tea];
        expect(await found({ sortBy: "created_at" })).toEqual(newest);
        expect(await found({ sortBy: "created_at", sortOrder: "asc" })).toEqual([...newest].reverse());
        expect(await found({ sortBy: "created_at", limit: 2, offset: 1 })).toEqual([open, milk]);
        expect(await found({ metadata: { owner: { name: "bo" } } })).toEqual([milk]);
        expect(await found({ metadata: { graph_id: "outer" } })).toEqual([open]);
        expect(await found({ values: { topic: "tea" } })).toEqual([tea]);
        expect(await found({ status: "interrupted" })).toEqual([open]);
        expect((await found({ ids: [tea, fresh, NOBODY] })).sort()).toEqual([fresh, tea].sort());
        const [row] = await client.threads.search({ ids: [tea], select: ["thread_id", "status"] });
        expect(row).toEqual({ thread_id: tea, status: "idle" });
      },
    ],
    count: [
      "counts those that a search finds",
      async (asked) => {
        const { client } = asked;
        await talked(asked, "tea", { owner: "ann" });
        await paused(asked);
        expect(await client.threads.count()).toBe(2);
        expect(await client.threads.count({ metadata: { owner: "ann" } })).toBe(1);
        expect(await client.threads.count({ values: { topic: "tea" } })).toBe(1);
        expect(await client.threads.count({ status: "interrupted" })).toBe(1);
        expect(await client.threads.count({ status: "error" })).toBe(0);
      },
    ],
    getState: [
      "gives the latest state, that of a checkpoint, and those of subgraphs",
      async (asked) => {
        const { client } = asked;
        const id = await talked(asked);
        const latest = await client.threads.getState<Said>(id);
        expect(latest).toMatchObject({ next: [], values: { topic: "tea", log: ["last"] } });
        const { parent_checkpoint: parent } = latest;
        const before = await client.threads.getState<Said>(id, String(parent?.checkpoint_id));
        expect(before).toMatchObject({ next: ["last"], values: { log: [] }, checkpoint: parent });
        expect(await client.threads.getState(id, parent ?? undefined)).toEqual(before);
        const open = await paused(asked);
        const { tasks } = await client.threads.getState(open, undefined, { subgraphs: true });
        expect(tasks).toMatchObject([{ name: "sub", state: { next: ["ask"], tasks: [{ name: "ask" }] } }]);
      },
    ],
    updateState: [
      "changes the state as if a node had, also at an earlier checkpoint",
      async (asked) => {
        const { client } = asked;
        const id = await talked(asked);
        await client.threads.updateState(id, { values: { topic: "milk" }, asNode: "answer" });
        expect(await client.threads.getState(id)).toMatchObject({
          values: { topic: "milk" },
          next: ["last"],
        });
        expect(await client.runs.wait(id, "chat", { input: null })).toMatchObject({ log: ["last", "last"] });
        const start = (await client.threads.getHistory<Said>(id)).find(({ next }) => next[0] === "answer");
        const { configurable } = await client.threads.updateState(id, {
          values: { topic: "juice" },
          checkpointId: String(start?.checkpoint.checkpoint_id),
          asNode: "__start__",
        });
        const { checkpoint } = await client.threads.getState(id);
        expect(configurable).toMatchObject({ checkpoint_id: checkpoint.checkpoint_id });
        expect(await client.runs.wait(id, "chat", { input: null })).toMatchObject({
          topic: "juice",
          log: ["last"],
        });
      },
    ],
    patchState: {
      unserved: "the official server has no such route, and metadata is changed by `update`",
      ask: async ({ client }) => {
        const { thread_id } = await client.threads.create();
        await client.threads.patchState(thread_id, { a: 1 });
      },
    },
    getHistory: [
      "lists every state, newest first, in pages, and by metadata",
      async (asked) => {
        const { client } = asked;
        const id = await talked(asked);
        const all = await client.threads.getHistory<Said>(id);
        expect(all.map(({ metadata, next }) => [metadata?.["source"], next])).toEqual([
          ["loop", []],
          ["loop", ["last"]],
          ["loop", ["answer"]],
          ["input", ["__start__"]],
        ]);
        const { checkpoint } = all[1] as (typeof all)[number];
        const before = { configurable: { checkpoint_id: checkpoint.checkpoint_id ?? null } };
        expect(await client.threads.getHistory(id, { before, limit: 1 })).toEqual([all[2]]);
        expect(await client.threads.getHistory(id, { metadata: { source: "input" } })).toEqual([all[3]]);
        const open = await paused(asked);
        const [task] = (await client.threads.getState(open)).tasks;
        const { checkpoint_ns } = task?.checkpoint ?? {};
        expect(
          await client.threads.getHistory(open, { checkpoint: { checkpoint_ns: String(checkpoint_ns) } }),
        ).toMatchObject([{ next: ["ask"] }, { metadata: { source: "input" } }]);
      },
    ],
    joinStream: [
      "follows run after run, and goes on where it was left",
      async (asked) => {
        const { client } = asked;
        const id = await talked(asked);
        const leave = new AbortController();
        const follow = client.threads.joinStream(id, { lastEventId: "-", signal: leave.signal });
        const next = async () => (await follow.next()).value as { id?: string; event: string; data: unknown };
        const first = [await next(), await next(), await next(), await next(), await next()];
        expect(first.map(({ event }) => event)).toEqual([
          "metadata",
          "values",
          "values",
          "values",
          "run_done",
        ]);
        const { run_id } = await client.runs.create(id, "chat", { input: { topic: "b" } });
        expect(await next()).toMatchObject({ event: "metadata", data: { run_id } });
        leave.abort();
        await follow.next().catch(() => undefined);
        const again = new AbortController();
        const lastEventId = String(first.at(-1)?.id);
        for await (const part of client.threads.joinStream(id, { lastEventId, signal: again.signal })) {
          expect(part).toMatchObject({ event: "metadata", data: { run_id } });
          break;
        }
        again.abort();
      },
    ],
    stream: [
      "starts runs and follows what they do; of all its calls, `protocol.test.ts` tells",
      async ({ client, url }) => {
        const { thread, threadId } = streamOf(url, "sse", "chat", undefined, client);
        const { run_id } = await thread.run.start({ input: { messages: [{ role: "user", content: "hi" }] } });
        expect(contents((await thread.output) as Said)).toEqual(["hi", "you said hi"]);
        expect(await client.runs.get(threadId, String(run_id))).toMatchObject({ status: "success" });
      },
    ],
  },
  () => ({ graphs: { chat, outer } }),
);
