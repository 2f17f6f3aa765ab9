import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { graph, list, value } from "../../src/index.ts";
import { socketPaths } from "../../src/websocket/upgrade.ts";
import { headersOf, type Name, owned } from "./support/auth.ts";
import { gated } from "./support/latches.ts";
import { type AtEnd, directory, serve } from "./support/server.ts";
import { dial, type Dialed } from "./support/sockets.ts";

/**
 * Requests every route and every socket of the server as a user, for another user's resources. A new one without a case
 * here fails.
 */

/** Contained in everything that Alice creates. No answer to another user may contain it. */
const SECRET = "of-alice-alone";

const noted = graph({
  state: { text: value(""), log: list<string>() },
  nodes: {
    say: async ({ text }, ctx) => {
      ctx.emit({ said: text });
      return { log: [text] };
    },
    ask: async ({ text }, ctx) => ({ log: [String(await ctx.interrupt(text))] }),
  },
  edges: { start: "say", say: "ask" },
});

/** The ids of Alice's resources, or ids without a resource. */
interface Ids {
  readonly thread_id: string;
  readonly run_id: string;
  readonly checkpoint_id: string;
  /** A thread with a run in progress, and that run. */
  readonly busy: string;
  readonly busy_run: string;
  /** A run without a thread. */
  readonly lone_run: string;
  readonly lone_thread: string;
  readonly assistant_id: string;
  readonly cron_id: string;
  readonly namespace: readonly string[];
}

interface Case {
  readonly query?: (ids: Ids) => string;
  /** Replaces ids in the path. */
  readonly path?: (ids: Ids) => { readonly [name: string]: string };
  readonly body?: (ids: Ids) => unknown;
  /** The status that another user gets; `own`: the owner's. */
  readonly foreign: number | "own";
  /** The expected body; otherwise only the absence of the secret is checked. */
  readonly shows?: unknown;
  /**
   * The result of the same request for ids without a resource; default: the same answer. `other`: it creates something.
   */
  readonly absent?: "other";
  /** The status that the owner gets; default: 200. */
  readonly own?: number;
}

const input = { text: SECRET };
const run = { assistant_id: "noted", input: { text: "mine" } };
const schedule = "0 0 1 1 *";
const onThread = (foreign: number, body?: unknown): Case => ({
  foreign,
  ...(body !== undefined && { body: () => body }),
});
const onLoneRun: Case = { path: ({ lone_run }) => ({ run_id: lone_run }), foreign: 404 };
const onAssistant = (body?: unknown): Case => onThread(404, body);
const started = (more: object = {}): Case => ({
  foreign: 404,
  body: () => ({ ...run, multitask_strategy: "rollback", ...more }),
});
const made = (more: object = {}): Case => ({ ...started(more), absent: "other" });
const everybody: Case = { foreign: 200 };
/** The pages are served only where they have been built. */
const page: Case = { foreign: "own" };
const operators: Case = { foreign: 403, own: 403 };
const command = (method: string, params: object = {}): Case => ({
  foreign: 200,
  body: () => ({ id: 1, method, params }),
});

