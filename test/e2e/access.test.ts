import { describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import type { App, AppOptions } from "../../src/app.ts";
import { createApp, graph, list } from "../../src/index.ts";
import { createLogger } from "../../src/platform/log.ts";
import { SimulatedClock } from "../simulation/clock.ts";
import { lines } from "./support/clients.ts";
import { serve } from "./support/server.ts";
import { NOBODY, UUID } from "./support/wire.ts";

type Fields = Record<string, string>;
const json = { "content-type": "application/json" };
const FOREIGN = { origin: "https://evil.test" };

const ask = (app: App, method: string, path: string, headers: Fields = {}, body?: string) =>
  fetch(`${app.url}${path}`, {
    method,
    headers: { ...json, ...headers },
    ...(body === undefined ? {} : { body }),
  });

async function threadOf(app: App, headers: Fields = {}): Promise<string> {
  const made = await ask(app, "POST", "/threads", headers, "{}");
  expect(made.status).toBe(200);
  return ((await made.json()) as { thread_id: string }).thread_id;
}

/** The status of a refused upgrade, or the close code of the socket. */
function knock(app: App, path: string, headers: Fields = {}): Promise<number> {
  return new Promise((resolve) => {
    const socket = new WebSocket(`${app.url.replace("http", "ws")}${path}`, { headers });
    socket.on("error", () => undefined);
    socket.on("unexpected-response", (_, answer) => resolve(answer.statusCode ?? 0));
    socket.on("close", (code) => resolve(code));
  });
}

const whose = graph({
  state: { log: list<string>() },
  nodes: { a: async () => ({ log: ["a"] }) },
  edges: { start: "a" },
});

const SOCKET = `/threads/${NOBODY}/runs/${NOBODY}/stream`;

describe("with keys", () => {
  const keys = ["mine", "acme:theirs"];
  const mine = { "x-api-key": "mine" };
  const theirs = { authorization: "Bearer theirs" };

  test("nothing is served without one, not even that it is not there", async () => {
    const app = await serve({ keys });
    for (const [method, path] of [
      ["POST", "/threads"],
      ["GET", `/threads/${NOBODY}`],
      ["POST", "/assistants/search"],
      ["POST", "/auth/token"],
      ["GET", "/nowhere"],
      ["DELETE", "/ok"],
    ] as const) {
      for (const headers of [{}, { "x-api-key": "wrong" }, { authorization: "Basic mine" }]) {
        const answer = await ask(app, method, path, headers);
        expect([answer.status, answer.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
        expect(await answer.json()).toEqual({ detail: expect.any(String), code: "auth.required" });
      }
    }
    expect((await ask(app, "GET", "/nowhere", mine)).status).toBe(404);
  });

  test("health and preflights need none", async () => {
    const app = await serve({ keys });
    for (const path of ["/ok", "/live", "/ready", "/info"])
      expect((await ask(app, "GET", path)).status).toBe(200);
    expect((await ask(app, "OPTIONS", "/threads", FOREIGN)).status).toBe(204);
  });

  test.each(lines)("%s comes in with its key, and is told 401 without", async (_, connect) => {
    const app = await serve({ keys, graphs: { whose } });
    const client = connect(app.url, "mine");
    const { thread_id } = await client.threads.create();
    expect(await client.runs.wait(thread_id, "whose", { input: {} })).toEqual({ log: ["a"] });
    await expect(connect(app.url).threads.create()).rejects.toThrow("HTTP 401");
  });

  test("what is another tenant's is not there", async () => {
    const app = await serve({ keys, graphs: { whose } });
    const thread = await threadOf(app, mine);
    const started = await ask(
      app,
      "POST",
      `/threads/${thread}/runs`,
      mine,
      '{"assistant_id":"whose","input":{}}',
    );
    const { run_id } = (await started.json()) as { run_id: string };
    const made = await ask(app, "POST", "/assistants", mine, '{"graph_id":"whose"}');
    const { assistant_id } = (await made.json()) as { assistant_id: string };
    const run = `/threads/${thread}/runs/${run_id}`;
    for (const [method, path, body] of [
      ["GET", `/threads/${thread}`],
      ["GET", `/threads/${thread}/state`],
      ["GET", `/threads/${thread}/runs`],
      ["POST", `/threads/${thread}/runs`, '{"assistant_id":"whose"}'],
      ["GET", run],
      ["GET", `${run}/join`],
      ["GET", `${run}/stream`],
      ["POST", `${run}/cancel`],
      ["GET", `/assistants/${assistant_id}`],
    ] as const) {
      expect([path, (await ask(app, method, path, theirs, body)).status]).toEqual([path, 404]);
    }
    expect(await knock(app, `${run}/stream`, theirs)).toBe(4404);
    expect(await knock(app, `${run}/stream`, mine)).toBe(1000);
    const search = async (headers: Fields) =>
      ((await (await ask(app, "POST", "/assistants/search", headers, "{}")).json()) as { name: string }[])
        .length;
    expect([await search(mine), await search(theirs)]).toEqual([4, 3]);
    // Both tenants may have a thread with this id.
    const body = JSON.stringify({ thread_id: thread });
    expect((await ask(app, "POST", "/threads", theirs, body)).status).toBe(200);
  });

  test("a socket is opened with a key, or with a token for a minute; without it is closed with 4401", async () => {
    const clock = new SimulatedClock();
    const app = await serve({ keys, clock });
    expect(await knock(app, SOCKET)).toBe(4401);
    expect(await knock(app, `${SOCKET}?token=made.up.token`)).toBe(4401);
    expect(await knock(app, SOCKET, { ...mine, ...FOREIGN })).toBe(4404);
    const given = await ask(app, "POST", "/auth/token", theirs);
    expect(given.headers.get("cache-control")).toBe("no-store");
    const { token, expires_at } = (await given.json()) as { token: string; expires_at: string };
    expect(Date.parse(expires_at)).toBe(clock.now() + 60_000);
    expect(await knock(app, `${SOCKET}?token=${token}`)).toBe(4404);
    // The token is valid for sockets only.
    expect((await ask(app, "GET", `/threads/${NOBODY}?token=${token}`)).status).toBe(401);
    clock.advance(60_000);
    expect(await knock(app, `${SOCKET}?token=${token}`)).toBe(4401);
  });

  test("every answer to a page carries what it needs, failures and streams too", async () => {
    const app = await serve({ keys, graphs: { whose } });
    const thread = await threadOf(app, mine);
    const body = '{"assistant_id":"whose","input":{},"multitask_strategy":"enqueue"}';
    const answers = [
      await ask(app, "GET", "/threads", FOREIGN),
      await ask(app, "GET", "/nowhere", { ...FOREIGN, ...mine }),
      await ask(app, "POST", "/threads", { ...FOREIGN, ...mine }, "{"),
      await ask(app, "POST", `/threads/${thread}/runs/stream`, { ...FOREIGN, ...mine }, body),
      await ask(app, "POST", `/threads/${thread}/runs/wait`, { ...FOREIGN, ...mine }, body),
    ];
    expect(answers.map(({ status }) => status)).toEqual([401, 404, 400, 200, 200]);
    for (const answer of answers) {
      await answer.text();
      expect(answer.headers.get("access-control-allow-origin")).toBe("*");
      expect(answer.headers.get("access-control-expose-headers")).toContain("content-location, location");
    }
  });
});

describe("without a key", () => {
  test("a foreign page reads nothing, starts nothing, opens nothing", async () => {
    const app = await serve();
    const thread = await threadOf(app);
    for (const [method, path] of [
      ["GET", "/ok"],
      ["GET", `/threads/${thread}`],
      ["POST", "/threads"],
      ["POST", `/threads/${thread}/runs`],
      ["OPTIONS", "/threads"],
      ["GET", "/nowhere"],
    ] as const) {
      const answer = await ask(app, method, path, FOREIGN);
      expect([path, answer.status]).toEqual([path, 403]);
      expect(answer.headers.get("access-control-allow-origin")).toBeNull();
      expect(await answer.json()).toEqual({
        detail: expect.stringContaining("http.cors.allow_origins"),
        code: "auth.forbidden",
      });
    }
    expect(await knock(app, SOCKET, FOREIGN)).toBe(403);
    expect(await knock(app, SOCKET, { host: "rebound.test" })).toBe(403);
  });

  test("a page of another port of this machine does all three", async () => {
    const app = await serve();
    const page = { origin: "http://localhost:3000" };
    const made = await ask(app, "POST", "/threads", page, "{}");
    expect([made.status, made.headers.get("access-control-allow-origin")]).toEqual([200, page.origin]);
    expect(await knock(app, SOCKET, page)).toBe(4404);
    const preflight = await ask(app, "OPTIONS", "/not/there", {
      ...page,
      "access-control-request-method": "POST",
      "access-control-request-headers": "x-unknown",
      "access-control-request-private-network": "true",
    });
    expect(preflight.status).toBe(204);
    expect(Object.fromEntries(preflight.headers)).toMatchObject({
      "access-control-allow-origin": page.origin,
      "access-control-allow-headers": "x-unknown",
      "access-control-allow-private-network": "true",
    });
  });

  test("options name the pages and hosts that may", async () => {
    const app = await serve({ origins: ["https://app.test"], hosts: ["app.test"], studio: true });
    for (const origin of ["https://app.test", "https://smith.langchain.com"]) {
      expect((await ask(app, "POST", "/threads", { origin }, "{}")).status).toBe(200);
    }
    expect(await knock(app, SOCKET, { host: "app.test" })).toBe(4404);
  });

  test("others are let in only when that is meant", async () => {
    await expect(createApp({ host: "0.0.0.0" })).rejects.toMatchObject({ code: "config.invalid" });
    const app = await serve({ host: "0.0.0.0", insecure: true });
    expect((await fetch(`http://127.0.0.1:${app.address.port}/ok`)).status).toBe(200);
  });
});

describe("what the server says of itself", () => {
  test("/info: version, flags, transport and why", async () => {
    const app = await serve();
    const info = (await (await ask(app, "GET", "/info")).json()) as Record<string, unknown>;
    expect(info).toMatchObject({
      version: expect.any(String),
      context: "js",
      flags: { assistants: true },
      heddle: { transport: app.transport },
    });
    expect(info).not.toHaveProperty("services");
    expect(await (await ask(app, "GET", "/ok")).json()).toEqual({ ok: true });
  });

  test("HEAD is answered like GET; an unknown route and another method with 404", async () => {
    const app = await serve();
    const head = await ask(app, "HEAD", "/ok");
    expect([head.status, head.headers.get("content-length"), await head.text()]).toEqual([200, "11", ""]);
    for (const [method, path] of [
      ["GET", "/nope"],
      ["PATCH", "/ok"],
    ] as const) {
      const answer = await ask(app, method, path);
      expect(answer.status).toBe(404);
      expect(await answer.json()).toEqual({ detail: "Not Found", code: "route.not_found" });
    }
  });

  test("a sane request id is kept, another one is replaced, on every answer", async () => {
    const app = await serve();
    const idOf = async (given: string, path = "/ok") =>
      (await ask(app, "GET", path, { "x-request-id": given })).headers.get("x-request-id");
    expect(await idOf("abc-1.2:3")).toBe("abc-1.2:3");
    expect(await idOf("abc", "/nope")).toBe("abc");
    for (const odd of ["", "a b", "x".repeat(129), "a<b>"]) expect(await idOf(odd)).toMatch(UUID);
    expect(await idOf("")).not.toBe(await idOf(""));
  });

  test("paths stand under the mount; parts can be off", async () => {
    const app = await serve({
      mount: "/api",
      config: { path: "", graphs: {}, env: {}, access: { disabled: ["runs"] } },
    });
    expect((await ask(app, "GET", "/ok")).status).toBe(404);
    expect((await ask(app, "GET", "/api/ok")).status).toBe(200);
    const made = await ask(app, "POST", "/api/threads", {}, "{}");
    const { thread_id } = (await made.json()) as { thread_id: string };
    expect((await ask(app, "GET", `/api/threads/${thread_id}/runs`)).status).toBe(404);
    expect((await ask(app, "GET", `/api/threads/${thread_id}/events/possible`)).status).toBe(404);
    expect(await knock(app, `/api${SOCKET}`)).toBe(404);
    // Commands of the thread protocol start runs too, over HTTP and over sockets.
    const command = '{"id":1,"method":"run.start","params":{"assistant_id":"agent","input":{}}}';
    expect((await ask(app, "POST", `/api/threads/${thread_id}/commands`, {}, command)).status).toBe(404);
    expect(await knock(app, `/api/threads/${thread_id}/stream`)).toBe(404);
    expect(await knock(app, `/api/threads/${thread_id}/stream/events`)).toBe(404);
  });

  test("requests are logged, without keys, queries and bodies", async () => {
    const written: string[] = [];
    const logger = createLogger({
      clock: new SimulatedClock(),
      level: "debug",
      write: (line) => written.push(line),
    });
    const options: AppOptions = { logger, requestLog: "info", keys: ["acme:hush"], graphs: { whose } };
    const app = await serve(options);
    const key = { "x-api-key": "hush" };
    const thread = await threadOf(app, key);
    const body = '{"assistant_id":"whose","input":{"log":["private"]}}';
    const streamed = await ask(app, "POST", `/threads/${thread}/runs/stream`, key, body);
    const bytes = Buffer.byteLength(await streamed.text());
    await ask(app, "GET", "/threads?hidden=1", { "x-request-id": "r-1" });
    const requests = written
      .filter((line) => line.includes('"request"'))
      .map((line) => JSON.parse(line) as object);
    expect(requests).toMatchObject([
      {
        level: "info",
        method: "POST",
        path: "/threads",
        status: 200,
        tenant: "acme",
        ms: expect.any(Number),
      },
      { path: `/threads/${thread}/runs/stream`, status: 200, bytes },
      { method: "GET", path: "/threads", status: 401, request_id: "r-1" },
    ]);
    expect(requests[2]).not.toHaveProperty("tenant");
    expect(written.join("")).not.toMatch(/hush|hidden|private/);
  });

  test("a failure's path is told as far as it is of use", async () => {
    const app = await serve({ graphs: { whose } });
    const thread = await threadOf(app);
    const long = "k".repeat(1_000_000);
    let metadata: unknown = 1;
    for (let i = 0; i < 300; i++) metadata = { n: metadata };
    for (const body of [
      { metadata: { [long]: metadata } },
      { assistant_id: "whose", metadata: { [long]: metadata } },
    ]) {
      const path = "assistant_id" in body ? `/threads/${thread}/runs` : "/threads";
      const answer = await ask(app, "POST", path, {}, JSON.stringify(body));
      const text = await answer.text();
      expect([answer.status, text.length < 10_000]).toEqual([422, true]);
    }
  });
});
