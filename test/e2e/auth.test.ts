import { mkdir, symlink, writeFile } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { join } from "node:path";
import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";
import { describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import type { App, AppOptions } from "../../src/app.ts";
import { createApp, graph, value } from "../../src/index.ts";
import {
  authenticate,
  auths,
  clientsOf,
  connectAs as connect,
  headersOf,
  type Name,
  owned,
} from "./support/auth.ts";
import type { Client } from "./support/clients.ts";
import { latch } from "./support/latches.ts";
import { all, streamOf, transports } from "./support/protocol.ts";
import { directory, serve } from "./support/server.ts";
import { dial } from "./support/sockets.ts";
import { Following } from "./support/wire.ts";

type AuthHandlers = NonNullable<AppOptions["auth"]>;

const who = graph({
  state: { seen: value<unknown>(null) },
  nodes: {
    look: async (_, ctx) => {
      const { configurable } = ctx.config as { configurable: Record<string, unknown> };
      const names = Object.keys(configurable).filter((name) => /user|auth/.test(name));
      return { seen: Object.fromEntries(names.map((name) => [name, configurable[name]])) };
    },
  },
  edges: { start: "look" },
});

const quiet = graph({
  state: { done: value(false) },
  nodes: { work: async () => ({ done: true }) },
  edges: { start: "work" },
});

/** What a client may claim about a user that it is not. */
const spoofed = {
  user_id: "root",
  langgraph_auth_user: { identity: "root", secret: "x" },
  langgraph_auth_user_id: "root",
  langgraph_auth_permissions: ["all"],
};

/** The status of a request with headers that `fetch` does not send, such as the host. */
function statusOf({ address: { port } }: App, headers: Record<string, string>): Promise<unknown> {
  return new Promise((resolve, reject) => {
    httpRequest({ port, path: "/threads/count", method: "POST", headers }, (answer) =>
      resolve(answer.resume().statusCode),
    )
      .on("error", reject)
      .end();
  });
}

describe.each(auths)("the rules of Auth %s", (_, newAuth) => {
  test.each(clientsOf)("%s: a user reaches what is the user's own", async (_line, connectBy) => {
    const { url } = await serve({ graphs: { who }, auth: owned(newAuth()) });
    const [alice, bob] = [connectBy(url, "alice"), connectBy(url, "bob")];
    const thread = await alice.threads.create({ metadata: { owner: "bob" } });
    expect(thread.metadata).toEqual({ owner: "alice" });
    const { thread_id } = thread;
    expect(await alice.runs.wait(thread_id, "who", { input: {} })).toEqual({
      seen: {
        user_id: "alice",
        langgraph_auth_user: {
          identity: "alice",
          display_name: "ALICE",
          permissions: ["write"],
          is_authenticated: true,
          secret: "of alice",
        },
        langgraph_auth_user_id: "alice",
        langgraph_auth_permissions: ["write"],
      },
    });
    await expect(bob.threads.get(thread_id)).rejects.toThrow("HTTP 404");
    await expect(bob.runs.wait(thread_id, "who", { input: {} })).rejects.toThrow("HTTP 404");
    expect(await bob.threads.search()).toEqual([]);
    expect((await alice.threads.search()).map((found) => found.thread_id)).toEqual([thread_id]);
  });
});

test("without a valid token nobody is let in", async () => {
  const { url } = await serve({ auth: owned() });
  const answer = await fetch(`${url}/threads`, { method: "POST" });
  expect([answer.status, await answer.json()]).toEqual([
    401,
    { detail: "Who are you?", code: "auth.required" },
  ]);
  expect((await fetch(`${url}/nowhere`)).status).toBe(401);
  expect((await fetch(`${url}/nowhere`, { headers: headersOf("alice") })).status).toBe(404);
});

describe("who a user is", () => {
  const open = (authenticates: (request: Request) => unknown, options: AppOptions = {}) =>
    serve({ auth: new Auth().authenticate(authenticates as never) as unknown as AuthHandlers, ...options });
  const count = async (url: string, headers: Record<string, string> = {}) => {
    const answer = await fetch(`${url}/threads/count`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: "{}",
    });
    return { status: answer.status, headers: answer.headers, body: (await answer.json()) as unknown };
  };

  test("is said by the request's method, URL and headers", async () => {
    let seen: Request | undefined;
    const { url } = await open((request) => {
      seen = request;
      return "alice";
    });
    await fetch(`${url}/threads/search?a=%20b`, { method: "POST", headers: { "x-two": "1" }, body: "{}" });
    expect([seen?.method, seen?.url, seen?.headers.get("x-two"), seen?.body]).toEqual([
      "POST",
      `${url}/threads/search?a=%20b`,
      "1",
      null,
    ]);
  });

  test("is asked anew for each request", async () => {
    const known = new Set(["a"]);
    const { url } = await open((request) => {
      if (!known.has(request.headers.get("authorization") ?? "")) throw new HTTPException(401);
      return "alice";
    });
    expect((await count(url, { authorization: "a" })).status).toBe(200);
    expect((await count(url, { authorization: "b" })).status).toBe(401);
    known.delete("a");
    expect((await count(url, { authorization: "a" })).status).toBe(401);
  });

  test("may be refused with a status, a message and headers; what else is thrown, only the log knows", async () => {
    const { url, complaints } = await open((request) => {
      const how = request.headers.get("x-how");
      if (how === "fails") throw new TypeError("password of the database: hunter2");
      throw new HTTPException(how === "banned" ? 403 : 401, {
        message: "Go away",
        headers: { "www-authenticate": 'Bearer realm="x"' },
      });
    });
    const unknown = await count(url);
    expect([unknown.status, unknown.body]).toEqual([401, { detail: "Go away", code: "auth.required" }]);
    expect(unknown.headers.get("www-authenticate")).toBe('Bearer realm="x"');
    expect(await count(url, { "x-how": "banned" })).toMatchObject({
      status: 403,
      body: { code: "auth.forbidden" },
    });
    const failed = await count(url, { "x-how": "fails" });
    expect([failed.status, JSON.stringify(failed.body)]).toEqual([
      500,
      expect.not.stringContaining("hunter2"),
    ]);
    expect(complaints.filter((line) => line.includes("hunter2"))).toHaveLength(1);
    const socket = await dial(`${url}/inspect`);
    expect(await socket.closed).toEqual({ code: 4401, reason: "Go away" });
  });

  test("is not told by the cookies of a page of another origin, unless the configuration names that origin", async () => {
    const { url } = await open(
      (request) => {
        if (request.headers.get("cookie") !== "session=alice") throw new HTTPException(401);
        return "alice";
      },
      { origins: ["https://app.example"] },
    );
    const cookie = "session=alice";
    expect((await count(url, { cookie })).status).toBe(200);
    expect((await count(url, { cookie, origin: url })).status).toBe(200);
    expect((await count(url, { cookie, origin: "https://app.example" })).status).toBe(200);
    for (const headers of [
      { cookie, origin: "https://evil.example" },
      { cookie, origin: "null" },
      { cookie, "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" },
    ])
      expect((await count(url, headers)).status, JSON.stringify(headers)).toBe(401);
    const refused = new WebSocket(`${url.replace("http", "ws")}/inspect`, {
      headers: { cookie, origin: "https://evil.example" },
    });
    expect(await new Promise((resolve) => refused.on("error", resolve))).toMatchObject({
      message: expect.stringContaining("403") as unknown,
    });
  });

  test("is found out while a socket is open already: what comes before that is answered afterwards", async () => {
    const { passed, pass } = latch();
    let isSlow = false;
    const { url } = await open(async () => {
      if (isSlow) await passed;
      return "alice";
    });
    const created = await fetch(`${url}/threads`, { method: "POST", body: "{}" });
    const { thread_id } = (await created.json()) as { thread_id: string };
    isSlow = true;
    const socket = await dial(`${url}/threads/${thread_id}/stream`);
    const flooding = await dial(`${url}/threads/${thread_id}/stream`);
    for (let id = 0; id < 3; id++) socket.send({ id, type: "cancel" });
    for (let id = 0; id < 100; id++) flooding.send({ id, type: "cancel" });
    expect((await flooding.closed).reason).toContain("Too many");
    expect(socket.answers).toEqual([]);
    pass();
    await socket.until(({ answers }) => answers.length === 3);
    expect(socket.answers.map(({ type, id }) => [type, id])).toEqual([0, 1, 2].map((id) => ["ack", id]));
    expect((await socket.ask({ id: 3, type: "cancel" })).type).toBe("ack");
  });

  test("is LangGraph Studio's own on a server for this machine that lets Studio in", async () => {
    const auth = () =>
      new Auth()
        .authenticate(authenticate)
        .on("*", ({ user }) => ({ owner: user.identity })) as unknown as AuthHandlers;
    const studio = { "x-auth-scheme": "langsmith" };
    const dev = await serve({ auth: auth(), studio: true });
    expect((await count(dev.url, studio)).status).toBe(200);
    expect((await count(dev.url)).status).toBe(401);
    // The handlers decide about this user as about any other.
    const { thread_id } = await connect(dev.url, "alice").threads.create();
    expect((await fetch(`${dev.url}/threads/${thread_id}`, { headers: studio })).status).toBe(404);
    for (const headers of [{ host: "evil.example" }, { origin: "https://evil.example" }])
      expect(await statusOf(dev, { ...studio, ...headers }), JSON.stringify(headers)).toBe(401);
    expect((await count((await serve({ auth: auth() })).url, studio)).status).toBe(401);
  });

  test("is nobody for a request with an API key: it is the operator's, for which no rule is asked", async () => {
    const app = await serve({ graphs: { who }, auth: owned(), keys: ["sesame"] });
    const { url } = app;
    const alice = connect(url, "alice");
    const { thread_id } = await alice.threads.create();
    const operator = { "x-api-key": "sesame" };
    expect((await fetch(`${url}/threads/${thread_id}`, { headers: operator })).status).toBe(200);
    for (const path of ["/metrics", "/webhooks/deliveries"]) {
      expect((await fetch(`${url}${path}`, { headers: operator })).status).toBe(200);
      expect((await fetch(`${url}${path}`, { headers: headersOf("alice") })).status).toBe(403);
    }
    // Its runs have no user, whatever the client claims.
    const answer = await fetch(`${url}/runs/wait`, {
      method: "POST",
      headers: { ...operator, "content-type": "application/json" },
      body: JSON.stringify({ assistant_id: "who", input: {}, config: { configurable: spoofed } }),
    });
    expect(await answer.json()).toEqual({ seen: { user_id: "root" } });
    expect((await count(url, { "x-api-key": "wrong" })).status).toBe(401);
  });

  test("is nobody's word but the server's: not of a request, an assistant or a cron", async () => {
    const { url } = await serve({ graphs: { who }, auth: owned() });
    const bob = connect(url, "bob");
    const seen = async (assistant: string, configurable?: object) => {
      const config = configurable && { configurable: configurable as Record<string, unknown> };
      const { seen } = (await bob.runs.wait(null, assistant, { input: {}, ...(config && { config }) })) as {
        seen: Record<string, unknown>;
      };
      return [
        seen["langgraph_auth_user_id"],
        seen["langgraph_auth_permissions"],
        (seen["langgraph_auth_user"] as { identity: unknown }).identity,
        seen["user_id"],
      ];
    };
    expect(await seen("who", spoofed)).toEqual(["bob", ["write"], "bob", "root"]);
    const { assistant_id } = await bob.assistants.create({
      graphId: "who",
      config: { configurable: spoofed },
    });
    expect(await seen(assistant_id)).toEqual(["bob", ["write"], "bob", "root"]);
    const cron = await bob.crons.create("who", { schedule: "0 0 1 1 *", config: { configurable: spoofed } });
    expect(JSON.stringify(cron.payload)).not.toContain("langgraph_auth");
  });

  test("is shown with all its fields to that user alone", async () => {
    const auth = new Auth().authenticate(authenticate) as unknown as AuthHandlers;
    const { url } = await serve({ graphs: { quiet }, auth });
    const [alice, bob] = [connect(url, "alice"), connect(url, "bob")];
    const { thread_id } = await alice.threads.create();
    const inspector = await dial(`${url}/inspect?thread_id=${thread_id}`, { headers: headersOf("bob") });
    const streamed: unknown[] = [];
    for await (const event of alice.runs.stream(thread_id, "quiet", {
      input: {},
      streamMode: ["checkpoints", "debug", "tasks"],
    }))
      streamed.push(event);
    expect(JSON.stringify(streamed)).toContain("thread_id");
    expect(JSON.stringify(streamed)).not.toContain("of alice");
    const of = async (client: Client) => JSON.stringify(await client.runs.list(thread_id));
    expect(await of(alice)).toContain("of alice");
    expect(await of(bob)).not.toContain("of alice");
    expect(await of(bob)).toContain("ALICE");
    expect(JSON.stringify(await bob.threads.getHistory(thread_id))).not.toContain("of alice");
    expect(JSON.stringify(await bob.threads.get(thread_id))).not.toContain("of alice");
    await expect.poll(() => inspector.texts.join("")).toContain("quiet");
    expect(inspector.texts.join("")).not.toContain("of alice");
    const actors = await fetch(`${url}/inspect/actors?thread_id=${thread_id}`, { headers: headersOf("bob") });
    expect(await actors.text()).not.toContain("of alice");
  });

  test("has idempotency keys of its own", async () => {
    const { url } = await serve({ graphs: { who }, auth: owned() });
    const start = async (name: Name) => {
      const answer = await fetch(`${url}/runs`, {
        method: "POST",
        headers: { ...headersOf(name), "content-type": "application/json", "idempotency-key": "one" },
        body: JSON.stringify({ assistant_id: "who", input: {}, on_completion: "keep" }),
      });
      expect(answer.status).toBe(200);
      return ((await answer.json()) as { run_id: string }).run_id;
    };
    const [first, again, other] = [await start("alice"), await start("alice"), await start("bob")];
    expect(again).toBe(first);
    expect(other).not.toBe(first);
  });
});

