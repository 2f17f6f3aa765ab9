import { createRequire } from "node:module";
import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { expect, onTestFinished, test } from "vitest";
import agent from "../../src/demo/agent.ts";
import { served } from "../langgraph/support.ts";
import { describeOverEachTransport } from "../transport/each.ts";
import { noFailpoints } from "../../src/ports/failpoints.ts";
import { openStorage } from "../../src/storage/open-storage.ts";
import { silentLogger } from "../../src/platform/log.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { systemScheduler } from "../../src/platform/scheduler.ts";
import { GatedKeyValueStore } from "../storage/gated-key-value-store.ts";
import { parse, Wire } from "../transport/wire.ts";
import { gated } from "./support/latches.ts";
import { serve } from "./support/server.ts";
import { dial } from "./support/sockets.ts";
import { get, newThread, postJson, Reading } from "./support/wire.ts";

const deps = {
  scheduler: systemScheduler,
  clock: systemClock,
  failpoints: noFailpoints,
  logger: silentLogger,
};

test("ready follows the storage; the server is alive all the while", async () => {
  const kv = new GatedKeyValueStore();
  const app = await serve({ storage: await openStorage({ kind: "key-value", store: kv }, deps) });
  const status = async (path: string) => (await fetch(`${app.url}${path}`)).status;
  const all = () => Promise.all(["/ready", "/ok?check_db=1", "/ok", "/live"].map(status));
  expect(await all()).toEqual([200, 200, 200, 200]);
  kv.free = false;
  const asked = fetch(`${app.url}/ready`);
  await kv.pass(new Error("no space left"));
  kv.probeError = new Error("still none");
  const answer = await asked;
  expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "1"]);
  expect(await answer.json()).toMatchObject({ code: "storage.unavailable" });
  expect(await all()).toEqual([503, 503, 200, 200]);
  kv.probeError = undefined;
  kv.free = true;
  await expect.poll(() => status("/ready"), { timeout: 30_000 }).toBe(200);
});

test("a server that stops is no longer ready, and says so to those who are connected", async () => {
  const { held, waits, open } = gated();
  const app = await serve({ graphs: { held } });
  const thread = await newThread(app.url);
  await postJson(`${app.url}/threads/${thread}/runs`, { assistant_id: "held", input: { name: "a" } });
  await waits("a");
  const wire = await Wire.open(app.address.port);
  onTestFinished(() => wire.destroy());
  wire.send("GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const before = (await wire.until((text) => text.includes("}"))).length;
  const closed = app.close(10_000);
  wire.send("GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const text = await wire.until((got) => got.slice(before).includes("}"));
  expect(parse(text.slice(before))).toMatchObject({
    status: 503,
    body: expect.stringContaining("server.draining"),
  });
  open("a");
  await closed;
});

describeOverEachTransport("a server that waits for its running nodes before it stops", (transport) => {
  test("serves reads on new connections, refuses new runs, and closes each connection; then nothing listens", async () => {
    const { held, waits, open } = gated();
    const app = await serve({ transport, graphs: { held } });
    const [thread, idle] = [await newThread(app.url), await newThread(app.url)];
    const path = `${app.url}/threads/${thread}`;
    const body = { assistant_id: "held", input: { name: "a" } };
    const { run_id } = await postJson<{ run_id: string }>(`${path}/runs`, body);
    await waits("a");
    const earlier = [
      new Reading(await get(`${path}/runs/${run_id}/stream`)),
      await dial(`${path}/stream`),
    ] as const;
    const idling = await dial(`${app.url}/threads/${idle}/stream`);
    const feed = await dial(`${app.url}/inspect`);
    const closed = app.close(60_000);
    const ask = async (method: string, at: string, sent?: unknown) => {
      const wire = await Wire.open(app.address.port);
      onTestFinished(() => wire.destroy());
      const text = sent === undefined ? "" : JSON.stringify(sent);
      const head = `${method} ${at} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${text.length}\r\n\r\n`;
      const { status, headers, body: told } = parse(await wire.send(head + text).rest());
      expect(headers.get("connection")).toBe("close");
      return { status, told, retry: headers.get("retry-after") };
    };
    const refused = { status: 503, retry: "1", told: expect.stringContaining("server.draining") };
    expect(await ask("GET", "/ready")).toMatchObject(refused);
    expect(await ask("GET", "/ok?check_db=1")).toMatchObject(refused);
    // An orchestrator that uses it as a liveness probe does not end the server in the middle of a node.
    expect(await ask("GET", "/ok")).toMatchObject({ status: 200 });
    expect(await ask("GET", `/threads/${thread}/runs/${run_id}`)).toMatchObject({
      status: 200,
      told: expect.stringContaining('"running"'),
    });
    expect(await ask("GET", `/threads/${thread}/state`)).toMatchObject({ status: 200 });
    for (const at of [
      `/threads/${thread}/runs`,
      `/threads/${thread}/runs/stream`,
      "/runs/wait",
      "/threads",
    ]) {
      expect(await ask("POST", at, at === "/threads" ? {} : body), at).toMatchObject(refused);
    }
    expect(await ask("POST", "/runs/batch", [body, body])).toMatchObject(refused);
    const command = { type: "run", id: 1, ...body };
    expect(await earlier[1].ask(command)).toMatchObject({ type: "error", status: 503 });
    const late = [
      new Reading(await get(`${path}/runs/${run_id}/stream`)),
      await dial(`${path}/stream`),
    ] as const;
    expect(await late[1].ask(command)).toMatchObject({ type: "error", status: 503 });
    for (const [reading, socket] of [earlier, late]) {
      await reading.until(({ event }) => event === "values");
      await socket.until(({ frames }) => frames.some(({ event }) => event === "values"));
    }
    open("a");
    await closed;
    expect(await idling.closed).toMatchObject({ code: 1012 });
    expect(await feed.closed).toMatchObject({ code: 1012 });
    await Promise.all([earlier[1].closed, late[1].closed]);
    await expect(Wire.open(app.address.port)).rejects.toThrow("ECONNREFUSED");
    expect(app.complaints).toEqual([]);
  });
});

test("/info tells the version of LangGraph.js where one of its graphs is served, also after a reload", async () => {
  const graph = new StateGraph(Annotation.Root({ log: Annotation<string> }))
    .addNode("say", () => ({ log: "said" }))
    .addEdge(START, "say")
    .compile();
  const langGraphs = await served({ graph });
  const app = await serve({ langGraphs });
  const told = async (url: string) =>
    ((await (await get(`${url}/info`)).json()) as { langgraph_js_version?: string }).langgraph_js_version;
  const installed = createRequire(import.meta.url)("@langchain/langgraph/package.json") as {
    version: string;
  };
  expect(await told(app.url)).toBe(installed.version);
  app.replaceGraphs({ agent });
  expect(await told(app.url)).toBeUndefined();
});
