import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type App, createApp } from "../../src/app.ts";
import { graph, list } from "../../src/index.ts";
import { createLogger } from "../../src/platform/log.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { gated } from "./support/latches.ts";
import { dial } from "./support/sockets.ts";
import { get, newThread, NOBODY, post, postJson } from "./support/wire.ts";
import { describeOverEachTransport } from "../transport/each.ts";

const quick = graph({
  state: { log: list<string>() },
  nodes: { a: async () => ({ log: ["a"] }) },
  edges: { start: "a" },
});

const MAX = 2_000;
const run = (fields: object) => ({ assistant_id: "quick", ...fields });

interface Refused {
  readonly detail: string;
  readonly code?: string;
  readonly errors?: readonly { readonly at: string; readonly message: string }[];
}

/** `:thread` and `:run` stand for existing ones. */
type Case = readonly [method: "GET" | "POST" | "PATCH" | "DELETE", path: string, body: unknown, at: string];

const RUNS = "/threads/:thread/runs";
const RUN = `${RUNS}/:run`;

/** Invalid requests: 422, and the response names the field. */
const notValid: readonly Case[] = [
  // Wrong types.
  ["POST", RUNS, {}, "assistant_id"],
  ["POST", RUNS, { assistant_id: 7 }, "assistant_id"],
  ["POST", RUNS, run({ command: "go" }), "command"],
  ["POST", RUNS, run({ command: { goto: 7 } }), "command.goto"],
  ["POST", RUNS, run({ config: [] }), "config"],
  ["POST", RUNS, run({ config: { configurable: "x" } }), "config.configurable"],
  ["POST", RUNS, run({ config: { recursion_limit: "9" } }), "config.recursion_limit"],
  ["POST", RUNS, run({ config: { tags: "t" } }), "config.tags"],
  ["POST", RUNS, run({ context: "x" }), "context"],
  ["POST", RUNS, run({ metadata: [] }), "metadata"],
  ["POST", RUNS, run({ multitask_strategy: "later" }), "multitask_strategy"],
  ["POST", RUNS, run({ stream_mode: 1 }), "stream_mode"],
  ["POST", RUNS, run({ stream_mode: ["values", "nope"] }), "stream_mode[1]"],
  ["POST", RUNS, run({ stream_subgraphs: "no" }), "stream_subgraphs"],
  ["POST", RUNS, run({ stream_resumable: 1 }), "stream_resumable"],
  ["POST", RUNS, run({ interrupt_before: 1 }), "interrupt_before"],
  ["POST", RUNS, run({ interrupt_after: [1] }), "interrupt_after[0]"],
  ["POST", RUNS, run({ on_disconnect: "stay" }), "on_disconnect"],
  ["POST", RUNS, run({ durability: "never" }), "durability"],
  ["POST", RUNS, run({ checkpoint_during: "no" }), "checkpoint_during"],
  ["POST", RUNS, run({ checkpoint: NOBODY }), "checkpoint"],
  ["POST", RUNS, run({ checkpoint: { checkpoint_id: 7 } }), "checkpoint.checkpoint_id"],
  ["POST", RUNS, run({ checkpoint_id: "latest" }), "checkpoint_id"],
  [
    "POST",
    RUNS,
    run({ config: { configurable: { checkpoint_id: "x" } } }),
    "config.configurable.checkpoint_id",
  ],
  ["POST", RUNS, run({ langsmith_tracer: "on" }), "langsmith_tracer"],
  ["POST", RUNS, run({ langsmith_tracer: { project_name: 7 } }), "langsmith_tracer.project_name"],
  ["POST", RUNS, run({ strict_resume: 1 }), "strict_resume"],
  // Invalid for the graph's state.
  ["POST", RUNS, run({ input: "x" }), "input"],
  ["POST", RUNS, run({ input: { log: "x" } }), "input.log"],
  ["POST", RUNS, run({ command: { update: { log: "x" } } }), "command.update.log"],
  ["POST", RUNS, run({ command: { goto: "nowhere" } }), "command.goto"],
  ["POST", `${RUNS}/wait`, {}, "assistant_id"],
  ["POST", `${RUNS}/stream`, run({ stream_mode: "value" }), "stream_mode"],
  ["POST", RUNS, [], "body"],
  ["POST", RUNS, "null", "body"],
  ["POST", RUNS, '"text"', "body"],
  ["POST", RUNS, `{"assistant_id":"quick","input":{"__proto__":{"x":1}}}`, "input"],
  ["POST", "/threads", { metadata: "x" }, "metadata"],
  ["POST", "/threads", { thread_id: 7 }, "thread_id"],
  ["POST", "/threads", { if_exists: "maybe" }, "if_exists"],
  ["POST", "/assistants", {}, "graph_id"],
  ["POST", "/assistants", { graph_id: ["quick"] }, "graph_id"],
  ["POST", "/assistants", { graph_id: "quick", config: [] }, "config"],
  ["POST", "/assistants", { graph_id: "quick", config: { recursion_limit: "x" } }, "config.recursion_limit"],
  ["POST", "/assistants", { graph_id: "quick", config: { configurable: "x" } }, "config.configurable"],
  ["POST", "/assistants", { graph_id: "quick", name: 7 }, "name"],
  ["POST", "/assistants/search", { limit: "10" }, "limit"],
  ["POST", "/assistants/search", { limit: 0 }, "limit"],
  ["POST", "/assistants/search", { offset: -1 }, "offset"],
  ["POST", "/assistants/search", { select: ["nope"] }, "select[0]"],
  ["POST", "/assistants/search", { name: 1 }, "name"],
  ["POST", "/assistants/search", { sort_by: "config" }, "sort_by"],
  ["POST", "/assistants/search", { sort_order: "up" }, "sort_order"],
  // Bad ids.
  ["GET", "/threads/nope", undefined, "thread_id"],
  ["GET", "/threads/nope/state", undefined, "thread_id"],
  ["GET", "/threads/nope/runs", undefined, "thread_id"],
  ["POST", "/threads/undefined/runs", run({}), "thread_id"],
  ["POST", "/threads/null/runs/wait", run({}), "thread_id"],
  ["POST", "/threads/%00/runs/stream", run({}), "thread_id"],
  ["GET", `${RUNS}/nope`, undefined, "run_id"],
  ["GET", `${RUNS}/nope/join`, undefined, "run_id"],
  ["GET", `${RUNS}/nope/stream`, undefined, "run_id"],
  ["POST", `${RUNS}/nope/cancel`, undefined, "run_id"],
  ["POST", "/threads", { thread_id: "nope" }, "thread_id"],
  ["POST", "/assistants", { graph_id: "quick", assistant_id: "nope" }, "assistant_id"],
  // Queries.
  ["GET", `${RUNS}?limit=0`, undefined, "limit"],
  ["GET", `${RUNS}?limit=1001`, undefined, "limit"],
  ["GET", `${RUNS}?offset=x`, undefined, "offset"],
  ["GET", `${RUNS}?status=done`, undefined, "status"],
  ["GET", `${RUNS}?select=nope`, undefined, "select"],
  ["GET", "/threads/:thread/state?select=nope", undefined, "select"],
  ["GET", `${RUN}/stream?stream_mode=nope`, undefined, "stream_mode"],
  ["GET", `${RUN}/join?cancel_on_disconnect=maybe`, undefined, "cancel_on_disconnect"],
  ["POST", `${RUN}/cancel?wait=maybe`, undefined, "wait"],
  ["POST", `${RUN}/cancel?action=stop`, undefined, "action"],
  ["POST", RUNS, run({ webhook: "http://127.0.0.1:1/" }), "webhook"],
  ["POST", RUNS, run({ webhook: "ftp://example.com/" }), "webhook"],
  ["POST", `${RUNS}/wait`, run({ webhook: "http://user:secret@example.com/" }), "webhook"],
  ["POST", `${RUNS}/stream`, run({ webhook: "http://[::1]/" }), "webhook"],
  ["GET", "/webhooks/deliveries?status=done", undefined, "status"],
  ["POST", "/webhooks/deliveries/nope/retry", undefined, "delivery_id"],
  ["POST", RUNS, run({ checkpoint: { checkpoint_ns: 1 } }), "checkpoint.checkpoint_ns"],
  ["POST", RUNS, run({ checkpoint: { checkpoint_map: { "": "x" } } }), "checkpoint.checkpoint_map."],
  [
    "POST",
    RUNS,
    run({ config: { configurable: { checkpoint_ns: [] } } }),
    "config.configurable.checkpoint_ns",
  ],
  ["POST", `${RUNS}/stream`, run({ stream_mode: "debugs" }), "stream_mode"],
  ["POST", `${RUNS}/stream`, run({ stream_mode: ["values", "message"] }), "stream_mode[1]"],
  ["GET", `${RUN}/stream?checkpoint_id=x`, undefined, "checkpoint_id"],
  ["GET", `${RUN}/stream?stream_mode=task`, undefined, "stream_mode"],
  ["GET", `${RUNS}?metadata=x`, undefined, "metadata"],
  ["GET", "/threads/:thread/state?subgraphs=maybe", undefined, "subgraphs"],
  ["POST", `${RUN}/cancel?reason=taken&action=rollback`, undefined, "reason"],
  ["POST", "/threads", { ttl: { ttl: "soon" } }, "ttl.ttl"],
  ["POST", "/threads", { supersteps: [{}] }, "supersteps[0].updates"],
];