describe("rules that fail", () => {
  const open = async (handler: (call: { value: Record<string, unknown> }) => unknown) => {
    const auth = new Auth().authenticate(authenticate).on("*", handler as never) as unknown as AuthHandlers;
    const server = await serve({ graphs: { who }, auth });
    const create = async () => {
      const headers = { ...headersOf("alice"), "content-type": "application/json" };
      const answer = await fetch(`${server.url}/threads`, { method: "POST", headers, body: "{}" });
      return [answer.status, await answer.json()];
    };
    return { ...server, create };
  };

  test("with an HTTPException are its status and message", async () => {
    const { create, complaints } = await open(() => {
      throw new HTTPException(402, { message: "Pay first" });
    });
    expect(await create()).toEqual([402, { detail: "Pay first", code: "auth.refused" }]);
    expect(complaints).toEqual([]);
  });

  test.each<
    readonly [what: string, handler: (call: { value: Record<string, unknown> }) => unknown, cause: string]
  >([
    [
      "with an error of their own",
      () => {
        throw new Error("hunter2");
      },
      "hunter2",
    ],
    ["with a filter of nothing", () => ({ owner: undefined }), "owner"],
    ["with an operator that there is not", () => ({ owner: { $ne: "alice" } }), "$ne"],
    ["with an answer that is no filter", () => "yes", "filter"],
    [
      "with a value that is none",
      ({ value: asked }) => {
        asked["metadata"] = "mine";
      },
      "metadata",
    ],
  ])("%s are a 500, whose cause only the log has", async (_, handler, cause) => {
    const { create, complaints } = await open(handler);
    const [status, body] = await create();
    expect([status, JSON.stringify(body)]).toEqual([500, expect.not.stringContaining(cause)]);
    expect(complaints.join("")).toContain(cause);
  });
});

