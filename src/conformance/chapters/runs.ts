import { defineChapter, UNKNOWN_ID } from "../conformance-check.ts";
import { HeldRuns, waitUntil } from "../held-runs.ts";
import { aTimestamp, aUuid, expectMatch, expectRefusal, nullOrAbsent } from "../response-pattern.ts";

const done = { topic: "tea", log: ["first about tea", "second after 1"] };

export const runChecks = defineChapter("runs", {
  "wait answers the final values, which are the thread's state": async ({ client }) => {
    const { thread_id } = await client.threads.create();
    const values = await client.runs.wait(thread_id, "steps", { input: { topic: "tea" } });
    expectMatch("the values", values, done);
    expectMatch("the state", await client.threads.getState(thread_id), { values: done, next: [], tasks: [] });
  },
  "a run is started by the graph's name or by an assistant's id": async ({ client }) => {
    const { assistant_id } = await client.assistants.get("steps");
    const values = await client.runs.wait(null, assistant_id, { input: { topic: "tea" } });
    expectMatch("the values", values, done);
  },
  "create answers a pending run; join waits for its end": async (server) => {
    const { client } = server;
    const held = await HeldRuns.on(server);
    const run = await held.start("a");
    expectMatch("the new run", run, {
      run_id: aUuid,
      thread_id: held.thread,
      assistant_id: aUuid,
      status: "pending",
      multitask_strategy: "reject",
      created_at: aTimestamp,
      updated_at: aTimestamp,
    });
    await held.reached("a");
    expectMatch("the status of the run", await held.status(run), "running");
    expectMatch("the thread", await client.threads.get(held.thread), { status: "busy" });
    const joined = client.runs.join(held.thread, run.run_id);
    await held.open("a");
    expectMatch("what join answers", await joined, { log: held.log("a") });
    expectMatch("the status of the run", await held.status(run), "success");
    expectMatch("the thread", await client.threads.get(held.thread), { status: "idle" });
  },
  "over HTTP, a run has the parameters that it was created with": async ({ client, http }) => {
    const { thread_id } = await client.threads.create();
    const { status, body } = await http.send("POST", `/threads/${thread_id}/runs`, {
      assistant_id: "steps",
      input: { topic: "tea" },
    });
    expectMatch("the status", status, 200);
    expectMatch("the run", body, {
      kwargs: {
        input: { topic: "tea" },
        config: {
          configurable: { run_id: aUuid, thread_id, graph_id: "steps", assistant_id: aUuid },
        },
        stream_mode: ["values"],
        temporary: false,
        webhook: nullOrAbsent,
        interrupt_before: nullOrAbsent,
        interrupt_after: nullOrAbsent,
      },
    });
    await client.runs.join(thread_id, (body as { run_id: string }).run_id);
  },
  "list gives the runs of a thread, newest first, by status and in pages": async ({ client }) => {
    const { thread_id } = await client.threads.create();
    expectMatch("the runs of a new thread", await client.runs.list(thread_id), []);
    const ids: string[] = [];
    for (const graph of ["steps", "failing", "steps"]) {
      // oxlint-disable-next-line no-await-in-loop -- the check depends on the order of creation
      const { run_id } = await client.runs.create(thread_id, graph, { input: {} });
      // oxlint-disable-next-line no-await-in-loop -- a second run on a busy thread would be refused
      await client.runs.join(thread_id, run_id).catch(() => undefined);
      ids.unshift(run_id);
    }
    const listed = await client.runs.list(thread_id);
    expectMatch(
      "the runs",
      listed.map(({ run_id, status }) => ({ run_id, status })),
      [
        { run_id: ids[0], status: "success" },
        { run_id: ids[1], status: "error" },
        { run_id: ids[2], status: "success" },
      ],
    );
    expectMatch("a page", await client.runs.list(thread_id, { limit: 1, offset: 1 }), [{ run_id: ids[1] }]);
    expectMatch("those that failed", await client.runs.list(thread_id, { status: "error" }), [
      { run_id: ids[1] },
    ]);
  },
  "a run that fails has the status error, and so has its thread": async ({ client }) => {
    const { thread_id } = await client.threads.create();
    const answer = await client.runs.wait(thread_id, "failing", { input: {}, raiseError: false });
    expectMatch("what wait answers", answer, { __error__: { error: "TypeError", message: "kaboom" } });
    expectMatch("the run", await client.runs.list(thread_id), [{ status: "error" }]);
    expectMatch("the thread", await client.threads.get(thread_id), { status: "error" });
    expectMatch("the state", await client.threads.getState(thread_id), {
      values: { log: ["good"] },
      next: ["bad"],
    });
  },
  "a run on a thread that failed goes on where it failed": async ({ client }) => {
    const { thread_id } = await client.threads.create();
    await client.runs.wait(thread_id, "failing", { input: {}, raiseError: false });
    await client.threads.updateState(thread_id, { values: { topic: "mended" }, asNode: "good" });
    const values = await client.runs.wait(thread_id, "failing", { input: null });
    expectMatch("the values", values, { topic: "mended", log: ["good", "mended"] });
  },
  "cancel stops a run, and keeps what it has done": async (server) => {
    const { client } = server;
    const held = await HeldRuns.on(server);
    const run = await held.start("a");
    await held.reached("a");
    await client.runs.cancel(held.thread, run.run_id, true);
    await waitUntil(server, "the run is interrupted", async () => (await held.status(run)) === "interrupted");
    expectMatch("the state", await client.threads.getState(held.thread), {
      values: { log: [`${held.topic("a")} began`] },
      next: ["hold"],
    });
  },
  "cancel with rollback takes the run and its states away": async (server) => {
    const { client } = server;
    const held = await HeldRuns.on(server);
    const run = await held.start("a");
    await held.reached("a");
    await client.runs.cancel(held.thread, run.run_id, true, "rollback");
    await waitUntil(
      server,
      "the run is gone",
      async () => (await client.runs.list(held.thread)).length === 0,
    );
    await expectRefusal("the run", client.runs.get(held.thread, run.run_id), 404);
    expectMatch("the history", await client.threads.getHistory(held.thread), []);
  },
  "joinStream follows a run that goes on": async (server) => {
    const { client } = server;
    const held = await HeldRuns.on(server);
    const run = await held.start("a");
    await held.reached("a");
    const reading = (async () => {
      const found: unknown[] = [];
      for await (const { event, data } of client.runs.joinStream(held.thread, run.run_id, {
        streamMode: "values",
      }))
        if (event === "values") found.push(data);
      return found;
    })();
    await held.open("a");
    const found = await reading;
    expectMatch("the last event", found.at(-1), { log: held.log("a") });
  },
  "joinStream of a resumable run gives its events again": async ({ client }) => {
    const { thread_id } = await client.threads.create();
    const read: unknown[] = [];
    let id = "";
    for await (const { event } of client.runs.stream(thread_id, "steps", {
      input: { topic: "tea" },
      streamMode: "updates",
      streamResumable: true,
      onRunCreated: ({ run_id }) => (id = run_id),
    }))
      read.push(event);
    const again: unknown[] = [];
    for await (const { event } of client.runs.joinStream(thread_id, id, { lastEventId: "-1" }))
      again.push(event);
    expectMatch("the events", again, read);
  },
  "createBatch starts a run for each entry": async ({ client }) => {
    const made = await client.runs.createBatch([
      { assistantId: "steps", input: { topic: "a" }, metadata: { n: 1 } },
      { assistantId: "steps", input: { topic: "b" }, metadata: { n: 2 } },
    ]);
    expectMatch("the runs", made, [
      { run_id: aUuid, metadata: { n: 1 } },
      { run_id: aUuid, metadata: { n: 2 } },
    ]);
  },
  "metadata and configuration of a run reach its graph": async ({ client }) => {
    const values = await client.runs.wait(null, "configured", {
      input: {},
      metadata: { colour: "red" },
      config: { configurable: { tone: "dry" } },
    });
    expectMatch("the values", values, { seen: { tone: "dry", colour: "red" } });
  },
  "a run with if_not_exists makes its thread": async ({ client, http }) => {
    const { thread_id: taken } = await client.threads.create();
    const id = taken.replace(/.$/, (last) => (last === "0" ? "1" : "0"));
    const { status, body } = await http.send("POST", `/threads/${id}/runs/wait`, {
      assistant_id: "steps",
      input: { topic: "tea" },
      if_not_exists: "create",
    });
    expectMatch("the status", status, 200);
    expectMatch("the values", body, done);
    expectMatch("the thread", await client.threads.get(id), { thread_id: id, values: done });
  },
  "recursion_limit ends a run with an error": async ({ client }) => {
    const answer = await client.runs.wait(null, "steps", {
      input: {},
      config: { recursion_limit: 1 },
      raiseError: false,
    });
    expectMatch("what wait answers", answer, { __error__: { error: "GraphRecursionError" } });
  },
  "afterSeconds delays the start": async ({ client }) => {
    const { thread_id } = await client.threads.create();
    const run = await client.runs.create(thread_id, "steps", { input: {}, afterSeconds: 3_600 });
    expectMatch("the run", await client.runs.get(thread_id, run.run_id), { status: "pending" });
    await client.runs.cancel(thread_id, run.run_id);
  },
  "delete takes an ended run away": async ({ client }) => {
    const { thread_id } = await client.threads.create();
    const { run_id } = await client.runs.create(thread_id, "steps", { input: {} });
    await client.runs.join(thread_id, run_id);
    await client.runs.delete(thread_id, run_id);
    await expectRefusal("the run", client.runs.get(thread_id, run_id), 404);
  },
  "unknown runs, assistants and threads are 404": async ({ client }) => {
    const { thread_id } = await client.threads.create();
    await expectRefusal("an unknown run", client.runs.get(thread_id, UNKNOWN_ID), 404);
    await expectRefusal(
      "an unknown graph",
      client.runs.create(thread_id, "no such graph", { input: {} }),
      404,
    );
    await expectRefusal("an unknown thread", client.runs.create(UNKNOWN_ID, "steps", { input: {} }), 404);
    await expectRefusal("an unknown run to join", client.runs.join(thread_id, UNKNOWN_ID), 404);
    await expectRefusal("an unknown run to cancel", client.runs.cancel(thread_id, UNKNOWN_ID), 404);
  },
});