/** Missing resources: 404. */
const unknown: readonly Case[] = [
  ["GET", `/threads/${NOBODY}`, undefined, `Thread with ID ${NOBODY} not found`],
  ["GET", `/threads/${NOBODY}/state`, undefined, `Thread with ID ${NOBODY} not found`],
  ["GET", `/threads/${NOBODY}/runs`, undefined, `Thread with ID ${NOBODY} not found`],
  ["POST", `/threads/${NOBODY}/runs`, run({}), `Thread with ID ${NOBODY} not found`],
  ["POST", `/threads/${NOBODY}/runs/wait`, run({}), `Thread with ID ${NOBODY} not found`],
  ["POST", `/threads/${NOBODY}/runs/stream`, run({}), `Thread with ID ${NOBODY} not found`],
  ["GET", `${RUNS}/${NOBODY}`, undefined, "Run not found"],
  ["GET", `${RUNS}/${NOBODY}/join`, undefined, "Run not found"],
  ["GET", `${RUNS}/${NOBODY}/stream`, undefined, "Run not found"],
  ["POST", `${RUNS}/${NOBODY}/cancel`, undefined, "Run not found"],
  [
    "POST",
    RUNS,
    { assistant_id: "nope" },
    'No assistant found for "nope". Make sure the assistant ID is for a valid assistant or a valid graph ID.',
  ],
  ["POST", RUNS, { assistant_id: NOBODY }, `No assistant found for "${NOBODY}".`],
  ["POST", RUNS, run({ checkpoint_id: NOBODY }), `Checkpoint ${NOBODY} not found`],
  ["POST", `${RUNS}/wait`, run({ checkpoint: { checkpoint_id: NOBODY } }), `Checkpoint ${NOBODY} not found`],
  ["POST", "/runs/stream", run({ checkpoint_id: NOBODY }), `Checkpoint ${NOBODY} not found`],
  ["GET", `/assistants/${NOBODY}`, undefined, "Assistant not found"],
  ["GET", "/assistants/nope", undefined, "Assistant not found"],
  ["POST", "/assistants", { graph_id: "nope" }, 'There is no graph "nope"'],
  ["PATCH", `/threads/${NOBODY}`, {}, `Thread with ID ${NOBODY} not found`],
  ["DELETE", `/threads/${NOBODY}`, undefined, `Thread with ID ${NOBODY} not found`],
  ["POST", `/threads/${NOBODY}/copy`, undefined, `Thread with ID ${NOBODY} not found`],
  // Routes.
  ["POST", "/", {}, "Not Found"],
  ["GET", "/nowhere", undefined, "Not Found"],
  ["GET", "/threads", undefined, "Not Found"],
  ["DELETE", "/threads/:thread/state", undefined, "Not Found"],
  ["POST", "/runs/later", run({}), "Not Found"],
];