describe("protocol v2", () => {
  test.each(transports)("over %s, a user's runs and events are the user's own", async (transport) => {
    const { url } = await serve({ graphs: { who }, auth: owned() });
    const [alice, bob] = [connect(url, "alice"), connect(url, "bob")];
    const tokenOf = async (name: Name) => {
      const answer = await fetch(`${url}/auth/token`, { method: "POST", headers: headersOf(name) });
      return ((await answer.json()) as { token: string }).token;
    };
    const [alices, bobs] = [await tokenOf("alice"), await tokenOf("bob")];
    // Browsers send no headers with a WebSocket.
    const open = (client: Client, token: string, id?: string) =>
      streamOf(url, transport, "who", id, transport === "sse" ? client : undefined, token);
    const { thread, threadId } = open(alice, alices);
    const values = all(thread.values);
    await thread.run.start({ input: {} });
    expect(JSON.stringify((await values).at(-1))).toContain("of alice");
    expect((await alice.threads.get(threadId)).metadata).toMatchObject({ owner: "alice" });

    const foreign = open(bob, bobs, threadId).thread;
    await expect(foreign.run.start({ input: {} })).rejects.toThrow("not found");
    expect(await alice.runs.list(threadId)).toHaveLength(1);
  });

  test.each<[string, (alice: Client, thread: string) => readonly (() => Promise<unknown>)[]]>([
    ["has been deleted in the meantime", (alice, thread) => [() => alice.threads.delete(thread)]],
    [
      "has been answered and then deleted in the meantime",
      (alice, thread) => [
        () => alice.runs.wait(thread, "asking", { command: { resume: "other" } }),
        async () => undefined,
        () => alice.threads.delete(thread),
      ],
    ],
  ])("an input to a waiting thread that %s makes a thread of its own", async (_, interludes) => {
    // The rules are asked right before each start of a run, so what they await comes before the start.
    let steps: (() => Promise<unknown>)[] = [];
    const auth = owned().on("threads:create_run", async ({ value: { metadata }, user }) => {
      Object.assign(metadata ?? {}, { owner: user.identity });
      await steps.shift()?.();
      return { owner: user.identity };
    });
    const asking = graph({
      state: { said: value("") },
      nodes: {
        ask: async ({ said }, ctx) => ({ said: said === "" ? await ctx.interrupt<string>("?") : said }),
      },
      edges: { start: "ask" },
    });
    const { url } = await serve({ graphs: { asking }, auth: auth as unknown as AuthHandlers });
    const alice = connect(url, "alice");
    const { thread_id } = await alice.threads.create();
    await alice.runs.wait(thread_id, "asking", { input: {} });
    steps = [...interludes(alice, thread_id)];
    const params = { assistant_id: "asking", input: { said: "mine" } };
    const answer = await fetch(`${url}/threads/${thread_id}/commands`, {
      method: "POST",
      headers: { ...headersOf("alice"), "content-type": "application/json" },
      body: JSON.stringify({ id: 1, method: "run.start", params }),
    });
    expect(await answer.json()).toMatchObject({ type: "success" });
    const [run] = await alice.runs.list(thread_id);
    await alice.runs.join(thread_id, run?.run_id ?? "");
    expect((await alice.threads.getState(thread_id)).values).toEqual({ said: "mine" });
    expect(steps).toEqual([]);
  });
});

