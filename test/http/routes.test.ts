import { describe, expect, test } from "vitest";
import { type ErrorCode, ServiceError } from "../../src/model/errors.ts";
import { toIso } from "../../src/model/time.ts";
import { agent, protocol, RUN, runRecord, THREAD } from "./support.ts";

const RUNS = `/threads/${THREAD}/runs`;
const ONE = `${RUNS}/${RUN}`;
const body = { assistant_id: "agent", input: { a: 1 } };

describe("where things are", () => {
  test("a created run says where it is, and is pending whatever it does by now", async () => {
    const { ask } = protocol();
    const answer = await ask("POST", RUNS, body);
    expect(answer.headers["content-location"]).toBe(ONE);
    expect(answer.json).toMatchObject({ run_id: RUN, status: "pending", multitask_strategy: "reject" });
    expect((await ask("GET", ONE)).json["status"]).toBe("running");
  });

  test.each([
    ["POST", `${RUNS}/stream`, "stream", "text/event-stream"],
    ["POST", `${RUNS}/wait`, "join", "application/json"],
    ["GET", `${ONE}/stream`, "stream", "text/event-stream"],
    ["GET", `${ONE}/join`, "join", "application/json"],
  ])("%s %s: Location ends with %s", async (method, url, end, type) => {
    const { ask } = protocol();
    const answer = await ask(method, url, method === "POST" ? body : undefined);
    expect(answer.status).toBe(200);
    expect(answer.headers).toMatchObject({
      "content-type": type,
      "content-location": ONE,
      location: `${ONE}/${end}`,
    });
  });

  test("streams are not to be held back by those between", async () => {
    const { ask } = protocol();
    const { headers } = await ask("POST", `${RUNS}/stream`, body);
    expect(headers["cache-control"]).toBe("no-cache, no-transform");
    expect(headers["x-accel-buffering"]).toBe("no");
  });
});

describe("waiting", () => {
  test("an outcome that is there soon is answered in one piece", async () => {
    const { ask, timers } = protocol({ runs: { result: () => Promise.resolve({ a: 2 }) } });
    const answer = await ask("POST", `${RUNS}/wait`, body);
    expect([answer.streamed, answer.json]).toEqual([false, { a: 2 }]);
    timers.advance(4_000);
    expect(timers.pending).toBe(0);
  });

  test("else the head goes out soon, blanks while it lasts, the outcome at the end", async () => {
    let end: (values: object) => void = () => undefined;
    const { begin, timers } = protocol({
      runs: { result: () => new Promise((resolve) => (end = resolve as typeof end)) },
    });
    const answer = begin("POST", `${RUNS}/wait`, body);
    await answer.until(() => timers.pending > 0);
    timers.advance(250);
    expect(answer.text).toBe("\n");
    timers.advance(4_000);
    expect(answer.text).toBe("\n\n\n");
    end({ a: 2 });
    await answer.until(({ ended }) => ended);
    expect(answer.json).toEqual({ a: 2 });
    timers.advance(4_000);
    expect(timers.pending).toBe(0);
    expect(answer.json).toEqual({ a: 2 });
  });

  test("an outcome that cannot be read is told as an error, never by silence", async () => {
    let fail: (cause: unknown) => void = () => undefined;
    const { begin, timers } = protocol({
      runs: { result: () => new Promise((_, reject) => (fail = reject)) },
    });
    const answer = begin("GET", `${ONE}/join`);
    await answer.until(() => timers.pending > 0);
    timers.advance(250);
    fail(new ServiceError("journal.damaged", "a record is damaged"));
    await answer.until(({ ended }) => ended);
    expect(answer.json).toEqual({ __error__: { error: "ServiceError", message: "a record is damaged" } });
  });

  test.each([
    [{ ...body, on_disconnect: "cancel" }, 1],
    [{ ...body, on_disconnect: "continue" }, 0],
    [body, 0],
  ])("the client leaves with %j: %i cancelled", async (asked, cancelled) => {
    for (const way of ["wait", "stream"]) {
      const given = protocol({ runs: { result: () => new Promise(() => undefined) } }, "wait");
      const answer = given.begin("POST", `${RUNS}/${way}`, asked);
      await answer.until(() => given.timers.pending > 0);
      given.timers.advance(250);
      await answer.until(({ streamed }) => streamed);
      answer.abort();
      expect(given.asked.filter(({ what }) => what === "runs.cancel")).toHaveLength(cancelled);
      given.timers.advance(60_000);
      expect(given.timers.pending).toBe(0);
    }
  });

  test("a client that has left during the admission is not forgotten", async () => {
    const given = protocol();
    const answer = given.begin("POST", `${RUNS}/wait`, { ...body, on_disconnect: "cancel" });
    answer.abort();
    const cancelled = () => given.asked.some(({ what }) => what === "runs.cancel");
    await answer.until(cancelled);
    expect(cancelled()).toBe(true);
  });

  test.each([
    ["1", 1],
    ["true", 1],
    ["YES", 1],
    ["0", 0],
    ["false", 0],
    ["no", 0],
    ["", 0],
  ])("join with cancel_on_disconnect=%s", async (flag, cancelled) => {
    const given = protocol({ runs: { result: () => new Promise(() => undefined) } });
    const answer = given.begin("GET", `${ONE}/join?cancel_on_disconnect=${flag}`);
    await answer.until(() => given.timers.pending > 0);
    answer.abort();
    expect(given.asked.filter(({ what }) => what === "runs.cancel")).toHaveLength(cancelled);
  });
});

