import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { Client } from "@langchain/langgraph-sdk";
import { Hono } from "hono";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  type AppOptions,
  createHandler,
  graph,
  type Handler,
  type HandlerOptions,
  list,
} from "../../src/index.ts";
import { compile } from "../fixtures/compile.ts";
import { latch, unlessAborted } from "./support/latches.ts";
import { all, streamOf, transports } from "./support/protocol.ts";
import { serve } from "./support/server.ts";
import { dial } from "./support/sockets.ts";
import { get, newThread, post, postJson, Reading } from "./support/wire.ts";

const said = graph({
  state: { log: list<string>() },
  nodes: { say: async () => ({ log: ["said"] }) },
  edges: { start: "say" },
});

/** A graph whose node reports that it runs, and then waits to be released. */
function halting() {
  const [reached, opened] = [latch(), latch()];
  const halt = graph({
    state: { log: list<string>() },
    nodes: {
      wait: async (_, ctx) => {
        reached.pass();
        await unlessAborted(opened.passed, ctx.signal);
        return { log: ["let go"] };
      },
    },
    edges: { start: "wait" },
  });
  return { halt, reached: reached.passed, open: () => opened.pass() };
}

/** A server as a user of Heddle creates it, on a free port; it closes with the test. */
async function listening(
  listener: RequestListener,
  host = "127.0.0.1",
): Promise<{ server: Server; url: string }> {
  const server = createServer(listener).listen(0, host);
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

interface Embedded {
  readonly handler: Handler;
  readonly server: Server;
  readonly url: string;
  readonly close: (ms?: number) => Promise<void>;
  readonly complaints: readonly string[];
}

/** An app that does not listen, but is part of one of Node's servers. */
async function embed(
  options: AppOptions = {},
  handling: HandlerOptions = {},
  wrap: (handler: Handler) => RequestListener = ({ listener }) => listener,
): Promise<Embedded> {
  const app = await serve({ ...options, graphs: { said, ...options.graphs }, transport: "none" });
  const handler = createHandler(app, handling);
  const { server, url } = await listening(wrap(handler));
  server.on("upgrade", (...given) => {
    if (!handler.upgrade(...given)) given[1].end("HTTP/1.1 418 Other\r\nconnection: close\r\n\r\n");
  });
  return { handler, server, url, close: (ms) => app.close(ms), complaints: app.complaints };
}

const run = { assistant_id: "said", input: {} };

test("the library of WebSockets is loaded with the first of them: neither an app nor a handler brings it along", async () => {
  const program = await compile(fileURLToPath(new URL("../fixtures/first-socket.ts", import.meta.url)));
  onTestFinished(() => program.remove());
  const printed = execFileSync(process.execPath, [program.script], { encoding: "utf8" });
  expect(JSON.parse(printed)).toEqual({
    before: false,
    first: expect.stringContaining("101"),
    after: true,
  });
});

test("an app with the transport `none` listens nowhere, and is asked within the process", async () => {
  const app = await serve({ transport: "none", graphs: { said } });
  expect(app).toMatchObject({ url: "", address: { port: 0 }, transport: { kind: "none" } });
  const info = (await (await app.fetch(new Request("http://localhost/info"))).json()) as object;
  expect(info).toMatchObject({ heddle: { transport: { kind: "none" } } });
  const asked = new Request("http://localhost/runs/wait", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ...run, webhook: "/hook" }),
  });
  const response = await app.fetch(asked);
  expect([response.status, await response.text()]).toEqual([422, expect.stringContaining("webhook")]);
});

