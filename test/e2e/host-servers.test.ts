import { once } from "node:events";
import { request as httpRequest, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type HttpBindings, serve as serveHono } from "@hono/node-server";
import { Client } from "@langchain/langgraph-sdk";
import express, { type RequestHandler } from "express";
import { Hono, type MiddlewareHandler } from "hono";
import { compress } from "hono/compress";
import { describe, expect, onTestFinished, test } from "vitest";
import { type AppOptions, createHandler, graph, list } from "../../src/index.ts";
import { latch, unlessAborted } from "./support/latches.ts";
import { all, streamOf, transports } from "./support/protocol.ts";
import { serve } from "./support/server.ts";
import { dial } from "./support/sockets.ts";
import { get, newThread, post, postJson, Reading } from "./support/wire.ts";

/** A graph that says a word, waits to be let go, and says another one. */
function halting() {
  const [reached, opened] = [latch(), latch()];
  const halt = graph({
    state: { log: list<string>() },
    nodes: {
      say: async () => ({ log: ["said"] }),
      wait: async (_, ctx) => {
        reached.pass();
        await unlessAborted(opened.passed, ctx.signal);
        return { log: ["let go"] };
      },
    },
    edges: { start: "say", say: "wait" },
  });
  return { halt, reached: reached.passed, open: () => opened.pass() };
}

const said = graph({
  state: { log: list<string>() },
  nodes: { say: async () => ({ log: ["said"] }) },
  edges: { start: "say" },
});

/** What stands before the handler: nothing, or what reads bodies. */
type Before = "nothing" | "a parser of JSON" | "one that keeps nothing" | "compression";

type HostServer = (handler: ReturnType<typeof createHandler>, before: Before) => Server;

const expressParsers: Readonly<Record<Before, RequestHandler[]>> = {
  nothing: [],
  "a parser of JSON": [express.json({ limit: "50mb" })],
  "one that keeps nothing": [
    async (request, _, next) => {
      for await (const piece of request) void piece;
      next();
    },
  ],
  compression: [],
};

const onExpress: HostServer = ({ listener }, before) => {
  const pages = express();
  for (const parser of expressParsers[before]) pages.use(parser);
  pages.use(listener);
  pages.get("/about", (_, response) => void response.send("a page"));
  return pages.listen(0, "127.0.0.1");
};

const honoReaders: Readonly<Record<Before, MiddlewareHandler[]>> = {
  nothing: [],
  "a parser of JSON": [
    async (c, next) => {
      await c.req.json();
      await next();
    },
  ],
  "one that keeps nothing": [
    async (c, next) => {
      await c.req.raw.text();
      await next();
    },
  ],
  compression: [compress()],
};

const onHono: HostServer = (handler, before) => {
  const pages = new Hono<{ Bindings: HttpBindings }>();
  for (const reader of honoReaders[before]) pages.use(reader);
  pages.all("/agents/*", (c) => handler.fetch(c.req.raw));
  pages.get("/about", (c) => c.text("a page"));
  return serveHono({ fetch: pages.fetch, port: 0, hostname: "127.0.0.1" }) as Server;
};

