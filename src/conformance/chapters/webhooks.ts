import { defineChapter } from "../conformance-check.ts";
import { anObject, aTimestamp, aUuid, expectMatch } from "../response-pattern.ts";
import { receiveWebhook } from "../webhook-receiver.ts";

const dated = { run_started_at: aTimestamp, run_ended_at: aTimestamp, webhook_sent_at: aTimestamp };

export const webhookChecks = defineChapter("webhooks", {
  "the end of a run is told, with its record and its values": async ({ client }) => {
    const { thread_id } = await client.threads.create();
    const options = { input: { topic: "tea" }, metadata: { mine: 1 } };
    const told = await receiveWebhook((webhook) =>
      client.runs.create(thread_id, "steps", { ...options, webhook }),
    );
    expectMatch("the webhook", told, {
      run_id: aUuid,
      thread_id,
      assistant_id: aUuid,
      status: "success",
      metadata: { mine: 1 },
      kwargs: anObject,
      values: { topic: "tea", log: ["first about tea", "second after 1"] },
      ...dated,
    });
  },
  "a run without a thread is told of, too": async ({ client }) => {
    const told = await receiveWebhook((webhook) =>
      client.runs.wait(null, "steps", { input: { topic: "tea" }, webhook }),
    );
    expectMatch("the webhook", told, { status: "success", values: { topic: "tea" }, ...dated });
  },
  "a run that fails is told of, with its error": async ({ client }) => {
    const told = await receiveWebhook((webhook) =>
      client.runs.create(null, "failing", { input: {}, webhook }),
    );
    expectMatch("the webhook", told, { status: "error", error: "kaboom" });
  },
});
