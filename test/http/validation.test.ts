import { describe, expect, test } from "vitest";
import { protocol, RUN, THREAD } from "./support.ts";

const RUNS = `/threads/${THREAD}/runs`;
const deep = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;

/** Route, body or query, status, and the field that the response names. */
const refused: readonly (readonly [string, string, unknown, number, string | undefined])[] = [
  ["POST", RUNS, {}, 422, "assistant_id"],
  ["POST", RUNS, { assistant_id: null }, 422, "assistant_id"],
  ["POST", RUNS, { assistant_id: 7 }, 422, "assistant_id"],
  ["POST", RUNS, { assistant_id: "agent", multitask_strategy: "queue" }, 422, "multitask_strategy"],
  ["POST", RUNS, { assistant_id: "agent", stream_mode: "value" }, 422, "stream_mode"],
  ["POST", RUNS, { assistant_id: "agent", stream_mode: ["values", "nope"] }, 422, "stream_mode[1]"],
  ["POST", RUNS, { assistant_id: "agent", stream_mode: ["values", 1] }, 422, "stream_mode[1]"],
  ["POST", RUNS, { assistant_id: "agent", stream_mode: "event" }, 422, "stream_mode"],
  ["POST", RUNS, { assistant_id: "agent", interrupt_before: 3 }, 422, "interrupt_before"],
  ["POST", RUNS, { assistant_id: "agent", interrupt_after: [3] }, 422, "interrupt_after[0]"],
  ["POST", RUNS, { assistant_id: "agent", config: [] }, 422, "config"],
  ["POST", RUNS, { assistant_id: "agent", config: { tags: [1] } }, 422, "config.tags[0]"],
  ["POST", RUNS, { assistant_id: "agent", config: { recursion_limit: 0 } }, 422, "config.recursion_limit"],
  ["POST", RUNS, { assistant_id: "agent", config: { recursion_limit: 1.5 } }, 422, "config.recursion_limit"],
  ["POST", RUNS, { assistant_id: "agent", config: { configurable: 1 } }, 422, "config.configurable"],
  ["POST", RUNS, { assistant_id: "agent", metadata: "x" }, 422, "metadata"],
  ["POST", RUNS, { assistant_id: "agent", context: [] }, 422, "context"],
  ["POST", RUNS, { assistant_id: "agent", command: "go" }, 422, "command"],
  ["POST", RUNS, { assistant_id: "agent", command: { goto: 7 } }, 422, "command.goto"],
  ["POST", RUNS, { assistant_id: "agent", stream_subgraphs: "yes" }, 422, "stream_subgraphs"],
  ["POST", RUNS, { assistant_id: "agent", on_disconnect: "stay" }, 422, "on_disconnect"],
  ["POST", RUNS, { assistant_id: "agent", durability: "never" }, 422, "durability"],
  ["POST", RUNS, { assistant_id: "agent", after_seconds: -1 }, 422, "after_seconds"],
  ["POST", RUNS, { assistant_id: "agent", after_seconds: "5" }, 422, "after_seconds"],
  ["POST", RUNS, { assistant_id: "agent", timeout_seconds: 0 }, 422, "timeout_seconds"],
  ["POST", RUNS, { assistant_id: "agent", webhook: 7 }, 422, "webhook"],
  ["POST", RUNS, { assistant_id: "agent", checkpoint: [] }, 422, "checkpoint"],
  ["POST", RUNS, { assistant_id: "agent", checkpoint_id: 7 }, 422, "checkpoint_id"],
  ["POST", RUNS, { assistant_id: "agent", if_not_exists: "make" }, 422, "if_not_exists"],
  ["POST", RUNS, { assistant_id: "agent", feedback_keys: [1] }, 422, "feedback_keys[0]"],
  ["POST", RUNS, { assistant_id: "agent", langsmith_tracer: [] }, 422, "langsmith_tracer"],
  ["POST", RUNS, { assistant_id: "agent", strict_resume: "yes" }, 422, "strict_resume"],
  [
    "POST",
    RUNS,
    { assistant_id: "agent", config: { configurable: { checkpoint_id: 7 } } },
    422,
    "config.configurable.checkpoint_id",
  ],
  ["POST", "/runs/batch", { assistant_id: "agent" }, 422, "body"],
  ["POST", "/runs/batch", "[]", 422, "body"],
  ["POST", "/runs/batch", "[3]", 422, "[0]"],
  ["POST", "/runs/batch", '[{"assistant_id":"agent"},{"assistant_id":3}]', 422, "[1].assistant_id"],
  ["POST", "/runs/search", { status: "done" }, 422, "status"],
  ["POST", "/runs/search", { limit: 0 }, 422, "limit"],
  ["POST", "/runs/search", { paused: "yes" }, 422, "paused"],
  ["POST", "/runs/search", { thread_id: "x" }, 422, "thread_id"],
  ["POST", "/runs/search", { created_after: "yesterday" }, 422, "created_after"],
  ["POST", "/runs/search", { created_before: 5 }, 422, "created_before"],
  ["POST", "/runs/search", { error: "" }, 422, "error"],
  ["POST", "/runs/search", { cursor: "é" }, 422, "cursor"],
  ["POST", "/runs/search", { sort_by: "status" }, 422, "sort_by"],
  ["POST", "/runs/search", { metadata: 5 }, 422, "metadata"],
  ["POST", "/runs/search", { without_metadata: "team" }, 422, "without_metadata"],
  ["POST", "/runs/cancel", {}, 422, "body"],
  ["POST", "/runs/cancel", { run_ids: ["x"] }, 422, "run_ids[0]"],
  ["POST", "/runs/cancel", { status: "done" }, 422, "status"],
  ["POST", `${RUNS}/wait`, { assistant_id: "agent", webhook: ["/w"] }, 422, "webhook"],
  // Invalid bodies.
  ["POST", RUNS, "{", 400, undefined],
  ["POST", RUNS, "nope", 400, undefined],
  ["POST", RUNS, "[]", 422, "body"],
  ["POST", RUNS, "3", 422, "body"],
  ["POST", RUNS, '"a"', 422, "body"],
  ["POST", RUNS, "null", 422, "body"],
  ["POST", RUNS, `{"assistant_id":"agent","input":${deep(300)}}`, 422, "input"],
  ["POST", RUNS, `{"assistant_id":"agent","input":${deep(100_000)}}`, 422, "input"],
  ["POST", RUNS, '{"assistant_id":"agent","input":1e999}', 422, "input"],
  ["POST", RUNS, '{"assistant_id":"agent","input":{"__proto__":{"x":1}}}', 422, "input"],
  ["POST", RUNS, '{"assistant_id":"agent","metadata":{"__proto__":{"x":1}}}', 422, "metadata"],
  // Paths and queries.
  ["POST", "/threads/nope/runs", { assistant_id: "agent" }, 422, "thread_id"],
  ["POST", "/threads/undefined/runs/wait", { assistant_id: "agent" }, 422, "thread_id"],
  ["GET", "/threads/nope", undefined, 422, "thread_id"],
  ["GET", "/threads/nope/state", undefined, 422, "thread_id"],
  ["GET", `${RUNS}/nope`, undefined, 422, "run_id"],
  ["GET", `${RUNS}/${RUN}%00`, undefined, 422, "run_id"],
  ["GET", `${RUNS}/nope/join`, undefined, 422, "run_id"],
  ["GET", `${RUNS}/nope/stream`, undefined, 422, "run_id"],
  ["POST", `${RUNS}/nope/cancel`, undefined, 422, "run_id"],
  ["GET", `${RUNS}?limit=0`, undefined, 422, "limit"],
  ["GET", `${RUNS}?limit=1001`, undefined, 422, "limit"],
  ["GET", `${RUNS}?limit=ten`, undefined, 422, "limit"],
  ["GET", `${RUNS}?offset=-1`, undefined, 422, "offset"],
  ["GET", `${RUNS}?status=done`, undefined, 422, "status"],
  ["GET", `${RUNS}?select=run_id,nope`, undefined, 422, "select"],
  ["GET", `${RUNS}?metadata=x`, undefined, 422, "metadata"],
  ["GET", `${RUNS}/${RUN}/stream?stream_mode=nope`, undefined, 422, "stream_mode"],
  ["GET", `${RUNS}/${RUN}/stream?stream_mode=["values"`, undefined, 422, "stream_mode"],
  ["GET", `${RUNS}/${RUN}/stream?stream_mode=event`, undefined, 422, "stream_mode"],
  ["GET", `${RUNS}/${RUN}/stream?cancel_on_disconnect=maybe`, undefined, 422, "cancel_on_disconnect"],
  ["GET", `${RUNS}/${RUN}/stream?checkpoint_id=x`, undefined, 422, "checkpoint_id"],
  ["POST", `${RUNS}/${RUN}/cancel?action=stop`, undefined, 422, "action"],
  ["POST", `${RUNS}/${RUN}/cancel?wait=maybe`, undefined, 422, "wait"],
  ["POST", `${RUNS}/${RUN}/cancel?reason=taken&action=rollback`, undefined, 422, "reason"],
  ["GET", `/threads/${THREAD}/state?subgraphs=maybe`, undefined, 422, "subgraphs"],
  ["GET", `/threads/${THREAD}/state?select=nope`, undefined, 422, "select"],
  ["GET", `/threads/${THREAD}?include=bogus`, undefined, 422, "include"],
  ["GET", `/threads/${THREAD}?include=ttl,values`, undefined, 422, "include"],
  // A lone surrogate is refused in every text, including names.
  ["POST", "/threads", { metadata: { a: ["x", { b: "x\ud83d" }] } }, 422, "metadata.a[1].b"],
  ["POST", "/threads", { metadata: { "a\udc00": 1 } }, 422, "metadata"],
  ["POST", RUNS, { assistant_id: "agent", input: { text: "\udc00\ud800" } }, 422, "input.text"],
  ["POST", RUNS, { assistant_id: "\ud800" }, 422, "assistant_id"],
  ["PUT", "/store/items", { namespace: ["a", "\ud800"], key: "k", value: {} }, 422, "namespace[1]"],
  ["POST", "/runs/batch", [{ assistant_id: "agent", input: "\ud800" }], 422, "[0].input"],
  ["POST", RUNS, `{"assistant_id":"agent","input":${deep(5_000)},"x":"\\ud83d\\ude00"}`, 422, "input"],
  // Threads and assistants.
  ["POST", "/threads", { thread_id: "nope" }, 422, "thread_id"],
  ["POST", "/threads", { metadata: [] }, 422, "metadata"],
  ["POST", "/threads", { if_exists: "maybe" }, 422, "if_exists"],
  ["POST", "/threads", { supersteps: [{}] }, 422, "supersteps[0].updates"],
  ["POST", "/threads", { ttl: 0 }, 422, "ttl"],
  ["POST", "/threads", { ttl: "5" }, 422, "ttl"],
  ["POST", "/threads", { ttl: { ttl: 5, strategy: "keep" } }, 422, "ttl.strategy"],
  ["POST", "/threads", { ttl: { strategy: "delete" } }, 422, "ttl.ttl"],
  ["POST", "/threads/search", { limit: 0 }, 422, "limit"],
  ["POST", "/threads/search", { limit: 1001 }, 422, "limit"],
  ["POST", "/threads/search", { offset: -1 }, 422, "offset"],
  ["POST", "/threads/search", { status: "done" }, 422, "status"],
  ["POST", "/threads/search", { sort_by: "name" }, 422, "sort_by"],
  ["POST", "/threads/search", { sort_order: "up" }, 422, "sort_order"],
  ["POST", "/threads/search", { ids: ["x"] }, 422, "ids[0]"],
  ["POST", "/threads/search", { metadata: [] }, 422, "metadata"],
  ["POST", "/threads/search", { values: 1 }, 422, "values"],
  ["POST", "/threads/search", { select: ["kwargs"] }, 422, "select[0]"],
  ["POST", "/threads/search", { extract: { a: "values[" } }, 422, "extract.a"],
  ["POST", "/threads/search", { extract: { a: "thread_id" } }, 422, "extract.a"],
  ["POST", "/threads/search", { extract: { a: 1 } }, 422, "extract.a"],
  [
    "POST",
    "/threads/search",
    { extract: Object.fromEntries(Array.from({ length: 11 }, (_, i) => [`p${i}`, "values.a"])) },
    422,
    "extract",
  ],
  ["POST", "/threads/count", { status: "done" }, 422, "status"],
  ["POST", "/threads/prune", {}, 422, "thread_ids"],
  ["POST", "/threads/prune", { thread_ids: ["x"] }, 422, "thread_ids[0]"],
  ["POST", "/threads/prune", { thread_ids: [], strategy: "all" }, 422, "strategy"],
  ["PATCH", `/threads/${THREAD}`, { metadata: 1 }, 422, "metadata"],
  ["PATCH", "/threads/x", {}, 422, "thread_id"],
  ["DELETE", "/threads/x", undefined, 422, "thread_id"],
  ["POST", "/threads/x/copy", undefined, 422, "thread_id"],
  ["POST", "/assistants", {}, 422, "graph_id"],
  ["POST", "/assistants", { graph_id: "agent", assistant_id: "nope" }, 422, "assistant_id"],
  ["POST", "/assistants", { graph_id: "agent", config: 3 }, 422, "config"],
  ["POST", "/assistants", { graph_id: "agent", config: { tags: "x" } }, 422, "config.tags"],
  [
    "POST",
    "/assistants",
    { graph_id: "agent", config: { recursion_limit: "x" } },
    422,
    "config.recursion_limit",
  ],
  ["POST", "/assistants", { graph_id: "agent", config: { configurable: "x" } }, 422, "config.configurable"],
  [
    "POST",
    "/assistants",
    { graph_id: "agent", config: { configurable: { checkpoint_ns: "x" } } },
    422,
    "config.configurable.checkpoint_ns",
  ],
  ["PATCH", "/assistants/agent", { name: 1 }, 422, "name"],
  ["PATCH", "/assistants/agent", { config: { tags: "x" } }, 422, "config.tags"],
  ["POST", "/assistants/agent/latest", {}, 422, "version"],
  ["POST", "/assistants/agent/latest", { version: 0 }, 422, "version"],
  ["POST", "/assistants/agent/latest", { version: 1.5 }, 422, "version"],
  ["POST", "/assistants/agent/versions", { limit: 0 }, 422, "limit"],
  ["POST", "/assistants/agent/versions", { metadata: [] }, 422, "metadata"],
  ["POST", "/assistants/count", { graph_id: 1 }, 422, "graph_id"],
  ["GET", "/assistants/agent/graph?xray=deep", undefined, 422, "xray"],
  ["GET", "/assistants/agent/graph?xray=-1", undefined, 422, "xray"],
  ["GET", "/assistants/agent/subgraphs?recurse=maybe", undefined, 422, "recurse"],
  ["POST", "/assistants/search", { limit: 0 }, 422, "limit"],
  ["POST", "/assistants/search", { limit: 1001 }, 422, "limit"],
  ["POST", "/assistants/search", { offset: -1 }, 422, "offset"],
  ["POST", "/assistants/search", { name: 1 }, 422, "name"],
  ["POST", "/assistants/search", { sort_by: "config" }, 422, "sort_by"],
  ["POST", "/assistants/search", { select: ["nope"] }, 422, "select[0]"],
];