describe.each([
  ["without a prefix", undefined],
  ["below a prefix", "/api/graphs"],
])("a handler in a server of Node's, %s", (_, prefix) => {
  const handling = prefix === undefined ? {} : { prefix };
  const start = async (options?: AppOptions) => {
    const embedded = await embed(options, handling);
    return { ...embedded, base: embedded.url + (prefix ?? "") };
  };

  test("serves the official client: threads, runs, streams, and a stream that is taken up again", async () => {
    const { base, complaints } = await start();
    const client = new Client({ apiUrl: base, apiKey: null, callerOptions: { maxRetries: 0 } });
    const { thread_id } = await client.threads.create();
    expect(await client.runs.wait(thread_id, "said", { input: {} })).toEqual({ log: ["said"] });
    const events = await all(client.runs.stream(thread_id, "said", { input: {}, streamMode: "values" }));
    expect(events.at(-1)).toMatchObject({ event: "values", data: { log: ["said", "said"] } });
    const { run_id } = await client.runs.create(thread_id, "said", { input: {}, streamResumable: true });
    expect(
      (await all(client.runs.joinStream(thread_id, run_id, { lastEventId: "-1" }))).length,
    ).toBeGreaterThan(0);
    expect(complaints).toEqual([]);
  });

  test.each(transports)("serves protocol v2 over %s", async (transport) => {
    const { base } = await start();
    const { thread } = streamOf(
      base,
      transport,
      "said",
      crypto.randomUUID(),
      new Client({ apiUrl: base, apiKey: null }),
    );
    await thread.run.start({ input: {} });
    expect(await thread.output).toMatchObject({ log: ["said"] });
  });

  test("serves a thread's socket with its commands", async () => {
    const { base } = await start();
    const thread = await newThread(base);
    const socket = await dial(`${base}/threads/${thread}/stream`);
    expect(await socket.ask({ ...run, id: 1, type: "run" })).toMatchObject({ type: "ack" });
    await socket.until(({ frames }) => frames.some(({ event }) => event === "values"));
  });

  test("sends a stream as it comes, and notices that its client has left", async () => {
    const { halt, reached, open } = halting();
    const { base } = await start({ graphs: { halt } });
    const thread = await newThread(base);
    const streaming = await post(`${base}/threads/${thread}/runs/stream`, {
      assistant_id: "halt",
      input: {},
      on_disconnect: "cancel",
    });
    const reading = new Reading(streaming);
    await reading.until(({ event }) => event === "metadata");
    await reached;
    await reading.leave();
    const status = async () =>
      ((await (await get(`${base}/threads/${thread}/runs`)).json()) as { status: string }[])[0]?.status;
    await expect.poll(status).toBe("interrupted");
    open();
  });

  test("refuses what is too large, and a path that is none", async () => {
    const { base } = await start({ maxBody: 100 });
    expect((await post(`${base}/threads`, "{}".padEnd(101))).status).toBe(413);
    const missing = await get(`${base}/nothing`);
    expect([missing.status, await missing.json()]).toEqual([
      404,
      { detail: "Not Found", code: "route.not_found" },
    ]);
    await expect(dial(`${base}/nothing`)).rejects.toThrow("404");
  });
});

describe("what is outside the prefix is not the app's", () => {
  test("a request is answered 404, or goes to the next listener", async () => {
    const { url } = await embed({}, { prefix: "/api" });
    expect((await get(`${url}/ok`)).status).toBe(404);
    expect((await get(`${url}/apis/ok`)).status).toBe(404);
    expect((await get(`${url}/api/ok?a=1`)).status).toBe(200);
    expect((await get(`${url}/api?a=1`)).status).toBe(200);

    const { url: other } = await embed({}, { prefix: "/api/" }, ({ listener }) => (request, response) => {
      listener(request, response, () => response.end("mine"));
    });
    expect(await (await get(`${other}/ok`)).text()).toBe("mine");
    expect((await get(`${other}/api/ok`)).status).toBe(200);
  });

  test("an upgrade is left to the owner", async () => {
    const { url } = await embed({}, { prefix: "/api" });
    await expect(dial(`${url}/other`)).rejects.toThrow("418");
  });

  test("an option that there is not is refused", async () => {
    const options = { prfix: "/api" } as HandlerOptions;
    await expect(embed({}, options)).rejects.toThrow(
      'createHandler has no option "prfix"; did you mean prefix?',
    );
  });

  test("a prefix that is no path is refused", async () => {
    const app = await serve({ transport: "none" });
    expect(() => createHandler(app, { prefix: "api" })).toThrow('prefix must be a path such as "/api"');
  });
});

