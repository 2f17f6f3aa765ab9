import { defineChapter, UNKNOWN_ID } from "../conformance-check.ts";
import { aTimestamp, aUuid, expectMatch, expectRefusal, nullOrAbsent } from "../response-pattern.ts";

export const threadChecks = defineChapter("threads", {
  "a new thread is idle and has no values": async ({ client }) => {
    const made = await client.threads.create({ metadata: { for: "conformance" } });
    expectMatch("the new thread", made, {
      thread_id: aUuid,
      status: "idle",
      metadata: { for: "conformance" },
      values: nullOrAbsent,
      created_at: aTimestamp,
      updated_at: aTimestamp,
    });
    expectMatch("the thread", await client.threads.get(made.thread_id), {
      thread_id: made.thread_id,
      status: "idle",
      metadata: { for: "conformance" },
    });
  },
  "over HTTP, all fields of a new thread are there": async ({ http }) => {
    const { status, body } = await http.send("POST", "/threads", {});
    expectMatch("the status", status, 200);
    expectMatch("the new thread", body, {
      thread_id: aUuid,
      created_at: aTimestamp,
      updated_at: aTimestamp,
      metadata: {},
      status: "idle",
      config: {},
      values: null,
    });
  },
  "an id that is taken is refused with 409, or kept if asked": async ({ client }) => {
    const { thread_id: threadId } = await client.threads.create({ metadata: { n: 1 } });
    await expectRefusal("a second one", client.threads.create({ threadId }), 409);
    const kept = await client.threads.create({ threadId, ifExists: "do_nothing" });
    expectMatch("the one that is kept", kept, { thread_id: threadId, metadata: { n: 1 } });
  },
  "an update merges metadata": async ({ client }) => {
    const { thread_id } = await client.threads.create({ metadata: { a: 1, b: 1 } });
    await client.threads.update(thread_id, { metadata: { b: 2, c: 3 } });
    expectMatch("the thread", await client.threads.get(thread_id), { metadata: { a: 1, b: 2, c: 3 } });
  },
  "after a run, it has the run's values, and names its graph": async ({ client }) => {
    const { thread_id } = await client.threads.create();
    await client.runs.wait(thread_id, "steps", { input: { topic: "tea" } });
    expectMatch("the thread", await client.threads.get(thread_id), {
      status: "idle",
      values: { topic: "tea", log: ["first about tea", "second after 1"] },
      metadata: { graph_id: "steps", assistant_id: aUuid },
    });
  },
  "search finds by metadata, status and values, in pages and in order": async ({ client }) => {
    const { thread_id: group } = await client.threads.create();
    const made: string[] = [];
    for (const n of [1, 2, 3])
      // oxlint-disable-next-line no-await-in-loop -- the check sorts by the order of creation
      made.push((await client.threads.create({ metadata: { group, n } })).thread_id);
    const [first = "", second = "", third = ""] = made;
    await client.runs.wait(second, "approval", { input: { topic: group } });
    const find = async (query: Parameters<typeof client.threads.search>[0]) =>
      (await client.threads.search(query)).map(({ thread_id }) => thread_id);
    const sorted = { sortBy: "created_at", sortOrder: "asc" } as const;
    expectMatch("those of the group", await find({ metadata: { group }, ...sorted }), made);
    expectMatch(
      "the newest first",
      await find({ metadata: { group }, sortBy: "created_at", sortOrder: "desc" }),
      [third, second, first],
    );
    expectMatch("a page", await find({ metadata: { group }, limit: 1, offset: 1, ...sorted }), [second]);
    expectMatch("those that wait", await find({ metadata: { group }, status: "interrupted" }), [second]);
    expectMatch("those with values", await find({ values: { topic: group } }), [second]);
    expectMatch("the count", await client.threads.count({ metadata: { group } }), 3);
  },
  "search finds by ids, and gives the fields asked for": async ({ client }) => {
    const { thread_id } = await client.threads.create();
    const { thread_id: other } = await client.threads.create();
    const found = await client.threads.search({ ids: [thread_id], select: ["thread_id", "status"] });
    expectMatch("those found", found, [{ thread_id, status: "idle" }]);
    expectMatch(
      "the other one is not among them",
      found.some((each) => each.thread_id === other),
      false,
    );
    expectMatch("the fields", Object.keys(found[0] ?? {}).toSorted(), ["status", "thread_id"]);
  },
  "a copy has the same past, and goes its own way": async ({ client }) => {
    const { thread_id } = await client.threads.create();
    await client.runs.wait(thread_id, "steps", { input: { topic: "a" } });
    const copy = (await client.threads.copy(thread_id)).thread_id;
    const past = await client.threads.getHistory(copy);
    expectMatch(
      "the copied states",
      past.map(({ next }) => next),
      [[], ["second"], ["first"], ["__start__"]],
    );
    await client.runs.wait(copy, "steps", { input: { topic: "b" } });
    expectMatch("the values of the first one", (await client.threads.getState(thread_id)).values, {
      topic: "a",
      log: ["first about a", "second after 1"],
    });
  },
  "delete takes it away, with its states and runs": async ({ client }) => {
    const { thread_id } = await client.threads.create();
    await client.runs.wait(thread_id, "steps", { input: { topic: "a" } });
    await client.threads.delete(thread_id);
    await expectRefusal("the thread", client.threads.get(thread_id), 404);
    await expectRefusal("its state", client.threads.getState(thread_id), 404);
    await expectRefusal("a second deletion", client.threads.delete(thread_id), 404);
  },
  "a thread is made with the states that it is given": async ({ client }) => {
    const { thread_id } = await client.threads.create({
      graphId: "steps",
      supersteps: [
        { updates: [{ values: { topic: "given" }, asNode: "__input__" }] },
        { updates: [{ values: { topic: "given" }, asNode: "__start__" }] },
        { updates: [{ values: { log: ["as first"] }, asNode: "first" }] },
      ],
    });
    expectMatch("the state", await client.threads.getState(thread_id), {
      values: { topic: "given", log: ["as first"] },
      next: ["second"],
    });
  },
  "unknown threads are 404": async ({ client }) => {
    await expectRefusal("get", client.threads.get(UNKNOWN_ID), 404);
    await expectRefusal("getState", client.threads.getState(UNKNOWN_ID), 404);
    await expectRefusal("update", client.threads.update(UNKNOWN_ID, { metadata: {} }), 404);
    await expectRefusal("copy", client.threads.copy(UNKNOWN_ID), 404, 409);
  },
});