describeOverEachTransport("errors", (transport) => {
  let app: App;
  const complaints: string[] = [];
  const places = { thread: "", run: "" };

  beforeAll(async () => {
    const logger = createLogger({
      clock: systemClock,
      level: "warn",
      write: (line) => complaints.push(line),
    });
    app = await createApp({ transport, maxBody: MAX, logger, graphs: { quick } });
    places.thread = await newThread(app.url);
    const waited = await post(`${app.url}/threads/${places.thread}/runs/wait`, run({ input: {} }));
    await waited.text();
    places.run = waited.headers.get("content-location")?.split("/").at(-1) ?? "";
  });
  afterAll(() => app.close(0));

  async function refused(method: string, path: string, body: unknown): Promise<[number, Refused]> {
    const url = app.url + path.replace(":thread", places.thread).replace(":run", places.run);
    const sent = body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) };
    const response = await fetch(url, { method, ...sent });
    const text = await response.text();
    expect(response.headers.get("content-type"), text).toBe("application/json");
    const told = JSON.parse(text) as Refused;
    expect(told.detail).toBeTypeOf("string");
    expect(told.detail).not.toBe("");
    expect(text).not.toMatch(/\.ts:\d+|node_modules/);
    return [response.status, told];
  }

  test.each(notValid)("%s %s %j is 422, naming %s", async (method, path, body, at) => {
    const [status, { detail, errors }] = await refused(method, path, body);
    expect(status, detail).toBe(422);
    expect(errors?.map((error) => error.at)).toEqual([at]);
    expect(detail).toContain(at);
  });

  test.each(unknown)("%s %s %j is 404: %s", async (method, path, body, detail) => {
    const [status, told] = await refused(method, path, body);
    expect(status).toBe(404);
    expect(told.detail).toContain(detail);
  });

  test.each([
    ["{"],
    ["nope"],
    ['{"assistant_id": "quick",}'],
    ["{'assistant_id': 1}"],
    ['{"a":1}{"b":2}'],
    ["\u0000"],
  ])("a body that is no JSON is 400: %j", async (body) => {
    for (const path of [
      RUNS,
      `${RUNS}/wait`,
      `${RUNS}/stream`,
      "/threads",
      "/assistants",
      "/assistants/search",
    ]) {
      expect(await refused("POST", path, body)).toMatchObject([
        400,
        { detail: "Malformed JSON in request body" },
      ]);
    }
  });

  test("a body that is no UTF-8 is 400", async () => {
    const body = Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]);
    const response = await fetch(`${app.url}/threads`, { method: "POST", body });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ detail: expect.any(String) as unknown });
  });

  test("a body that is packed is 415; one that is said to be as it is, is taken", async () => {
    const send = (coding: string, body: NonNullable<RequestInit["body"]>) =>
      fetch(`${app.url}/threads`, { method: "POST", headers: { "content-encoding": coding }, body });
    for (const coding of ["gzip", "br", "identity, gzip"]) {
      const response = await send(coding, gzipSync("{}"));
      expect(response.status).toBe(415);
      expect(response.headers.get("content-type")).toBe("application/json");
      expect(await response.json()).toMatchObject({
        detail: expect.stringContaining(`content-encoding ${coding}`) as unknown,
      });
    }
    expect((await send("Identity", "{}")).status).toBe(200);
  });

  test("several wrong fields are all told of", async () => {
    const [status, { errors }] = await refused("POST", RUNS, { metadata: 1, durability: "never" });
    expect(status).toBe(422);
    expect(errors?.map(({ at }) => at).sort()).toEqual(["assistant_id", "durability", "metadata"]);
  });

  test("a body over the limit is 413, whether its length is told or not", async () => {
    const large = JSON.stringify({ metadata: { text: "x".repeat(MAX) } });
    const [status] = await refused("POST", "/threads", large);
    expect(status).toBe(413);
    const untold = await fetch(`${app.url}/threads`, {
      method: "POST",
      body: new Blob([large]).stream(),
      duplex: "half",
    } as RequestInit);
    expect(untold.status).toBe(413);
    expect(await untold.json()).toMatchObject({ detail: expect.any(String) as unknown });
  });

  test("a conflict is 409: an id that is taken", async () => {
    expect(await refused("POST", "/threads", { thread_id: places.thread })).toMatchObject([
      409,
      { detail: "Thread already exists" },
    ]);
  });

  test("nothing of that has done anything, and the server lives", async () => {
    const runs = await (await get(`${app.url}/threads/${places.thread}/runs`)).json();
    expect(runs).toMatchObject([{ run_id: places.run, status: "success" }]);
    expect(await (await get(`${app.url}/ok`)).json()).toEqual({ ok: true });
    const again = await postJson(`${app.url}/threads/${places.thread}/runs/wait`, run({ input: {} }));
    expect(again).toEqual({ log: ["a", "a"] });
    expect(complaints).toEqual([]);
    expect(Object.hasOwn(Object.prototype, "x")).toBe(false);
  });
});