describe("refused", () => {
  test.each(refused)("%s %s %j: %i, naming %s", async (method, url, body, status, at) => {
    const { ask, asked } = protocol();
    const answer = await ask(method, url, body);
    expect(answer.status).toBe(status);
    expect(answer.headers["content-type"]).toBe("application/json");
    const { detail, errors } = answer.json as { detail: string; errors?: { at: string; message: string }[] };
    expect(detail).not.toBe("");
    expect(errors?.[0]?.at).toBe(at);
    expect(asked.filter(({ what }) => /create|cancel|follow/.test(what))).toEqual([]);
  });

  test("nothing gets into the prototype of objects", async () => {
    const { ask } = protocol();
    await ask(
      "POST",
      "/threads",
      '{"metadata":{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}}',
    );
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });

  test("several wrong fields are all named", async () => {
    const { ask } = protocol();
    const answer = await ask("POST", RUNS, { multitask_strategy: "x", durability: "y" });
    const { errors } = answer.json as { errors: { at: string }[] };
    expect(errors.map(({ at }) => at).sort()).toEqual(["assistant_id", "durability", "multitask_strategy"]);
  });

  test("what may be chosen is told", async () => {
    const { ask } = protocol();
    const answer = await ask("POST", RUNS, { assistant_id: "agent", multitask_strategy: "x" });
    expect(answer.json["detail"]).toBe(
      "multitask_strategy must be one of reject, enqueue, interrupt, rollback",
    );
  });
});