/** By method and path; a route may have several cases. */
const cases: { readonly [operation: string]: Case | readonly Case[] } = {
  "POST /threads": [
    { foreign: 200, body: () => ({}), absent: "other" },
    { foreign: 409, own: 409, body: ({ thread_id }) => ({ thread_id }), absent: "other" },
    { foreign: 409, body: ({ thread_id }) => ({ thread_id, if_exists: "do_nothing" }), absent: "other" },
  ],
  "GET /threads/{thread_id}": onThread(404),
  "PATCH /threads/{thread_id}": onThread(404, { metadata: { taken: true } }),
  "DELETE /threads/{thread_id}": { ...onThread(404), own: 204 },
  "POST /threads/search": [
    { foreign: 200, body: () => ({}), shows: [] },
    { foreign: 200, body: ({ thread_id }) => ({ ids: [thread_id] }), shows: [] },
    { foreign: 200, body: () => ({ metadata: { note: SECRET, owner: "alice" } }), shows: [] },
    { foreign: 200, body: () => ({ values: { text: SECRET } }), shows: [] },
  ],
  "POST /threads/count": [
    { foreign: 200, body: () => ({}), shows: 0 },
    { foreign: 200, body: () => ({ metadata: { owner: "alice" } }), shows: 0 },
    { foreign: 200, body: () => ({ values: { text: SECRET } }), shows: 0 },
  ],
  "POST /threads/prune": [
    { foreign: 200, body: ({ thread_id }) => ({ thread_ids: [thread_id] }), shows: { pruned_count: 0 } },
    {
      foreign: 200,
      body: ({ thread_id }) => ({ thread_ids: [thread_id], strategy: "keep_latest" }),
      shows: { pruned_count: 0 },
    },
  ],
  "POST /threads/{thread_id}/copy": onThread(404, {}),
  "GET /threads/{thread_id}/storage": onThread(404),
  "GET /threads/{thread_id}/state": onThread(404),
  "POST /threads/{thread_id}/state": onThread(404, { values: { text: "taken" } }),
  "GET /threads/{thread_id}/state/{checkpoint_id}": onThread(404),
  "POST /threads/{thread_id}/state/checkpoint": {
    foreign: 404,
    body: ({ checkpoint_id }) => ({ checkpoint: { checkpoint_id } }),
  },
  "GET /threads/{thread_id}/interrupts": onThread(404),
  "GET /threads/{thread_id}/events/possible": onThread(404),
  // The graph of the owner's thread is not a machine.
  "POST /threads/{thread_id}/events": { ...onThread(404, { type: "APPROVE" }), own: 422 },
  "GET /threads/{thread_id}/history": onThread(404),
  "POST /threads/{thread_id}/history": onThread(404, { limit: 10 }),
  "POST /threads/{thread_id}/runs": [
    started(),
    made({ if_not_exists: "create" }),
    started({ command: { resume: "yes" }, input: undefined }),
  ],
  "GET /threads/{thread_id}/runs": onThread(404),
  "POST /runs/search": [
    { foreign: 200, body: () => ({}), shows: [] },
    { foreign: 200, body: ({ thread_id }) => ({ thread_id }), shows: [] },
    { foreign: 200, body: () => ({ status: "running" }), shows: [] },
  ],
  "POST /threads/{thread_id}/runs/stream": [started(), made({ if_not_exists: "create" })],
  "POST /threads/{thread_id}/runs/wait": [started(), made({ if_not_exists: "create" })],
  "GET /threads/{thread_id}/runs/{run_id}": onThread(404),
  "DELETE /threads/{thread_id}/runs/{run_id}": { ...onThread(404), own: 204 },
  "GET /threads/{thread_id}/runs/{run_id}/join": onThread(404),
  "GET /threads/{thread_id}/runs/{run_id}/stream": onThread(404),
  "POST /threads/{thread_id}/runs/{run_id}/cancel": {
    path: ({ busy, busy_run }) => ({ thread_id: busy, run_id: busy_run }),
    foreign: 404,
    own: 202,
  },
  "POST /threads/{thread_id}/runs/cancel": {
    path: ({ busy }) => ({ thread_id: busy }),
    foreign: 404,
    body: () => ({}),
    own: 202,
  },
  "POST /runs/cancel": [
    { foreign: 404, body: ({ busy, busy_run }) => ({ thread_id: busy, run_ids: [busy_run] }), own: 204 },
    { foreign: 204, body: () => ({ status: "all" }), own: 204 },
    { foreign: 204, body: () => ({ status: "running" }), own: 204 },
  ],
  "POST /runs": { foreign: 404, body: ({ assistant_id }) => ({ ...run, assistant_id }) },
  "POST /runs/stream": { foreign: 404, body: ({ assistant_id }) => ({ ...run, assistant_id }) },
  "POST /runs/wait": { foreign: 404, body: ({ assistant_id }) => ({ ...run, assistant_id }) },
  "POST /runs/batch": { foreign: 404, body: ({ assistant_id }) => [{ ...run, assistant_id }] },
  "GET /runs/{run_id}/stream": onLoneRun,
  "GET /runs/{run_id}/join": onLoneRun,
  "GET /threads/{thread_id}/stream": onThread(404),
  "POST /threads/{thread_id}/stream": { foreign: 200, body: () => ({ channels: ["values"] }) },
  "POST /threads/{thread_id}/stream/events": { foreign: 200, body: () => ({ channels: ["values"] }) },
  "POST /threads/{thread_id}/commands": [
    { ...command("run.start", run), absent: "other" },
    command("input.respond", { interrupt_id: "none", response: 1 }),
    command("state.get"),
    command("state.listCheckpoints"),
    command("agent.getTree"),
    {
      foreign: 200,
      body: ({ checkpoint_id }) => ({ id: 1, method: "state.fork", params: { checkpoint_id } }),
    },
  ],
  "POST /runs/crons": { foreign: 404, body: ({ assistant_id }) => ({ assistant_id, schedule, input }) },
  "POST /threads/{thread_id}/runs/crons": onThread(404, { assistant_id: "noted", schedule, input }),
  "POST /runs/crons/search": [
    { foreign: 200, body: () => ({}), shows: [] },
    { foreign: 200, body: ({ thread_id }) => ({ thread_id }), shows: [] },
    { foreign: 200, body: () => ({ metadata: { owner: "alice" } }), shows: [] },
  ],
  "POST /runs/crons/count": [
    { foreign: 200, body: () => ({}), shows: 0 },
    { foreign: 200, body: ({ assistant_id }) => ({ assistant_id }), shows: 0 },
  ],
  "POST /runs/crons/preview": { foreign: 200, body: () => ({ schedule }) },
  "GET /runs/crons/{cron_id}": onThread(404),
  "PATCH /runs/crons/{cron_id}": onThread(404, { enabled: false }),
  "DELETE /runs/crons/{cron_id}": { ...onThread(404), own: 204 },
  "POST /assistants": [
    { foreign: 200, body: () => ({ graph_id: "noted" }), absent: "other" },
    {
      foreign: 409,
      own: 409,
      body: ({ assistant_id }) => ({ assistant_id, graph_id: "noted" }),
      absent: "other",
    },
    {
      foreign: 409,
      body: ({ assistant_id }) => ({ assistant_id, graph_id: "noted", if_exists: "do_nothing" }),
      absent: "other",
    },
  ],
  "GET /assistants/{assistant_id}": onAssistant(),
  "PATCH /assistants/{assistant_id}": onAssistant({ name: "taken" }),
  "DELETE /assistants/{assistant_id}": { ...onAssistant(), own: 204 },
  "POST /assistants/search": { foreign: 200, body: () => ({}), shows: [] },
  "POST /assistants/count": { foreign: 200, body: () => ({}), shows: 0 },
  "POST /assistants/{assistant_id}/versions": onAssistant({}),
  "POST /assistants/{assistant_id}/latest": onAssistant({ version: 1 }),
  "GET /assistants/{assistant_id}/graph": onAssistant(),
  "GET /assistants/{assistant_id}/schemas": onAssistant(),
  "GET /assistants/{assistant_id}/subgraphs": onAssistant(),
  "GET /assistants/{assistant_id}/subgraphs/{namespace}": {
    ...onAssistant(),
    path: () => ({ namespace: "none" }),
  },
  "POST /auth/token": { ...everybody, absent: "other" },
  "PUT /store/items": [
    {
      foreign: 404,
      own: 403,
      body: ({ namespace }) => ({ namespace, key: "k", value: { owner: "bob" } }),
      absent: "other",
    },
    {
      foreign: 403,
      own: 204,
      body: ({ namespace }) => ({ namespace, key: "k", value: { owner: "alice", text: "taken" } }),
    },
  ],
  "GET /store/items": {
    foreign: 200,
    query: ({ namespace }) => `namespace=${namespace.join(".")}&key=k`,
    shows: null,
  },
  "DELETE /store/items": { foreign: 404, own: 204, body: ({ namespace }) => ({ namespace, key: "k" }) },
  "POST /store/items/search": [
    { foreign: 200, body: () => ({ namespace_prefix: [] }), shows: { items: [] } },
    {
      foreign: 200,
      body: ({ namespace }) => ({ namespace_prefix: namespace, filter: { owner: "alice" } }),
      shows: { items: [] },
    },
  ],
  "POST /store/namespaces": { foreign: 200, body: () => ({}), shows: { namespaces: [] } },
  "GET /webhooks/deliveries": operators,
  "POST /webhooks/deliveries/{delivery_id}/retry": { ...operators, path: () => ({ delivery_id: "none" }) },
  "DELETE /webhooks/deliveries/{delivery_id}": { ...operators, path: () => ({ delivery_id: "none" }) },
  "GET /metrics": operators,
  "GET /metrics/history": operators,
  "GET /inspect/machines": everybody,
  "GET /inspect/machines/{machine}": [
    { ...everybody, path: () => ({ machine: "thread" }) },
    // Here, the default assistant of this graph belongs to nobody.
    { foreign: 404, own: 404, path: () => ({ machine: "graph:noted" }) },
  ],
  "GET /inspect/actors": [
    { foreign: 200, shows: { actors: [] } },
    { foreign: 404, query: ({ thread_id }) => `thread_id=${thread_id}` },
    { foreign: 404, query: ({ busy }) => `thread_id=${busy}` },
    { foreign: 404, query: ({ busy_run }) => `run_id=${busy_run}` },
  ],
  "POST /ui/{agent}": { ...everybody, path: () => ({ agent: "noted" }), body: () => ({ name: "card" }) },
  "GET /ui/{agent}/{file}": { foreign: 404, own: 404, path: () => ({ agent: "noted", file: "none.js" }) },
  "GET /ok": everybody,
  "GET /live": everybody,
  "GET /ready": everybody,
  "GET /info": everybody,
  "GET /": everybody,
  "GET /dashboard/{file}": { foreign: 404, own: 404, path: () => ({ file: "none.js" }) },
  "GET /dashboard/settings": everybody,
  "GET /inspector": page,
  "GET /inspector/{file}": { foreign: 404, own: 404, path: () => ({ file: "none.js" }) },
  "GET /openapi.json": everybody,
  "GET /docs": page,
  "GET /docs/{file}": { foreign: 404, own: 404, path: () => ({ file: "none.js" }) },
};