describe("streams", () => {
  test("a comment goes out with the head, before there is any event", async () => {
    const { begin } = protocol({}, "wait");
    const answer = begin("POST", `${RUNS}/stream`, body);
    await answer.until(({ streamed }) => streamed);
    expect(answer.text).toBe(": heartbeat\n");
  });

  test("a heartbeat every five seconds", async () => {
    const { begin, timers } = protocol({}, "wait");
    const answer = begin("GET", `${ONE}/stream`);
    await answer.until(({ streamed }) => streamed);
    timers.advance(15_000);
    expect(answer.text).toBe(": heartbeat\n".repeat(4));
  });

  test("a log that is broken off cuts the connection: the client comes again", async () => {
    const { ask } = protocol({}, "cut");
    const answer = await ask("GET", `${ONE}/stream`);
    expect([answer.cut, answer.ended]).toEqual([true, false]);
  });

  test.each([
    [undefined, -1],
    ["-1", -1],
    ["-", -1],
    ["", -1],
    ["0", 0],
    ["17", 17],
    ["x17", -1],
    ["1e3", -1],
    ["99999999999999999999", -1],
  ])("Last-Event-ID %s goes on after %i", async (header, after) => {
    const { ask, asked } = protocol();
    await ask("GET", `${ONE}/stream`, undefined, header === undefined ? {} : { "last-event-id": header });
    expect(asked.at(-1)).toMatchObject({
      what: "runs.follow",
      args: [expect.anything(), expect.anything(), after],
    });
  });

  test.each(["values,updates", '["values","updates"]', "values&stream_mode=updates", "", "messages-tuple"])(
    "stream_mode=%s is understood",
    async (modes) => {
      const { ask } = protocol();
      expect((await ask("GET", `${ONE}/stream?stream_mode=${encodeURI(modes)}`)).status).toBe(200);
    },
  );

  test("a created stream is read from its first event", async () => {
    const { ask, asked } = protocol();
    await ask("POST", `${RUNS}/stream`, body, { "last-event-id": "5" });
    expect(asked.at(-1)?.args[2]).toBe(-1);
  });

  test("HEAD: the head alone", async () => {
    const { ask, asked } = protocol();
    for (const end of ["stream", "join"]) {
      const answer = await ask("HEAD", `${ONE}/${end}`);
      expect([answer.status, answer.streamed, answer.headers["content-location"]]).toEqual([200, false, ONE]);
    }
    expect(asked.map(({ what }) => what)).not.toContain("runs.follow");
  });
});

describe("cancel", () => {
  test.each([
    ["", 202, "interrupt", false],
    ["?wait=0", 202, "interrupt", false],
    ["?wait=false&action=rollback", 202, "rollback", false],
    ["?wait=1", 204, "interrupt", true],
    ["?wait=true&action=interrupt", 204, "interrupt", true],
  ])("%s: %i with an empty body", async (query, status, action, wait) => {
    const { ask, asked } = protocol();
    const answer = await ask("POST", `${ONE}/cancel${query}`);
    expect([answer.status, answer.text]).toEqual([status, ""]);
    expect(asked.at(-1)?.args.slice(1)).toEqual([RUN, action, { wait }]);
    expect(answer.headers["location"]).toBe(wait ? `${ONE}/join` : undefined);
  });
});