describe("tolerated", () => {
  const taken: readonly (readonly [string, unknown])[] = [
    [
      "null is as good as missing",
      { assistant_id: "agent", input: null, command: null, webhook: null, config: null },
    ],
    ["unknown fields", { assistant_id: "agent", streamMode: ["values"], assistantId: "agent", nonsense: {} }],
    [
      "fields that ask for nothing",
      { assistant_id: "agent", after_seconds: 0, if_not_exists: "reject", feedback_keys: [] },
    ],
    ["any input", { assistant_id: "agent", input: [1, "two", null] }],
    ["whole surrogate pairs, escaped", '{"assistant_id": "agent", "input": "\\ud83d\\ude00 \\\\ud83d"}'],
    ["every node as a breakpoint", { assistant_id: "agent", interrupt_before: "*", interrupt_after: [] }],
    ["a resume with null", { assistant_id: "agent", command: { resume: null } }],
    [
      "a jump with a Send",
      { assistant_id: "agent", command: { goto: ["a", { node: "b", input: 1 }], update: [["k", 1]] } },
    ],
    [
      "all modes that are rendered",
      { assistant_id: "agent", stream_mode: ["values", "updates", "custom", "messages-tuple"] },
    ],
  ];
  test.each(taken)("%s", async (_, body) => {
    const { ask } = protocol();
    const answer = await ask("POST", RUNS, body);
    expect([answer.status, answer.json["status"]]).toEqual([200, "pending"]);
  });

  test("an empty body is an empty object", async () => {
    const { ask, asked } = protocol();
    expect((await ask("POST", "/threads")).status).toBe(200);
    expect((await ask("POST", "/assistants/search", "")).status).toBe(200);
    expect(asked.map(({ what }) => what)).toEqual(["threads.create", "assistants.search"]);
  });

  test("a resume with null stays one, a missing resume is none", async () => {
    const { ask, asked } = protocol();
    await ask("POST", RUNS, { assistant_id: "agent", command: { resume: null } });
    await ask("POST", RUNS, { assistant_id: "agent", command: { update: {} } });
    const commands = asked.map(({ args }) => (args[1] as { command: object }).command);
    expect(commands.map((command) => "resume" in command)).toEqual([true, false]);
  });

  test("a thread's id is taken in lower case", async () => {
    const { ask, asked } = protocol();
    await ask("GET", `/threads/${THREAD.toUpperCase()}`);
    await ask("POST", "/threads", { thread_id: THREAD.toUpperCase() });
    expect(asked[0]?.args[0]).toEqual({ tenant: "_", thread: THREAD });
    expect(asked[1]?.args[1]).toMatchObject({ thread_id: THREAD });
  });
});