const cased = Object.entries(cases).flatMap(([operation, of]) =>
  [of]
    .flat()
    .map((one, n): [name: string, operation: string, one: Case] => [`${operation} ${n + 1}`, operation, one]),
);

/** A server with UI components, so that it has all routes. */
async function open(atEnd: AtEnd = onTestFinished) {
  const home = await directory(atEnd);
  const config = join(home, "langgraph.json");
  await writeFile(join(home, "ui.tsx"), "export default {};");
  await writeFile(config, JSON.stringify({ graphs: {}, ui: { noted: "./ui.tsx" } }));
  const gate = gated();
  const server = await serve({ config, auth: owned(), graphs: { noted, held: gate.held } }, { atEnd });
  return { server, gate };
}

/** Sends a request as a user. A stream is closed as soon as it has begun. */
async function ask(
  url: string,
  name: Name,
  method: string,
  path: string,
  body?: unknown,
): Promise<{ status: number; body: unknown }> {
  const left = new AbortController();
  const answer = await fetch(`${url}${path}`, {
    method,
    headers: { ...headersOf(name), ...(body !== undefined && { "content-type": "application/json" }) },
    signal: left.signal,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const { status, headers } = answer;
  if (headers.get("content-type")?.startsWith("text/event-stream") === true) {
    left.abort();
    return { status, body: undefined };
  }
  const text = await answer.text();
  const isJson = headers.get("content-type")?.startsWith("application/json") === true && text !== "";
  return { status, body: isJson ? (JSON.parse(text) as unknown) : text };
}

/** Creates resources of Alice, each with the secret in it. */
async function possessions({ server: { url }, gate }: Awaited<ReturnType<typeof open>>): Promise<Ids> {
  const as = async <T = Record<string, string>>(method: string, path: string, body?: unknown): Promise<T> => {
    const { status, body: found } = await ask(url, "alice", method, path, body);
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(found)}`);
    return found as T;
  };
  const metadata = { note: SECRET };
  const { assistant_id = "" } = await as("POST", "/assistants", {
    graph_id: "noted",
    name: SECRET,
    metadata,
  });
  const { thread_id = "" } = await as("POST", "/threads", { metadata });
  await as("POST", `/threads/${thread_id}/runs/wait`, { assistant_id, input, metadata });
  const [{ run_id = "" } = {}] = await as<Record<string, string>[]>("GET", `/threads/${thread_id}/runs`);
  const { checkpoint } = await as<{ checkpoint: { checkpoint_id: string } }>(
    "GET",
    `/threads/${thread_id}/state`,
  );
  const { thread_id: busy = "" } = await as("POST", "/threads", { metadata });
  const { run_id: busy_run = "" } = await as("POST", `/threads/${busy}/runs`, {
    assistant_id: "held",
    input: { name: SECRET },
  });
  const lone = await as("POST", "/runs", { assistant_id, input, metadata, on_completion: "keep" });
  await as("GET", `/runs/${lone["run_id"]}/join`);
  const { cron_id = "" } = await as("POST", "/runs/crons", { assistant_id, schedule, input, metadata });
  await as("POST", `/threads/${thread_id}/runs/crons`, { assistant_id, schedule, input, metadata });
  const namespace = ["notes"];
  await as("PUT", "/store/items", { namespace, key: "k", value: { owner: "alice", text: SECRET } });
  await gate.waits(SECRET);
  return {
    thread_id,
    run_id,
    checkpoint_id: checkpoint.checkpoint_id,
    busy,
    busy_run,
    lone_run: lone["run_id"] ?? "",
    lone_thread: lone["thread_id"] ?? "",
    assistant_id,
    cron_id,
    namespace,
  };
}

/** Ids without a resource. */
const nothing = (): Ids => {
  const names = [
    "thread_id",
    "run_id",
    "checkpoint_id",
    "busy",
    "busy_run",
    "lone_run",
    "lone_thread",
    "assistant_id",
    "cron_id",
  ];
  const ids = Object.fromEntries(names.map((name) => [name, crypto.randomUUID()]));
  return { ...(ids as unknown as Omit<Ids, "namespace">), namespace: ["void"] };
};

/** All resources of Alice, as she sees them. */
async function possessed(url: string, ids: Ids): Promise<unknown> {
  const { thread_id, run_id, busy, busy_run, lone_run, lone_thread, assistant_id } = ids;
  const reads: readonly (readonly [method: string, path: string, body?: unknown])[] = [
    ["GET", `/threads/${thread_id}`],
    ["GET", `/threads/${thread_id}/state`],
    ["GET", `/threads/${thread_id}/runs`],
    ["GET", `/threads/${thread_id}/runs/${run_id}`],
    ["GET", `/threads/${busy}/runs/${busy_run}`],
    ["GET", `/threads/${lone_thread}/runs/${lone_run}`],
    ["GET", `/assistants/${assistant_id}`],
    ["POST", `/assistants/${assistant_id}/versions`, {}],
    ["POST", "/runs/crons/search", {}],
    ["POST", "/store/items/search", { namespace_prefix: [] }],
    ["POST", "/threads/count", {}],
    ["POST", "/assistants/count", {}],
  ];
  return Promise.all(reads.map(([method, path, body]) => ask(url, "alice", method, path, body)));
}

/** The request of a case about these ids. */
function requestOf(
  operation: string,
  { path, query, body }: Case,
  ids: Ids,
): [method: string, path: string, body?: unknown] {
  const [method = "", template = ""] = operation.split(" ");
  const named: { readonly [name: string]: unknown } = { ...ids, ...path?.(ids) };
  const filled = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const id = named[name];
    if (typeof id !== "string") throw new Error(`${operation}: nothing is named ${name}`);
    return id;
  });
  const asked = query === undefined ? "" : `?${query(ids)}`;
  return body === undefined ? [method, filled + asked] : [method, filled + asked, body(ids)];
}

/** An answer with all ids replaced by the same text. */
const withoutIds = (answer: unknown): unknown =>
  JSON.parse(JSON.stringify(answer).replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "ID"));

test("every route has a case, and no other", async () => {
  const { server } = await open();
  const answer = await fetch(`${server.url}/openapi.json`);
  const { paths } = (await answer.json()) as { paths: { [path: string]: object } };
  const routes = Object.entries(paths).flatMap(([path, methods]) => {
    expect(methods, `${path} is described`).not.toEqual({});
    return Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`);
  });
  expect(routes.toSorted()).toEqual(Object.keys(cases).toSorted());
});