describe("reading", () => {
  test("a page of runs, with the fields that were asked for", async () => {
    const { ask, asked } = protocol();
    const answer = await ask("GET", `${RUNS}?limit=5&offset=2&status=pending&select=run_id&select=status`);
    expect(JSON.parse(answer.text)).toEqual([{ run_id: RUN, status: "running" }]);
    expect(asked[0]?.args[1]).toEqual({ limit: 5, offset: 2, status: "pending" });
  });

  test.each([
    ["", {}],
    ["?subgraphs=false", {}],
    ["?select=values", { fields: new Set(["values"]) }],
    ["?select=values.messages", { fields: new Set(["values"]), keys: ["messages"] }],
    ["?select=values.a&select=values.b", { fields: new Set(["values"]), keys: ["a", "b"] }],
    ["?select=values.a,values", { fields: new Set(["values"]) }],
    ['?select=["next","values.a"]', { fields: new Set(["next", "values"]), keys: ["a"] }],
    ["?select=next,metadata", { fields: new Set(["next", "metadata"]) }],
  ])("a state with %s", async (query, selection) => {
    const { ask, asked } = protocol();
    await ask("GET", `/threads/${THREAD}/state${query}`);
    expect(asked[0]?.args[1]).toEqual(selection);
  });

  test("assistants: the record, and pages that say whether there is more", async () => {
    const { ask } = protocol({
      assistants: { search: async () => ({ assistants: [agent, agent], total: 5 }) },
    });
    expect((await ask("GET", `/assistants/agent`)).json).toEqual({
      ...agent,
      created_at: toIso(agent.created_at),
      updated_at: toIso(agent.updated_at),
    });
    const page = await ask("POST", "/assistants/search", { limit: 2, offset: 2, select: ["graph_id"] });
    expect(JSON.parse(page.text)).toEqual([{ graph_id: "agent" }, { graph_id: "agent" }]);
    expect(page.headers).toMatchObject({ "x-pagination-next": "4", "x-pagination-total": "5" });
    const last = await protocol().ask("POST", "/assistants/search", {});
    expect(last.headers["x-pagination-next"]).toBeUndefined();
  });

  test("/ says to programs where to find what, also without a key", async () => {
    const { ask } = protocol();
    expect(await ask("GET", "/")).toMatchObject({
      status: 200,
      json: { ok: true, version: "0.0.0", docs: "/docs", openapi: "/openapi.json", health: "/ok" },
    });
  });

  test("/ok and /info", async () => {
    const { ask } = protocol();
    expect((await ask("GET", "/ok")).json).toEqual({ ok: true });
    expect((await ask("GET", "/info")).json).toMatchObject({ version: "0.0.0", flags: { assistants: true } });
  });
});

describe("failures", () => {
  test.each<[string, string]>([
    ["GET", "/nope"],
    ["GET", "/threads"],
    ["PUT", "/threads"],
    ["GET", "/ok/"],
    ["GET", "/threads/%zz"],
    ["GET", `/threads/${THREAD}/`],
    ["GET", `${RUNS}/stream/x/y`],
    ["TRACE", "/ok"],
    ["GET", "/__proto__/constructor"],
  ])("%s %s: 404 as JSON", async (method, url) => {
    const { ask } = protocol();
    const answer = await ask(method, url);
    expect(answer.status).toBe(404);
    expect(answer.json).toMatchObject({ detail: "Not Found" });
  });

  test.each<[ErrorCode, number]>([
    ["thread.not_found", 404],
    ["thread.exists", 409],
    ["run.conflict", 409],
    ["resume.ambiguous", 422],
    ["resume.conflict", 409],
    ["assistant.not_found", 404],
    ["server.draining", 503],
    ["storage.unavailable", 503],
    ["journal.damaged", 500],
    ["body.too_large", 413],
  ])("%s is %i", async (code, status) => {
    const { ask } = protocol({
      runs: { start: () => Promise.reject(new ServiceError(code, "what it says")) },
    });
    for (const way of ["", "/stream", "/wait"]) {
      const answer = await ask("POST", `${RUNS}${way}`, body);
      expect([answer.status, answer.streamed]).toEqual([status, false]);
      expect(answer.json).toEqual({ detail: "what it says", code });
      expect(answer.headers["retry-after"]).toBe(status === 503 ? "1" : undefined);
    }
  });

  test("what is not ours is told to the log, not to the client", async () => {
    const secret = new Error("the password is 1234");
    const { ask, logged } = protocol({ threads: { get: () => Promise.reject(secret) } });
    const answer = await ask("GET", `/threads/${THREAD}`);
    expect(answer.status).toBe(500);
    expect(answer.text).toBe('{"detail":"Internal server error"}');
    expect(logged.join()).toContain("the password is 1234");
  });

  test.each<[ErrorCode, string]>([
    ["storage.unavailable", "debug"],
    ["server.draining", "debug"],
    ["server.busy", "info"],
  ])(
    "%s, which clients may meet thousands of times, is a line without a stack, at the level %s",
    async (code, level) => {
      const cause = new ServiceError(code, "what it says", { cause: new Error("full") });
      const { ask, logged } = protocol({ runs: { start: () => Promise.reject(cause) } });
      await ask("POST", RUNS, body);
      expect(logged).toEqual([
        expect.stringMatching(new RegExp(`^${level} a request was refused .*${code}`)),
      ]);
      expect(logged.join()).not.toContain(".ts:");
    },
  );

  test("records carry times with an offset", () => {
    expect(toIso(runRecord().created_at)).toBe("2026-11-20T12:00:00.005+00:00");
  });
});
