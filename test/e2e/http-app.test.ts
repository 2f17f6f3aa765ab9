import { writeFile } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { createConnection } from "node:net";
import { join } from "node:path";
import { Client } from "@langchain/langgraph-sdk";
import { Hono } from "hono";
import { cors } from "hono/cors";
import { AutoRouter } from "itty-router";
import { describe, expect, test } from "vitest";
import type { HttpApp } from "../../src/ports/http-app.ts";
import { createApp, graph, list, value } from "../../src/index.ts";
import { directory, serve } from "./support/server.ts";
import { describeOverEachTransport } from "../transport/each.ts";

const echo = graph({
  state: { text: value(""), log: list<string>() },
  nodes: { say: async ({ text }, ctx) => (ctx.emit({ said: text }), { log: [text] }) },
  edges: { start: "say" },
});
const JSON_TYPE = { "content-type": "application/json" };
const post = (url: string, body: unknown, headers: Record<string, string> = {}) =>
  fetch(url, { method: "POST", headers: { ...JSON_TYPE, ...headers }, body: JSON.stringify(body) });

const isRefusal = (status: number) => status >= 400 && status < 500;

/** Runs `echo` with this input, and returns the state. */
async function run(url: string, text: string): Promise<{ log: string[] }> {
  const client = new Client({ apiUrl: url });
  const { thread_id } = await client.threads.create();
  return (await client.runs.wait(thread_id, "echo", { input: { text } })) as unknown as { log: string[] };
}

