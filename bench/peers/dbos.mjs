/**
 * DBOS behind node:http: `POST /one/ID` and `POST /three/ID` run a workflow of one or of three steps, with ID as the
 * workflow's id.
 */
import { createServer } from "node:http";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { DBOS } from "@dbos-inc/dbos-sdk";

const [, , port, url] = process.argv;

const steps = (name, count) =>
  DBOS.registerWorkflow(
    async () => {
      let value = 0;
      for (let i = 0; i < count; i++) value += await DBOS.runStep(async () => 1, { name: `step ${i}` });
      return { value };
    },
    { name },
  );
const workflows = new Map([
  ["one", steps("one", 1)],
  ["three", steps("three", 3)],
]);

/** Waits until the database accepts connections: the bench starts the database and this process at the same time. */
async function listening({ hostname, port }) {
  for (;;) {
    const socket = connect(Number(port), hostname);
    const up = await new Promise((resolve) => {
      socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    });
    socket.destroy();
    if (up) return;
    await sleep(20);
  }
}

await listening(new URL(url));
DBOS.setConfig({
  name: "bench",
  systemDatabaseUrl: url,
  // With the default of 10 connections, PostgreSQL often waits for this process.
  systemDatabasePoolSize: 32,
  logLevel: "error",
  runAdminServer: false,
});
await DBOS.launch();

async function serve(request, response) {
  const answer = (status, body) => {
    const text = JSON.stringify(body);
    response.writeHead(status, {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(text),
    });
    response.end(text);
  };
  try {
    request.resume();
    const [, name, id] = request.url.split("/");
    const workflow = workflows.get(name);
    if (workflow === undefined) return answer(200, { ok: true });
    const handle = await DBOS.startWorkflow(workflow, { workflowID: id })();
    answer(200, await handle.getResult());
  } catch (error) {
    answer(500, { error: String(error) });
  }
}

createServer((request, response) => void serve(request, response)).listen(Number(port), "127.0.0.1");
