import { defineChapter } from "../conformance-check.ts";
import { waitUntil } from "../held-runs.ts";
import { aUuid, expectMatch, expectRefusal } from "../response-pattern.ts";

const done = { topic: "tea", log: ["first about tea", "second after 1"] };

/** The id of the run that the response header `content-location` names; empty if there is none. */
const runOf = (headers: Headers): string => {
  const at = headers.get("content-location") ?? "";
  return /\/runs\/([^/?]+)/.exec(at)?.[1] ?? "";
};

export const statelessRunChecks = defineChapter("stateless runs", {
  "wait answers the final values": async ({ client }) => {
    expectMatch("the values", await client.runs.wait(null, "steps", { input: { topic: "tea" } }), done);
  },
  "stream gives the events": async ({ client }) => {
    const found: unknown[] = [];
    for await (const { event, data } of client.runs.stream(null, "steps", {
      input: { topic: "tea" },
      streamMode: "updates",
    }))
      found.push([event, data]);
    expectMatch("the events", found, [
      ["metadata", { run_id: aUuid }],
      ["updates", { first: { log: ["first about tea"] } }],
      ["updates", { second: { log: ["second after 1"] } }],
    ]);
  },
  "create answers a pending run": async ({ client }) => {
    expectMatch("the run", await client.runs.create(null, "steps", { input: {} }), {
      run_id: aUuid,
      status: "pending",
    });
  },
  "over HTTP, the answer of wait names the run": async ({ http }) => {
    const { headers } = await http.send("POST", "/runs/wait", { assistant_id: "steps", input: {} });
    expectMatch("the run in content-location", runOf(headers), aUuid);
  },
  "the thread of a run goes with it": async (server) => {
    const { client } = server;
    const { thread_id } = await client.runs.create(null, "steps", { input: {} });
    await waitUntil(server, "the thread is gone", () =>
      client.threads.get(thread_id).then(
        () => false,
        (cause: { readonly status?: number }) => cause.status === 404,
      ),
    );
  },
  "on_completion keep leaves the thread": async (server) => {
    const { client, http } = server;
    // The types of the SDK do not include this value of `on_completion`.
    const request = { assistant_id: "steps", input: { topic: "tea" }, on_completion: "keep" };
    const run = (await http.send("POST", "/runs", request)).body as { thread_id: string; run_id: string };
    await waitUntil(server, "the run has ended", async () => {
      const { status } = await client.runs.get(run.thread_id, run.run_id);
      return status === "success";
    });
    expectMatch("the thread", await client.threads.get(run.thread_id), { status: "idle", values: done });
  },
  "a failing run answers its error": async ({ client }) => {
    const answer = await client.runs.wait(null, "failing", { input: {}, raiseError: false });
    expectMatch("the answer", answer, { __error__: { error: "TypeError", message: "kaboom" } });
  },
  "an unknown graph is 404": async ({ client }) => {
    await expectRefusal("the run", client.runs.wait(null, "no such graph", { input: {} }), 404);
  },
});