test("a conflict is 409: a run on a thread that is busy", async () => {
  const { held, waits, open } = gated();
  const app = await createApp({ graphs: { held } });
  try {
    const runs = `${app.url}/threads/${await newThread(app.url)}/runs`;
    const first = post(`${runs}/wait`, { assistant_id: "held", input: { name: "a" } });
    await waits("a");
    for (const way of ["", "/wait", "/stream"]) {
      const refused = await post(runs + way, { assistant_id: "held", multitask_strategy: "reject" });
      expect([refused.status, refused.headers.get("content-type")]).toEqual([409, "application/json"]);
      expect(await refused.json()).toEqual({
        detail:
          "Thread is already running a task. Wait for it to finish or choose a different multitask strategy.",
        code: "run.conflict",
      });
    }
    open("a");
    expect(await (await first).json()).toMatchObject({ log: ["a began", "a ended"] });
  } finally {
    await app.close(0);
  }
});

test("an id that is no UUID is refused in the same words everywhere", async () => {
  const app = await createApp({ graphs: { quick } });
  onTestFinished(() => app.close(0));
  const thread = await newThread(app.url);
  const path = `${app.url}/threads/${thread}`;
  const words: string[] = [];
  for (const asked of [
    get(`${app.url}/threads/x`),
    get(`${path}/runs/x`),
    get(`${path}/state/x`),
    get(`${path}/history?before=x`),
    get(`${path}/runs/${NOBODY}/stream?checkpoint_id=x`),
    get(`${app.url}/runs/x/join`),
    get(`${app.url}/runs/crons/x`),
    get(`${app.url}/inspect/actors?run_id=x`),
    post(`${app.url}/threads`, { thread_id: "x" }),
    post(`${path}/runs`, run({ checkpoint_id: "x" })),
  ]) {
    words.push(((await (await asked).json()) as Refused).detail);
  }
  for (const to of [`${app.url}/threads/x/stream`, `${path}/runs/x/stream`, `${app.url}/inspect?run_id=x`]) {
    const { closed } = await dial(to);
    words.push((await closed).reason);
  }
  const ids = [
    "thread_id",
    "run_id",
    "checkpoint_id",
    "before",
    "checkpoint_id",
    "run_id",
    "cron_id",
    "run_id",
  ];
  const sent = ["thread_id", "checkpoint_id", "thread_id", "run_id", "run_id"];
  expect(words).toEqual([...ids, ...sent].map((name) => `${name} must be a UUID`));
});