/** Public routes. */
const OPEN = [
  "GET /",
  "GET /dashboard/{file}",
  "GET /docs",
  "GET /docs/{file}",
  "GET /info",
  "GET /inspector",
  "GET /inspector/{file}",
  "GET /live",
  "GET /ok",
  "GET /openapi.json",
  "GET /ready",
  "GET /ui/{agent}/{file}",
];

test("without credentials no route but those for everybody is answered", async () => {
  const { server } = await open();
  const answered: string[] = [];
  for (const [operation, one] of Object.entries(cases)) {
    const [method, path, body] = requestOf(operation, [one].flat()[0] as Case, nothing());
    const answer = await fetch(`${server.url}${path}`, {
      method,
      ...(body !== undefined && {
        body: JSON.stringify(body),
        headers: { "content-type": "application/json" },
      }),
    });
    if (answer.status !== 401) answered.push(operation);
  }
  expect(answered.toSorted()).toEqual(OPEN);
});

/** Whether the request changes nothing, whoever sends it. */
const isRead = (operation: string, { shows }: Case) =>
  operation.startsWith("GET ") || (shows !== undefined && !operation.endsWith("/prune"));

describe("of what is another's", { timeout: 20_000 }, () => {
  /** Sends the request of a case as another user, and as the owner. Returns what the server has logged. */
  async function judge(
    { server }: Awaited<ReturnType<typeof open>>,
    ids: Ids,
    operation: string,
    one: Case,
  ): Promise<readonly string[]> {
    const { url, complaints } = server;
    const before = await possessed(url, ids);
    const got = await ask(url, "bob", ...requestOf(operation, one, ids));
    if (one.foreign !== "own") expect(got.status, JSON.stringify(got.body)).toBe(one.foreign);
    expect(JSON.stringify(got.body) ?? "").not.toContain(SECRET);
    if (one.shows !== undefined) expect(got.body).toEqual(one.shows);
    // The answer does not reveal that the resource exists.
    const absent = await ask(url, "bob", ...requestOf(operation, one, nothing()));
    if (one.absent === undefined) expect(withoutIds(got)).toEqual(withoutIds(absent));
    expect(await possessed(url, ids)).toEqual(before);
    // The request itself is valid: the owner gets an answer.
    const own = await ask(url, "alice", ...requestOf(operation, one, ids));
    expect(own.status, JSON.stringify(own.body)).toBe(one.foreign === "own" ? got.status : (one.own ?? 200));
    return complaints;
  }

  const isShared = ([, operation, one]: (typeof cased)[number]) => isRead(operation, one);

  describe("a read of", () => {
    const cleanUps: (() => Promise<void>)[] = [];
    let opened: Awaited<ReturnType<typeof open>>;
    let ids: Ids;
    beforeAll(async () => {
      opened = await open((cleanUp) => cleanUps.push(cleanUp));
      ids = await possessions(opened);
    });
    afterAll(async () => {
      opened.gate.open(SECRET);
      // oxlint-disable-next-line no-await-in-loop -- the server before its directory
      for (const cleanUp of cleanUps.toReversed()) await cleanUp();
    });

    test.each(cased.filter(isShared))("%s shows and changes nothing", async (_, operation, one) => {
      expect(await judge(opened, ids, operation, one)).toEqual([]);
    });
  });

  test.each(cased.filter((one) => !isShared(one)))(
    "%s shows and changes nothing",
    async (_, operation, one) => {
      const opened = await open();
      const complaints = await judge(opened, await possessions(opened), operation, one);
      opened.gate.open(SECRET);
      expect(complaints).toEqual([]);
    },
  );
});