/** As Express does: the mount path is removed from `url`, and body parsers put what they have read into `body`. */
const expressLike =
  (mounted: string, parse?: (bytes: Buffer) => unknown) =>
  ({ listener }: Handler): RequestListener =>
  async (request, response) => {
    if (!request.url?.startsWith(mounted)) return void response.writeHead(404).end();
    request.url = request.url.slice(mounted.length);
    if (parse !== undefined && request.method !== "GET") {
      const pieces: Buffer[] = [];
      for await (const piece of request) pieces.push(piece as Buffer);
      Object.assign(request, { body: parse(Buffer.concat(pieces)) });
    }
    listener(request, response, () => response.writeHead(404).end());
  };

describe("a handler as a middleware", () => {
  test.each<[string, ((bytes: Buffer) => unknown) | undefined]>([
    ["before any body parser", undefined],
    ["after one of JSON", (bytes) => JSON.parse(String(bytes || "{}")) as unknown],
    ["after one of text", String],
    ["after one of bytes", (bytes) => bytes],
  ])("%s", async (_, parse) => {
    const { url } = await embed({}, {}, expressLike("/agents", parse));
    const base = `${url}/agents`;
    const thread = await newThread(base);
    // Larger than a body that is kept in pieces may be.
    const input = { log: ["é".repeat(100_000)] };
    expect(await postJson(`${base}/threads/${thread}/runs/wait`, { ...run, input })).toEqual({
      log: [...input.log, "said"],
    });
  });

  test("a body that was read and not kept is refused, and not taken for an empty one", async () => {
    const { url } = await embed(
      {},
      {},
      expressLike("", () => undefined),
    );
    expect((await post(`${url}/threads`, { metadata: { a: 1 } })).status).toBe(400);
  });

  test("a parsed body has the limit of every body", async () => {
    const { url } = await embed({ maxBody: 100 }, {}, expressLike("", String));
    expect((await post(`${url}/threads`, "{}".padEnd(101))).status).toBe(413);
  });
});