describe.each<[string, HostServer]>([
  ["Express", onExpress],
  ["Hono", onHono],
])("an app in %s", (name, host) => {
  const start = async (options: AppOptions = {}, before: Before = "nothing") => {
    const app = await serve({ ...options, graphs: { said, ...options.graphs }, transport: "none" });
    const handler = createHandler(app, { prefix: "/agents" });
    const server = host(handler, before);
    onTestFinished(() => server.close().closeAllConnections());
    server.on("upgrade", (request, socket, head) => {
      if (!handler.upgrade(request, socket, head)) socket.destroy();
    });
    if (!server.listening) await once(server, "listening");
    const root = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return { root, url: `${root}/agents`, complaints: app.complaints };
  };

  test("serves the official client below its prefix, and leaves other paths to the host", async () => {
    const { root, url, complaints } = await start();
    const client = new Client({ apiUrl: url, apiKey: null, callerOptions: { maxRetries: 0 } });
    const { thread_id } = await client.threads.create();
    expect(await client.runs.wait(thread_id, "said", { input: {} })).toEqual({ log: ["said"] });
    const events = await all(client.runs.stream(thread_id, "said", { input: {}, streamMode: "values" }));
    expect(events.at(-1)).toMatchObject({ event: "values", data: { log: ["said", "said"] } });
    const { run_id } = await client.runs.create(thread_id, "said", { input: {}, streamResumable: true });
    const joined = await all(client.runs.joinStream(thread_id, run_id, { lastEventId: "-1" }));
    expect(joined.at(-1)).toMatchObject({ event: "values" });
    await client.threads.delete(thread_id);
    await expect(client.threads.get(thread_id)).rejects.toThrow("404");
    const head = await fetch(`${url}/ok`, { method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([200, ""]);
    expect(await (await get(`${root}/about`)).text()).toBe("a page");
    expect((await get(`${root}/nothing`)).status).toBe(404);
    expect(complaints).toEqual([]);
  });

  test.each(transports)("serves protocol v2 over %s", async (transport) => {
    const { url } = await start();
    const { thread } = streamOf(url, transport, "said");
    await thread.run.start({ input: {} });
    expect(await thread.output).toMatchObject({ log: ["said"] });
  });

  test("serves the sockets of a run and of a thread, and lets the host refuse others", async () => {
    const { root, url } = await start();
    const thread = await newThread(url);
    const socket = await dial(`${url}/threads/${thread}/stream`);
    const told = await socket.ask({ id: 1, type: "run", assistant_id: "said", input: {} });
    expect(told).toMatchObject({ type: "ack" });
    await socket.until(({ frames }) => frames.some(({ event }) => event === "run_done"));
    const of = await dial(`${url}/threads/${thread}/runs/${told.run_id}/stream`);
    expect((await of.closed).code).toBe(1000);
    expect(of.frames.at(-1)).toMatchObject({ event: "values" });
    await expect(dial(`${root}/about`)).rejects.toThrow("socket hang up");
  });

  test("sends events as they come, also where the host compresses", async () => {
    const { halt, reached, open } = halting();
    const { url } = await start({ graphs: { halt } }, "compression");
    const reading = new Reading(await post(`${url}/runs/stream`, { assistant_id: "halt", input: {} }));
    await reading.until(({ data }) => JSON.stringify(data) === '{"log":["said"]}');
    await reached;
    open();
    expect((await reading.all()).at(-1)).toMatchObject({
      event: "values",
      data: { log: ["said", "let go"] },
    });
  });

  test.each(["/runs/stream", "/runs/wait"])("notices that the client of %s has left", async (path) => {
    const { halt, reached, open } = halting();
    const { url, complaints } = await start({ graphs: { halt } });
    const thread = await newThread(url);
    const leaving = new AbortController();
    const asked = fetch(`${url}/threads/${thread}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ assistant_id: "halt", input: {}, on_disconnect: "cancel" }),
      signal: leaving.signal,
    }).then((response) => response.text());
    asked.catch(() => undefined);
    await reached;
    leaving.abort();
    const status = async () =>
      ((await (await get(`${url}/threads/${thread}/runs`)).json()) as { status: string }[])[0]?.status;
    await expect.poll(status).toBe("interrupted");
    open();
    expect(complaints).toEqual([]);
    expect((await get(`${url}/ok`)).status).toBe(200);
  });

  test("takes large bodies, and refuses those above its limit", async () => {
    const { url } = await start({ maxBody: 4_000_000 });
    const thread = await newThread(url);
    const input = { log: ["é".repeat(1_500_000)] };
    expect(await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "said", input })).toEqual({
      log: [...input.log, "said"],
    });
    const refused = await post(`${url}/threads`, "{}".padEnd(4_000_001));
    expect([refused.status, await refused.json()]).toEqual([
      413,
      { detail: expect.stringContaining("4000000") as string, code: "body.too_large" },
    ]);
  });

  test("notices that a client leaves in the middle of its body", async () => {
    const { url, complaints } = await start();
    const asked = httpRequest(`${url}/threads`, {
      method: "POST",
      headers: { "content-type": "application/json", "content-length": 100 },
    });
    asked.on("error", () => undefined);
    asked.write("{");
    await once(asked, "socket");
    asked.destroy();
    expect((await get(`${url}/ok`)).status).toBe(200);
    expect(complaints).toEqual([]);
  });

  test("refuses a body that the host has read and not kept, and says so", async () => {
    const { url, complaints } = await start({}, "one that keeps nothing");
    const refused = await post(`${url}/threads`, { metadata: { a: 1 } });
    expect([refused.status, await refused.json()]).toEqual([
      400,
      { detail: expect.stringContaining("read already") as string, code: "body.malformed" },
    ]);
    expect(complaints).toEqual([]);
  });

  test("after a parser of JSON", async () => {
    const { url } = await start({}, "a parser of JSON");
    const response = await post(`${url}/threads`, { metadata: { a: 1 } });
    const answer = (await response.json()) as object;
    expect([response.status, answer]).toEqual(
      name === "Express"
        ? [200, expect.objectContaining({ metadata: { a: 1 } })]
        : [400, { detail: expect.stringContaining("read already") as string, code: "body.malformed" }],
    );
  });
});