/** A command on a socket: of a thread, or of protocol v2. */
type Command = { readonly id: number; readonly [field: string]: unknown };

interface SocketCase {
  readonly path: (ids: Ids) => string;
  readonly commands?: (ids: Ids) => readonly Command[];
  /** Whether the socket stays open without messages where there is no resource. */
  readonly staysOpen: boolean;
}

const wants = { channels: ["values", "updates", "custom", "tasks", "checkpoints", "lifecycle"] };

/** By the path of the socket. */
const socketCases: readonly SocketCase[] = [
  { path: ({ thread_id, run_id }) => `/threads/${thread_id}/runs/${run_id}/stream`, staysOpen: false },
  { path: ({ thread_id }) => `/threads/${thread_id}/stream?last_event_id=-1`, staysOpen: false },
  {
    path: ({ thread_id }) => `/threads/${thread_id}/stream/events`,
    staysOpen: true,
    commands: ({ checkpoint_id }) => [
      { id: 1, method: "subscription.subscribe", params: { ...wants, since: 0 } },
      { id: 2, method: "state.get" },
      { id: 3, method: "state.listCheckpoints" },
      { id: 4, method: "agent.getTree" },
      { id: 5, method: "input.respond", params: { interrupt_id: "none", response: 1 } },
      { id: 6, method: "state.fork", params: { checkpoint_id } },
    ],
  },
  { path: () => "/inspect", staysOpen: true },
  { path: ({ thread_id }) => `/inspect?thread_id=${thread_id}`, staysOpen: false },
];

