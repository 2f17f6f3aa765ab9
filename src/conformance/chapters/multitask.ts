import { defineChapter } from "../conformance-check.ts";
import { HeldRuns, waitUntil } from "../held-runs.ts";
import { expectMatch, expectRefusal } from "../response-pattern.ts";

export const multitaskChecks = defineChapter("multitask strategies", {
  "reject: the second run is refused with 409, however it is started": async (server) => {
    const { client } = server;
    const held = await HeldRuns.on(server);
    const a = await held.start("a");
    await held.reached("a");
    const options = { input: held.input("b"), multitaskStrategy: "reject" as const };
    await expectRefusal("create", held.start("b", "reject"), 409);
    await expectRefusal("wait", client.runs.wait(held.thread, "held", options), 409);
    await expectRefusal("stream", client.runs.stream(held.thread, "held", options).next(), 409);
    await held.open("a");
    expectMatch("what the first one answers", await client.runs.join(held.thread, a.run_id), {
      log: held.log("a"),
    });
    expectMatch("the number of runs", (await client.runs.list(held.thread)).length, 1);
  },
  "a run that names no strategy is shown as reject": async (server) => {
    const held = await HeldRuns.on(server);
    const a = await held.start("a");
    expectMatch("the run", a, { multitask_strategy: "reject" });
    await held.open("a");
    await server.client.runs.join(held.thread, a.run_id);
  },
  "a second run that names no strategy is refused": async (server) => {
    const held = await HeldRuns.on(server);
    const a = await held.start("a");
    await held.reached("a");
    await expectRefusal("the second run", held.start("b"), 409);
    await held.open("a");
    await server.client.runs.join(held.thread, a.run_id);
  },
  "enqueue: runs go one after the other, in the order they came": async (server) => {
    const { client } = server;
    const held = await HeldRuns.on(server);
    const a = await held.start("a");
    await held.reached("a");
    const b = await held.start("b", "enqueue");
    const c = await held.start("c", "enqueue");
    expectMatch("the waiting run", b, { status: "pending", multitask_strategy: "enqueue" });
    await held.open("c");
    await held.open("a");
    await held.reached("b");
    expectMatch("the third run waits", await held.status(c), "pending");
    await held.open("b");
    expectMatch("what the third one answers", await client.runs.join(held.thread, c.run_id), {
      log: held.log("a", "b", "c"),
    });
    expectMatch("the state", (await client.threads.getState(held.thread)).values, {
      log: held.log("a", "b", "c"),
    });
    for (const run of [a, b, c])
      // oxlint-disable-next-line no-await-in-loop -- a report shows the latest request, so requests must not overlap
      expectMatch("the status", await held.status(run), "success");
  },
  "interrupt: the first run stops, what it has done stays, the second one goes on from there": async (
    server,
  ) => {
    const { client } = server;
    const held = await HeldRuns.on(server);
    const a = await held.start("a");
    await held.reached("a");
    const b = await held.start("b", "interrupt");
    expectMatch("the second run", b, { status: "pending", multitask_strategy: "interrupt" });
    await held.open("b");
    await client.runs.join(held.thread, b.run_id);
    await waitUntil(
      server,
      "the first run is interrupted",
      async () => (await held.status(a)) === "interrupted",
    );
    expectMatch("the second run", await held.status(b), "success");
    expectMatch("the state", (await client.threads.getState(held.thread)).values, {
      log: [`${held.topic("a")} began`, ...held.log("b")],
    });
  },
  "rollback: the first run is taken away, as if it had never been": async (server) => {
    const { client } = server;
    const held = await HeldRuns.on(server);
    const a = await held.start("a");
    await held.reached("a");
    const b = await held.start("b", "rollback");
    await held.open("b");
    await client.runs.join(held.thread, b.run_id);
    await expectRefusal("the first run", client.runs.get(held.thread, a.run_id), 404);
    expectMatch("the state", (await client.threads.getState(held.thread)).values, { log: held.log("b") });
  },
});
