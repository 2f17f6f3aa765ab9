import { defineChapter, type TestedServer, UNKNOWN_ID } from "../conformance-check.ts";
import {
  anything,
  aText,
  aTimestamp,
  aUuid,
  expectMatch,
  expectRefusal,
  nullOrAbsent,
} from "../response-pattern.ts";

/** Creates a thread, runs the graph `steps` on it to its end, and returns the thread's id. */
async function stepped({ client }: TestedServer): Promise<string> {
  const { thread_id } = await client.threads.create();
  await client.runs.wait(thread_id, "steps", { input: { topic: "tea" } });
  return thread_id;
}

export const stateChecks = defineChapter("states", {
  "the state of a new thread is empty": async ({ client }) => {
    const { thread_id } = await client.threads.create();
    expectMatch("the state", await client.threads.getState(thread_id), {
      values: anything,
      next: [],
      tasks: [],
      checkpoint: nullOrAbsent,
    });
  },
  "a state has its values, its place, its parent and its metadata": async (server) => {
    const thread = await stepped(server);
    expectMatch("the state", await server.client.threads.getState(thread), {
      values: { topic: "tea", log: ["first about tea", "second after 1"] },
      next: [],
      tasks: [],
      created_at: aTimestamp,
      checkpoint: { thread_id: thread, checkpoint_ns: "", checkpoint_id: aText },
      parent_checkpoint: { thread_id: thread, checkpoint_ns: "", checkpoint_id: aText },
      metadata: {
        source: "loop",
        step: 2,
        run_id: aUuid,
        graph_id: "steps",
        assistant_id: aUuid,
        thread_id: thread,
      },
    });
  },
  "over HTTP, a state has the ids of its checkpoint and of its parent": async (server) => {
    const thread = await stepped(server);
    const { body } = await server.http.send("GET", `/threads/${thread}/state`);
    expectMatch("the state", body, { checkpoint_id: aText, parent_checkpoint_id: aText });
  },
  "the metadata of a state tells what was written": async (server) => {
    const thread = await stepped(server);
    const { metadata } = await server.client.threads.getState(thread);
    expectMatch("the metadata", metadata, { writes: { second: { log: ["second after 1"] } } });
  },
  "the history is newest first, with what each step wrote": async (server) => {
    const thread = await stepped(server);
    const history = await server.client.threads.getHistory(thread);
    expectMatch("the history", history, [
      { next: [], metadata: { source: "loop", step: 2 } },
      {
        next: ["second"],
        metadata: { step: 1 },
        tasks: [{ name: "second", result: { log: ["second after 1"] } }],
      },
      {
        next: ["first"],
        metadata: { step: 0 },
        tasks: [{ name: "first", result: { log: ["first about tea"] } }],
      },
      { next: ["__start__"], metadata: { source: "input", step: -1 } },
    ]);
  },
  "the history comes in pages, and by metadata": async (server) => {
    const { client } = server;
    const thread = await stepped(server);
    const [newest, ...older] = await client.threads.getHistory(thread);
    expectMatch("the first page", await client.threads.getHistory(thread, { limit: 1 }), [
      { checkpoint: { checkpoint_id: newest?.checkpoint.checkpoint_id } },
    ]);
    const before = { configurable: { checkpoint_id: newest?.checkpoint.checkpoint_id } } as never;
    const rest = await client.threads.getHistory(thread, { before });
    const idOf = (state: { checkpoint: { checkpoint_id?: string | null | undefined } }) =>
      state.checkpoint.checkpoint_id;
    expectMatch("the page before", rest.map(idOf), older.map(idOf));
    const inputs = await client.threads.getHistory(thread, { metadata: { source: "input" } });
    expectMatch("those of inputs", inputs, [{ metadata: { source: "input", step: -1 } }]);
  },
  "a state is found by its checkpoint": async (server) => {
    const { client } = server;
    const thread = await stepped(server);
    const [, earlier] = await client.threads.getHistory(thread);
    const id = earlier?.checkpoint.checkpoint_id ?? "";
    const expected = {
      values: { log: ["first about tea"] },
      next: ["second"],
      checkpoint: { checkpoint_id: id },
    };
    expectMatch("the state by its id", await client.threads.getState(thread, id), expected);
    expectMatch(
      "the state by its checkpoint",
      await client.threads.getState(thread, earlier?.checkpoint),
      expected,
    );
  },
  "an update goes through the reducers, and says where it is": async (server) => {
    const { client } = server;
    const thread = await stepped(server);
    const update = { values: { log: ["by hand"] }, asNode: "first" };
    const { checkpoint } = (await client.threads.updateState(thread, update)) as unknown as {
      checkpoint: { checkpoint_id: string };
    };
    expectMatch("the state", await client.threads.getState(thread), {
      values: { log: ["first about tea", "second after 1", "by hand"] },
      next: ["second"],
      metadata: { source: "update" },
      checkpoint: { checkpoint_id: checkpoint.checkpoint_id },
    });
    expectMatch("the thread", await client.threads.get(thread), {
      values: { log: ["first about tea", "second after 1", "by hand"] },
    });
  },
  "a run goes on from what was updated": async (server) => {
    const { client } = server;
    const thread = await stepped(server);
    await client.threads.updateState(thread, { values: { log: ["by hand"] }, asNode: "first" });
    const values = await client.runs.wait(thread, "steps", { input: null });
    expectMatch("the values", values, {
      log: ["first about tea", "second after 1", "by hand", "second after 3"],
    });
  },
  "a run that starts at an earlier checkpoint makes a branch": async (server) => {
    const { client } = server;
    const thread = await stepped(server);
    const past = await client.threads.getHistory(thread);
    const start = past.find(({ next }) => next[0] === "second");
    const values = await client.runs.wait(thread, "steps", {
      input: null,
      checkpointId: start?.checkpoint.checkpoint_id ?? "",
    });
    expectMatch("the values", values, { log: ["first about tea", "second after 1"] });
    const after = await client.threads.getHistory(thread);
    expectMatch("the number of states is larger", after.length > past.length, true);
  },
  "an update of an earlier checkpoint makes a branch": async (server) => {
    const { client } = server;
    const thread = await stepped(server);
    const past = await client.threads.getHistory(thread);
    const start = past.find(({ next }) => next[0] === "second");
    await client.threads.updateState(thread, {
      values: { log: ["else"] },
      checkpointId: start?.checkpoint.checkpoint_id ?? "",
      asNode: "first",
    });
    expectMatch("the state", await client.threads.getState(thread), {
      values: { log: ["first about tea", "else"] },
      next: ["second"],
    });
  },
  "the states of unknown threads and checkpoints": async (server) => {
    const { client } = server;
    const thread = await stepped(server);
    await expectRefusal("the history of an unknown thread", client.threads.getHistory(UNKNOWN_ID), 404);
    await expectRefusal(
      "an update of an unknown thread",
      client.threads.updateState(UNKNOWN_ID, { values: {} }),
      404,
    );
    await expectRefusal("an unknown checkpoint", client.threads.getState(thread, UNKNOWN_ID), 404);
  },
});