test("every socket has a case, and no other", () => {
  const paths = socketCases.map(({ path }) => path(nothing()).replace(/\?.*/, ""));
  for (const pattern of socketPaths)
    expect(
      paths.some((path) => pattern.test(path)),
      String(pattern),
    ).toBe(true);
  for (const path of paths)
    expect(
      socketPaths.filter((pattern) => pattern.test(path)),
      path,
    ).toHaveLength(1);
});

const stay = () => Promise.resolve();

describe.each(["header", "token"])("a socket of a user who is known by a %s", { timeout: 20_000 }, (by) => {
  async function dialAs(url: string, name: Name, path: string): Promise<Dialed> {
    if (by === "header") return dial(`${url}${path}`, { headers: headersOf(name) });
    const { body } = await ask(url, name, "POST", "/auth/token");
    const { token } = body as { token: string };
    return dial(`${url}${path}${path.includes("?") ? "&" : "?"}token=${token}`);
  }

  /** The messages that Bob gets about these ids until `goOn` is over; code undefined: the socket stayed open. */
  async function told(url: string, { path, commands, staysOpen }: SocketCase, ids: Ids, goOn = stay) {
    const dialed = await dialAs(url, "bob", path(ids));
    const { socket, texts } = dialed;
    const sent = commands?.(ids) ?? [];
    for (const command of sent) dialed.send(command);
    const isAnswered = () =>
      sent.every(({ id }) => texts.some((text) => (JSON.parse(text) as { id?: unknown }).id === id));
    if (!staysOpen) return { texts, code: await dialed.closed };
    await expect.poll(isAnswered).toBe(true);
    await goOn();
    // Everything sent before that has arrived by then.
    await new Promise((resolve) => socket.once("pong", resolve).ping());
    return { texts, code: socket.readyState === socket.OPEN ? undefined : await dialed.closed };
  }

  test.each(
    socketCases.map((one) => [one.path({ ...nothing(), thread_id: "ID", run_id: "ID" }), one] as const),
  )("%s shows and changes nothing of another's", async (_, one) => {
    const opened = await open();
    const { url, complaints } = opened.server;
    const ids = await possessions(opened);
    const before = await possessed(url, ids);
    const goOn = async () => {
      const body = { assistant_id: ids.assistant_id, input, multitask_strategy: "enqueue" };
      const { status } = await ask(url, "alice", "POST", `/threads/${ids.thread_id}/runs/wait`, body);
      expect(status).toBe(200);
    };
    const absent = withoutIds(await told(url, one, nothing()));
    expect(withoutIds(await told(url, one, ids))).toEqual(absent);
    expect(await possessed(url, ids)).toEqual(before);
    const watched = await told(url, one, ids, goOn);
    expect(withoutIds(watched)).toEqual(absent);
    expect(JSON.stringify(watched)).not.toContain(SECRET);
    // The owner's socket works with the same request.
    const own = await dialAs(url, "alice", one.path(ids));
    for (const command of one.commands?.(ids) ?? []) own.send(command);
    if (one.staysOpen) await goOn();
    const shown = one.path(ids).startsWith("/inspect") ? ids.thread_id : SECRET;
    await expect.poll(() => own.texts.join("")).toContain(shown);
    opened.gate.open(SECRET);
    expect(complaints).toEqual([]);
  });

  test("is closed where nobody is known", async () => {
    const { server } = await open();
    for (const { path } of socketCases) {
      const to = `${server.url}${path(nothing())}`;
      const dialed = await dial(by === "header" ? to : `${to}${to.includes("?") ? "&" : "?"}token=wrong`);
      expect((await dialed.closed).code).toBe(4401);
    }
  });
});
