import { defineChapter, UNKNOWN_ID } from "../conformance-check.ts";
import { anything, aUuid, expectMatch, expectRefusal } from "../response-pattern.ts";

/** A yearly schedule, so that no cron fires during the checks, unless they run at the start of the first of January. */
const YEARLY = "0 0 1 1 *";

export const cronChecks = defineChapter("crons", {
  "a schedule of a thread is made, found, counted and deleted": async ({ client }) => {
    const { thread_id } = await client.threads.create();
    const made = await client.crons.createForThread(thread_id, "steps", {
      schedule: YEARLY,
      input: { topic: "tea" },
    });
    const [found] = await client.crons.search({ threadId: thread_id });
    expectMatch("the schedule", found, {
      cron_id: aUuid,
      thread_id,
      schedule: YEARLY,
      next_run_date: anything,
      payload: { input: { topic: "tea" } },
    });
    expectMatch("what create answers", made, { cron_id: found?.cron_id });
    expectMatch("the count", await client.crons.count({ threadId: thread_id }), 1);
    await client.crons.delete(found?.cron_id ?? "");
    expectMatch("those left", await client.crons.search({ threadId: thread_id }), []);
  },
  "a schedule without a thread is made": async ({ client }) => {
    // The id of a new thread serves as a metadata value that no other cron on the server has.
    const { thread_id: name } = await client.threads.create();
    const metadata = { conformance: name };
    await client.crons.create("steps", { schedule: YEARLY, metadata });
    const found = await client.crons.search({
      assistantId: (await client.assistants.get("steps")).assistant_id,
      limit: 100,
      sortBy: "created_at",
      sortOrder: "desc",
    });
    const mine = found.filter((cron) => cron.metadata?.["conformance"] === name);
    expectMatch("those of this name", mine, [{ schedule: YEARLY }]);
    await client.crons.delete(mine[0]?.cron_id ?? "");
  },
  "a schedule that is none is refused": async ({ client }) => {
    await expectRefusal("the schedule", client.crons.create("steps", { schedule: "now and then" }), 422);
  },
  "an unknown schedule is 404": async ({ client }) => {
    await expectRefusal("its deletion", client.crons.delete(UNKNOWN_ID), 404);
  },
});