test("a user who follows a thread that is not there yet sees the runs that make it, and not those of another's", async () => {
  const { url } = await serve({ graphs: { who }, auth: owned() });
  const thread = crypto.randomUUID();
  const ask = (name: Name, path: string, body: object) =>
    fetch(`${url}/threads/${thread}/${path}`, {
      method: "POST",
      headers: { ...headersOf(name), "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  const streams = await Promise.all(
    (["alice", "bob"] as const).map(
      async (name) => new Following(await ask(name, "stream/events", { channels: ["values"] })),
    ),
  );
  const [alices, bobs] = streams;
  // Both readers have begun.
  for (const stream of streams) await stream.until(":");
  await ask("alice", "commands", { id: 1, method: "run.start", params: { assistant_id: "who", input: {} } });
  await alices?.until("of alice");
  await connect(url, "alice").threads.get(thread);
  expect(bobs?.text).not.toContain("data:");
});

describe("in a project", () => {
  /** A project with packages of its own: another major version of the SDK than the server's. */
  async function project(files: Readonly<Record<string, string | object>>, config: object): Promise<string> {
    const home = await directory();
    await mkdir(join(home, "node_modules", "@langchain"), { recursive: true });
    const packages = join(import.meta.dirname, "..", "..", "node_modules");
    await symlink(
      join(packages, "langgraph-sdk-2"),
      join(home, "node_modules", "@langchain", "langgraph-sdk"),
    );
    await symlink(join(packages, "hono"), join(home, "node_modules", "hono"));
    for (const [name, content] of Object.entries(files)) await writeFile(join(home, name), content as string);
    await writeFile(join(home, "langgraph.json"), JSON.stringify({ graphs: {}, ...config }));
    return join(home, "langgraph.json");
  }
  const source = `import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";
    export const auth: Auth = new Auth().authenticate(async (request: Request) => {
      const name = request.headers.get("authorization");
      if (name === null) throw new HTTPException(401, { message: "Who are you?" });
      return { identity: name, permissions: ["p"] };
    });
    auth.on("threads", ({ value, user }) => {
      if ("metadata" in value) value.metadata = { ...value.metadata, owner: user.identity };
      return { owner: user.identity };
    });`;

  test("with auth in its langgraph.json the rules are served, by its own copy of the package", async () => {
    const config = await project(
      { "auth.ts": source },
      { auth: { path: "./auth.ts:auth", disable_studio_auth: true } },
    );
    const { url } = await serve({ config, studio: true });
    const ask = (authorization: string | undefined, path: string, method = "GET", more: object = {}) =>
      fetch(`${url}${path}`, {
        method,
        headers: { ...(authorization !== undefined && { authorization }), ...more },
        ...(method === "POST" && { body: "{}" }),
      });
    expect((await ask(undefined, "/threads", "POST")).status).toBe(401);
    // As `disable_studio_auth` requires.
    expect((await ask(undefined, "/threads", "POST", { "x-auth-scheme": "langsmith" })).status).toBe(401);
    const made = (await (await ask("ann", "/threads", "POST")).json()) as { thread_id: string };
    expect(made).toMatchObject({ metadata: { owner: "ann" } });
    expect((await ask("ann", `/threads/${made.thread_id}`)).status).toBe(200);
    expect((await ask("ben", `/threads/${made.thread_id}`)).status).toBe(404);
  });

  test("its own HTTP application comes after authentication, and finds the user as on LangGraph's server", async () => {
    const app = `import { Hono } from "hono";
      export const app = new Hono().get("/me", (c) => c.json(c.get("auth")));`;
    const config = await project(
      { "auth.ts": source, "http.ts": app },
      { auth: { path: "./auth.ts:auth" }, http: { app: "./http.ts:app" } },
    );
    const { url } = await serve({ config });
    expect((await fetch(`${url}/me`)).status).toBe(401);
    const answer = await fetch(`${url}/me`, { headers: { authorization: "ann" } });
    expect(await answer.json()).toEqual({
      user: { identity: "ann", display_name: "ann", permissions: ["p"], is_authenticated: true },
      scopes: ["p"],
    });
  });

  test.each([
    ["./auth.ts:other", 'auth.path: the export "other" of'],
    ["./none.ts:auth", "auth.path: there is no file"],
    [
      "./auth.ts:plain",
      "is no Auth of @langchain/langgraph-sdk/auth with an authenticate handler; it exports: auth, empty, plain",
    ],
    ["./auth.ts:empty", "is no Auth of @langchain/langgraph-sdk/auth with an authenticate handler"],
  ])("%s is refused, with the reason", async (path, reason) => {
    const more = `${source} export const plain = { authenticate: () => "root" }; export const empty = new Auth();`;
    const config = await project({ "auth.ts": more }, { auth: { path } });
    await expect(createApp({ config })).rejects.toThrow(reason);
  });
});
