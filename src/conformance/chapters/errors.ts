import { defineChapter, type TestedServer, UNKNOWN_ID } from "../conformance-check.ts";
import { HeldRuns } from "../held-runs.ts";
import { aText, expectMatch, oneOf } from "../response-pattern.ts";

async function expectStatus(
  { http }: TestedServer,
  status: number,
  method: string,
  path: string,
  body?: unknown,
): Promise<unknown> {
  const answer = await http.send(method, path, body);
  if (answer.status !== status)
    expectMatch(`the answer of ${method} ${path}`, { status: answer.status, body: answer.body }, { status });
  return answer.body;
}

export const errorChecks = defineChapter("errors", {
  "unknown things are 404": async (server) => {
    await expectStatus(server, 404, "GET", `/threads/${UNKNOWN_ID}`);
    await expectStatus(server, 404, "GET", `/threads/${UNKNOWN_ID}/state`);
    await expectStatus(server, 404, "GET", `/assistants/${UNKNOWN_ID}`);
    await expectStatus(server, 404, "POST", "/runs/wait", { assistant_id: UNKNOWN_ID, input: {} });
    await expectStatus(server, 404, "DELETE", `/threads/${UNKNOWN_ID}`);
  },
  "an unknown path is 404": async (server) => {
    await expectStatus(server, 404, "GET", "/no/such/path");
  },
  "a body says why": async (server) => {
    const body = await expectStatus(server, 404, "GET", `/threads/${UNKNOWN_ID}`);
    expectMatch("the body", body, { detail: aText });
  },
  "a body that is no JSON is refused": async (server) => {
    const { status } = await server.http.send("POST", "/threads/search", "{not json");
    expectMatch("the status", status, oneOf(400, 422));
  },
  "a field with a wrong value is 422": async (server) => {
    const { thread_id } = await server.client.threads.create();
    const runs = `/threads/${thread_id}/runs`;
    await expectStatus(server, 422, "POST", runs, { assistant_id: "steps", multitask_strategy: "whatever" });
    await expectStatus(server, 422, "POST", runs, { assistant_id: "steps", stream_mode: ["whatever"] });
    await expectStatus(server, 422, "POST", "/threads/search", { limit: "many" });
  },
  "a missing field is 422": async (server) => {
    await expectStatus(server, 422, "POST", "/runs/wait", { input: {} });
    await expectStatus(server, 422, "POST", "/assistants", {});
  },
  "an id that is no UUID is 422": async (server) => {
    await expectStatus(server, 422, "GET", "/threads/not-an-id");
  },
  "a field that is not known is ignored": async ({ http }) => {
    const { status } = await http.send("POST", "/threads", { unknown_field: 1 });
    expectMatch("the status", status, 200);
  },
  "a run on a busy thread is 409": async (server) => {
    const held = await HeldRuns.on(server);
    const run = await held.start("a");
    await held.reached("a");
    await expectStatus(server, 409, "POST", `/threads/${held.thread}/runs`, {
      assistant_id: "held",
      input: {},
    });
    await held.open("a");
    await server.client.runs.join(held.thread, run.run_id);
  },
});