test("Hono serves an app by its `fetch`, and streams pass as they come", async () => {
  const { halt, reached, open } = halting();
  const app = await serve({ transport: "none", graphs: { halt, said } });
  const handler = createHandler(app, { prefix: "/agents" });
  const hono = new Hono();
  hono.get("/mine", (c) => c.text("mine"));
  hono.all("/agents/*", (c) => handler.fetch(c.req.raw));
  const asked = (path: string, body: object) =>
    hono.request(`http://localhost${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  expect(await (await hono.request("/mine")).text()).toBe("mine");
  expect(await (await asked("/agents/runs/wait", run)).json()).toEqual({ log: ["said"] });
  expect((await handler.fetch(new Request("http://localhost/runs/wait"))).status).toBe(404);
  const read = new Request("http://localhost/agents/threads", { method: "POST", body: "{}" });
  await read.text();
  const refused = await handler.fetch(read);
  expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining("read already")]);
  const reading = new Reading(await asked("/agents/runs/stream", { assistant_id: "halt", input: {} }));
  await reading.until(({ event }) => event === "metadata");
  await reached;
  open();
  expect((await reading.all()).at(-1)).toMatchObject({ event: "values", data: { log: ["let go"] } });
});

describe("when the app closes", () => {
  test("runs drain, streams and sockets end, and the server of the owner stays", async () => {
    const { halt, reached, open } = halting();
    const { url, server, close, handler } = await embed({ graphs: { halt } });
    const thread = await newThread(url);
    const socket = await dial(`${url}/threads/${thread}/stream`);
    const waiting = post(`${url}/threads/${thread}/runs/wait`, { assistant_id: "halt", input: {} });
    await reached;
    const stream = await get(`${url}/threads/${thread}/stream`);
    const ended = stream.text().then(
      () => "an end",
      (cause: Error) => cause.message,
    );
    const closing = close(10_000);
    const refused = await post(`${url}/runs`, run);
    expect([refused.status, refused.headers.get("connection")]).toEqual([503, "close"]);
    open();
    expect(await (await waiting).json()).toEqual({ log: ["let go"] });
    await closing;
    await socket.closed;
    expect(await ended).toBe("terminated");
    expect(server.listening).toBe(true);
    const after = await get(`${url}/ok`);
    expect([after.status, await after.json()]).toEqual([503, { detail: "The server has stopped" }]);
    expect((await handler.fetch(new Request(`${url}/ok`))).status).toBe(503);
    await expect(dial(`${url}/threads/${thread}/stream`)).rejects.toThrow("503");
    const closed = once(server, "close");
    server.close();
    server.closeIdleConnections();
    await closed;
  });

  test("what waits for a run that does not end is cut off", async () => {
    const { halt, reached } = halting();
    const { url, close } = await embed({ graphs: { halt } });
    // The run fails before the server has closed.
    const ended = post(`${url}/runs/wait`, { assistant_id: "halt", input: {} }).then(
      (response) => response.text(),
      (cause: Error) => cause.message,
    );
    await reached;
    await close(0);
    expect(await ended).toBe("fetch failed");
  });
});

describe("when the app closes, what came as a web request", () => {
  const asked = (path: string, body: object) =>
    new Request(`http://localhost${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  const start = async () => {
    const { halt, reached } = halting();
    const app = await serve({ transport: "none", graphs: { halt } });
    return { app, handler: createHandler(app), reached };
  };

  test("and is a stream ends", async () => {
    const { app, handler, reached } = await start();
    const stream = await handler.fetch(asked("/runs/stream", { assistant_id: "halt", input: {} }));
    const ended = stream.text().then(
      () => "an end",
      (cause: Error) => cause.message,
    );
    await reached;
    await app.close(0);
    expect(await ended).toBe("the connection was closed");
  });

  test("and waits for a run does not wait for ever", async () => {
    const { app, handler, reached } = await start();
    const waiting = handler.fetch(asked("/runs/wait", { assistant_id: "halt", input: {} })).then(
      (response) => response.text(),
      (cause: Error) => cause.message,
    );
    await reached;
    await app.close(0);
    expect(await waiting).toContain("The server has stopped");
  });
});

describe("who may use an app without keys", () => {
  const asking = async (options: AppOptions) => {
    const app = await serve({ transport: "none", ...options });
    const handler = createHandler(app);
    // With the remote address of another machine.
    const { url, server } = await listening((request, response) => {
      Object.defineProperty(request.socket, "localAddress", { value: "::ffff:192.0.2.7" });
      handler.listener(request, response);
    });
    server.on("upgrade", (request, socket, head) => {
      Object.defineProperty(request.socket, "localAddress", { value: "192.0.2.7" });
      handler.upgrade(request, socket, head);
    });
    return {
      url,
      status: (await get(`${url}/assistants/${crypto.randomUUID()}`, { "x-api-key": "one" })).status,
    };
  };

  test("only this machine, whatever address the owner listens at, unless that is allowed", async () => {
    const { url, status } = await asking({});
    expect(status).toBe(403);
    await expect(dial(`${url}/inspect`)).rejects.toThrow("403");
    expect((await asking({ insecure: true })).status).toBe(404);
    expect((await asking({ keys: ["one"] })).status).toBe(404);
  });
});

test("an app that listens can be part of another server as well", async () => {
  const app = await serve({ graphs: { said } });
  const { url } = await listening(createHandler(app).listener);
  const thread = await newThread(app.url);
  expect((await get(`${url}/threads/${thread}`)).status).toBe(200);
});