describeOverEachTransport("a project's own application", (transport) => {
  const open = (httpApp: HttpApp, more: object = {}) =>
    serve({ graphs: { echo }, httpApp, transport, ...more });

  describe("of Hono", () => {
    test("answers its own routes, also in place of Heddle's, and leaves all others to it", async () => {
      const hono = new Hono();
      hono.get("/own/:name", (c) => c.json({ hello: c.req.param("name") }, 201, { "x-own": "yes" }));
      hono.get("/info", (c) => c.json({ mine: true }));
      const app = await open(hono);
      const own = await fetch(`${app.url}/own/tea?x=1`);
      expect([own.status, own.headers.get("x-own"), await own.json()]).toEqual([
        201,
        "yes",
        { hello: "tea" },
      ]);
      expect(own.headers.get("x-request-id")).not.toBe(null);
      expect(await (await fetch(`${app.url}/info`)).json()).toEqual({ mine: true });
      expect(await (await fetch(`${app.url}/ok`)).json()).toEqual({ ok: true });
      expect((await run(app.url, "tea")).log).toEqual(["tea"]);
      const none = await fetch(`${app.url}/nowhere`);
      expect([none.status, await none.json()]).toMatchObject([404, { code: "route.not_found" }]);
    });

    test("middleware surrounds Heddle's routes: it may refuse, and change the request's body and the response", async () => {
      const seen: string[] = [];
      const hono = new Hono();
      hono.use("*", async (c, next) => {
        if (c.req.header("x-refuse") !== undefined) return c.json({ detail: "no" }, 403);
        await next();
        seen.push(`${c.req.method} ${c.req.path} ${c.res.status}`);
        c.res.headers.set("x-middleware", "was here");
      });
      hono.use("/threads/:thread/runs/wait", async (c, next) => {
        const body = (await c.req.json()) as { input: { text: string } };
        body.input.text += "!";
        const { url, method, headers } = c.req.raw;
        c.req.raw = new Request(url, { method, headers, body: JSON.stringify(body) });
        await next();
      });
      const app = await open(hono);
      expect((await run(app.url, "tea")).log).toEqual(["tea!"]);
      expect(seen).toEqual([
        "POST /threads 200",
        expect.stringMatching(/^POST \/threads\/.*\/runs\/wait 200$/),
      ]);
      const refused = await post(`${app.url}/threads`, {}, { "x-refuse": "1" });
      expect([refused.status, await refused.json()]).toEqual([403, { detail: "no" }]);
      expect((await fetch(`${app.url}/ok`)).headers.get("x-middleware")).toBe("was here");
    });

    test("a body that middleware has read is there for Heddle, too", async () => {
      const hono = new Hono();
      const read: unknown[] = [];
      hono.use("*", async (c, next) => {
        if (c.req.method === "POST") read.push(await c.req.json());
        await next();
      });
      const app = await open(hono);
      const made = await post(`${app.url}/threads`, { metadata: { of: "me" } });
      expect(await made.json()).toMatchObject({ metadata: { of: "me" } });
      expect(read).toEqual([{ metadata: { of: "me" } }]);
    });

    test("a body that middleware has taken from Hono is refused, and not taken for an empty one", async () => {
      const hono = new Hono();
      hono.use("*", async (c, next) => {
        await c.req.raw.text();
        await next();
      });
      const app = await open(hono);
      const refused = await post(`${app.url}/threads`, { metadata: { of: "me" } });
      expect([refused.status, await refused.json()]).toMatchObject([
        400,
        { detail: expect.stringContaining("read already") as unknown },
      ]);
      expect(app.complaints).toEqual([]);
    });

    test("pages may read the headers that it exposes, and Heddle's own; whose pages is the configuration's", async () => {
      const hono = new Hono();
      hono.use(
        "*",
        cors({ origin: ["https://page.test", "https://app.test"], exposeHeaders: ["x-mine", "Location"] }),
      );
      hono.get("/own", (c) => c.text("", 200, { "x-mine": "1" }));
      const app = await open(hono, { origins: ["https://page.test"] });
      for (const path of ["/own", "/ok"]) {
        // oxlint-disable-next-line no-await-in-loop -- one request after the other
        const { headers } = await fetch(`${app.url}${path}`, { headers: { origin: "https://page.test" } });
        expect(headers.get("access-control-allow-origin")).toBe("https://page.test");
        expect(headers.get("access-control-expose-headers")?.split(", ")).toEqual([
          "x-mine",
          "Location",
          "content-location",
          "x-pagination-total",
          "x-pagination-next",
          "x-request-id",
        ]);
      }
      const other = await fetch(`${app.url}/own`, { headers: { origin: "https://app.test" } });
      expect(other.status).toBe(403);
      const asked = { origin: "https://page.test", "access-control-request-method": "PUT" };
      const preflight = await fetch(`${app.url}/own`, { method: "OPTIONS", headers: asked });
      expect(preflight.headers.get("access-control-allow-methods")).toContain("PUT");
    });

    test("its own answer to unknown paths is not asked for, as Heddle's routes come after it", async () => {
      const hono = new Hono();
      hono.notFound((c) => c.json({ mine: true }, 404));
      hono.get("/missing", (c) => c.notFound());
      const app = await open(hono);
      for (const path of ["/nowhere", "/missing"]) {
        // oxlint-disable-next-line no-await-in-loop -- one request after the other
        const none = await fetch(`${app.url}${path}`);
        // oxlint-disable-next-line no-await-in-loop -- one request after the other
        expect([none.status, await none.json()]).toMatchObject([404, { code: "route.not_found" }]);
      }
      expect((await fetch(`${app.url}/ok`)).status).toBe(200);
    });

    test("several cookies of a response arrive", async () => {
      const hono = new Hono();
      hono.get("/cookies", (c) => {
        c.header("set-cookie", "a=1", { append: true });
        c.header("set-cookie", "b=2; Path=/", { append: true });
        return c.text("");
      });
      const app = await open(hono);
      const { headers } = await fetch(`${app.url}/cookies`);
      expect(headers.getSetCookie()).toEqual(["a=1", "b=2; Path=/"]);
    });
  });

  test("of itty-router, or a function: what it does not answer is left to Heddle", async () => {
    const router = AutoRouter();
    router.get("/own", () => ({ own: 1 }));
    const itty = await open(router as unknown as HttpApp);
    expect(await (await fetch(`${itty.url}/own`)).json()).toEqual({ own: 1 });
    expect((await run(itty.url, "tea")).log).toEqual(["tea"]);
    expect((await fetch(`${itty.url}/nowhere`)).status).toBe(404);

    const plain = await open(async (request: Request) =>
      new URL(request.url).pathname === "/own"
        ? new Response(await request.text(), { status: 202 })
        : undefined,
    );
    const own = await post(`${plain.url}/own`, { a: 1 });
    expect([own.status, await own.json()]).toEqual([202, { a: 1 }]);
    expect((await run(plain.url, "tea")).log).toEqual(["tea"]);
  });

  test("options of Hono's applications count, and such of a class of its own are taken too", async () => {
    class Own extends Hono {
      readonly greeting: string;
      constructor({ greeting }: { greeting: string }) {
        super({ strict: false });
        this.greeting = greeting;
        this.get("/hi", (c) => c.text(this.greeting));
      }
    }
    const app = await open(new Own({ greeting: "hello" }));
    expect(await (await fetch(`${app.url}/hi/`)).text()).toBe("hello");
    expect((await fetch(`${app.url}/ok`)).status).toBe(200);
    const bare = Object.assign(Object.create(null) as HttpApp & object, {
      fetch: () => new Response("bare"),
    });
    expect(await (await fetch(`${(await open(bare)).url}/own`)).text()).toBe("bare");
  });

  test("a request that no web request can express is answered by Heddle as without an application", async () => {
    const app = await open(() => undefined, { keys: ["k"] });
    const { port } = new URL(app.url);
    const status = (head: string): Promise<string> =>
      new Promise((resolve, reject) => {
        const socket = createConnection(Number(port), "localhost", () => socket.write(`${head}\r\n\r\n`));
        socket.once("data", (data) => {
          socket.destroy();
          resolve(data.toString().slice(9, 12));
        });
        socket.once("error", reject);
      });
    expect(await status("TRACE /ok HTTP/1.1\r\nHost: localhost\r\nx-api-key: k")).toBe("404");
    expect(await status("GET /ok HTTP/1.1\r\nHost: [")).toBe("200");
    expect(app.complaints).toEqual([]);
  });

  test("HEAD has the length, and a response of known length is sent with it", async () => {
    const app = await open(() => undefined);
    const [head, whole] = [await fetch(`${app.url}/ok`, { method: "HEAD" }), await fetch(`${app.url}/ok`)];
    expect(head.headers.get("content-length")).toBe("11");
    expect(whole.headers.get("content-length")).toBe("11");
  });

  test("its own responses are counted", async () => {
    const app = await open(new Hono().get("/own", (c) => c.text("", 418)));
    await fetch(`${app.url}/own`);
    expect(await (await fetch(`${app.url}/metrics`)).text()).toMatch(
      /^heddle_http_requests_total\{.*4xx.*\} 1$/m,
    );
  });

  test("streams pass through it as they come, and a client that leaves is seen", async () => {
    let left = false;
    let aborted = false;
    const hono = new Hono();
    hono.use("*", (_, next) => next());
    hono.get("/ticks", (c) => {
      const request = c.req.raw;
      const text = new TextEncoder();
      let timer: NodeJS.Timeout | undefined;
      const body = new ReadableStream({
        start(controller) {
          request.signal.addEventListener("abort", () => (aborted = true));
          timer = setInterval(() => controller.enqueue(text.encode("tick\n")), 5);
        },
        cancel() {
          clearInterval(timer);
          left = true;
        },
      });
      return new Response(body);
    });
    const app = await open(hono);
    const client = new Client({ apiUrl: app.url });
    const { thread_id } = await client.threads.create();
    const events: string[] = [];
    for await (const { event } of client.runs.stream(thread_id, "echo", {
      input: { text: "tea" },
      streamMode: ["custom", "values"],
    }))
      events.push(event);
    expect(events).toEqual(expect.arrayContaining(["metadata", "custom", "values"]));

    const leaving = new AbortController();
    const ticks = await fetch(`${app.url}/ticks`, { signal: leaving.signal });
    const reader = ticks.body?.getReader();
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toContain("tick");
    leaving.abort();
    await expect.poll(() => left && aborted).toBe(true);
  });

  test("what it throws is a 500 that tells nothing, and others are served", async () => {
    const app = await open(() => {
      throw new Error("a secret");
    });
    const failed = await fetch(`${app.url}/own`);
    expect([failed.status, await failed.json()]).toEqual([500, { detail: "Internal server error" }]);
    const late = await open(
      () => new Response(new ReadableStream({ start: (controller) => controller.error(new Error("x")) })),
    );
    expect((await fetch(`${late.url}/own`)).status).toBe(500);
  });

  test.each<[string, unknown, number, string]>([
    ["a number", 5, 500, '{"detail":"Internal server error"}'],
    ["an object", {}, 500, '{"detail":"Internal server error"}'],
    ["text", "words", 200, "words"],
  ])("a chunk of a body that is %s", async (_, chunk, status, text) => {
    const body = () =>
      new ReadableStream({
        start(controller) {
          controller.enqueue(chunk);
          controller.close();
        },
      });
    const app = await open(() => new Response(body()));
    const answer = await fetch(`${app.url}/own`, { signal: AbortSignal.timeout(20_000) });
    expect([answer.status, await answer.text()]).toEqual([status, text]);
  });

  test("what a body fails with after its first bytes is logged, and the connection is cut off", async () => {
    let fail = (): void => undefined;
    const body = () =>
      new ReadableStream({
        start(controller) {
          controller.enqueue(Buffer.from("half of it"));
          fail = () => controller.error(new Error("the other half is missing"));
        },
      });
    const app = await open(() => new Response(body()));
    const half = await fetch(`${app.url}/own`);
    expect(half.status).toBe(200);
    fail();
    await expect(half.text()).rejects.toThrow("terminated");
    await expect.poll(() => app.complaints.join()).toContain("the other half is missing");
  });

  test.each<[string, () => unknown, string]>([
    ["a text", () => "hello", "no Response but of the type string"],
    ["Response.error()", () => Response.error(), "has the status 0"],
  ])("%s is no answer: a 500, and the log says why", async (_, answer, why) => {
    const app = await open(answer as HttpApp);
    const failed = await fetch(`${app.url}/own`, { signal: AbortSignal.timeout(5_000) });
    expect([failed.status, await failed.json()]).toEqual([500, { detail: "Internal server error" }]);
    expect(app.complaints.join()).toContain(why);
  });

  test("comes behind the keys: a client without one reaches none of its routes", async () => {
    const asked: string[] = [];
    const app = await open(
      (request: Request) => {
        asked.push(new URL(request.url).pathname);
        return undefined;
      },
      { keys: ["k"] },
    );
    expect((await fetch(`${app.url}/own`)).status).toBe(401);
    expect((await post(`${app.url}/threads`, {})).status).toBe(401);
    expect((await fetch(`${app.url}/ok`)).status).toBe(200);
    expect((await post(`${app.url}/threads`, {}, { "x-api-key": "k" })).status).toBe(200);
    expect(asked).toEqual(["/ok", "/threads"]);
  });

  test("cannot lift a request without a key to a route that needs one", async () => {
    const hono = new Hono();
    hono.use("*", async (c, next) => {
      const { body, headers } = new Request(c.req.url, { method: "POST", body: "{}", headers: JSON_TYPE });
      const init = { method: "POST", headers, body, duplex: "half" };
      c.req.raw = new Request(new URL("/threads/count", c.req.url), init as RequestInit);
      await next();
    });
    const app = await open(hono, { keys: ["k"] });
    // A public path is passed to the application, and so is one with a key.
    expect((await fetch(`${app.url}/missing`, { headers: { "x-api-key": "k" } })).status).toBe(200);
    expect((await fetch(`${app.url}/docs/missing`)).status).toBe(401);
  });

  test.each([
    ["a host", "/ok", "here/own?"],
    ["dots", "/docs/..", "here"],
    ["encoded dots", "/docs/%2e%2E", "here"],
    ["a backslash", "/docs/..\\own", "here"],
  ])("is not asked for another path than the one that needs no key: %s", async (_, path, host) => {
    const asked: string[] = [];
    const app = await open(
      (request: Request) => {
        asked.push(new URL(request.url).pathname);
        return undefined;
      },
      { keys: ["k"] },
    );
    const status = await new Promise((resolve, reject) => {
      const { port } = app.address;
      httpRequest({ port, path, headers: { host } }, (answer) => resolve(answer.resume().statusCode))
        .on("error", reject)
        .end();
    });
    expect([status, asked]).toEqual(path === "/ok" ? [200, ["/ok"]] : [expect.toSatisfy(isRefusal), []]);
  });

  test("a body above the limit is refused, whoever reads it", async () => {
    const app = await open(async (request: Request) => new Response(String((await request.text()).length)), {
      maxBody: 1_000,
    });
    expect(await (await post(`${app.url}/own`, "x".repeat(500))).text()).toBe("502");
    expect((await post(`${app.url}/own`, "x".repeat(2_000))).status).toBe(413);
  });
});

describe("within the process", () => {
  test("the official client reaches a server by its fetch, streams too, and a stream that is left ends", async () => {
    const app = await serve({ graphs: { echo }, keys: ["k"] });
    const fetch = (...given: ConstructorParameters<typeof Request>) => app.fetch(new Request(...given));
    const client = new Client({ apiUrl: app.url, apiKey: "k", callerOptions: { fetch } });
    const { thread_id } = await client.threads.create();
    const events: string[] = [];
    for await (const { event } of client.runs.stream(thread_id, "echo", {
      input: { text: "tea" },
      streamMode: "custom",
    }))
      events.push(event);
    expect(events).toEqual(["metadata", "custom"]);
    expect(await client.threads.getState(thread_id)).toMatchObject({ values: { log: ["tea"] } });
    const other = new Client({ apiUrl: app.url, apiKey: "x", callerOptions: { fetch, maxRetries: 0 } });
    await expect(other.threads.create()).rejects.toThrow("401");

    const open = await app.fetch(
      new Request(`${app.url}/threads/${thread_id}/stream`, { headers: { "x-api-key": "k" } }),
    );
    expect(open.status).toBe(200);
    await open.body?.cancel();
    const leaving = new AbortController();
    const waiting = app.fetch(
      new Request(`${app.url}/threads/${thread_id}/runs/wait`, {
        method: "POST",
        signal: leaving.signal,
        headers: { "x-api-key": "k", "content-type": "application/json" },
        body: JSON.stringify({ assistant_id: "echo", input: { text: "slow" } }),
      }),
    );
    leaving.abort(new Error("left"));
    await expect(waiting).rejects.toThrow("left");
    const late = new Request(`${app.url}/ok`, { signal: AbortSignal.abort(new Error("before")) });
    await expect(app.fetch(late)).rejects.toThrow("before");
    const stopping = new AbortController();
    const followed = await app.fetch(
      new Request(`${app.url}/threads/${thread_id}/stream`, {
        headers: { "x-api-key": "k" },
        signal: stopping.signal,
      }),
    );
    const rest = followed.text();
    stopping.abort(new Error("left in the middle"));
    await expect(rest).rejects.toThrow("left in the middle");
    const head = await app.fetch(new Request(`${app.url}/ok`, { method: "HEAD" }));
    expect([head.status, await head.text()]).toEqual([200, ""]);
    const large = new Request(`${app.url}/threads`, {
      method: "POST",
      headers: { "x-api-key": "k", "content-type": "application/json" },
      body: JSON.stringify({ metadata: { x: "x".repeat(17_000_000) } }),
    });
    expect((await app.fetch(large)).status).toBe(413);
  });
});

describe("of a configuration file", () => {
  const project = async (app: string, code: string) => {
    const home = await directory();
    await writeFile(join(home, "http.ts"), code);
    const config = join(home, "langgraph.json");
    await writeFile(config, JSON.stringify({ graphs: {}, http: { app } }));
    return config;
  };

  test("is loaded, and answers", async () => {
    const config = await project(
      "./http.ts:app",
      "export const app = (request: Request) => request.url.endsWith('/own') ? new Response('own') : undefined;",
    );
    const app = await serve({ config });
    expect(await (await fetch(`${app.url}/own`)).text()).toBe("own");
    expect((await fetch(`${app.url}/ok`)).status).toBe(200);
  });

  test.each([
    ["./http.ts:other", 'http.app: the export "other" of', "it exports: app"],
    ["./none.ts:app", "http.app: there is no file", "none.ts"],
    [
      "./http.ts:app",
      'http.app: the export "app" of',
      "is no function of requests, nor an object with fetch",
    ],
  ])("%s is refused with the reason", async (name, first, second) => {
    const config = await project(name, "export const app = { get: 1 };");
    const opened = createApp({ config });
    await expect(opened).rejects.toThrow(first);
    await expect(opened).rejects.toThrow(second);
  });
});
