import { expect, test } from "vitest";
import { check } from "../../src/cli/maintenance.ts";
import { graph, list, value } from "../../src/index.ts";
import { authenticate, headersOf, type Name, owned } from "./support/auth.ts";
import { gated } from "./support/latches.ts";
import { directory, serve, type Server } from "./support/server.ts";
import { isSharded } from "./support/suite-variant.ts";
import { NOBODY, newThread, post, postJson } from "./support/wire.ts";

interface Run {
  readonly run_id: string;
  readonly thread_id: string;
  readonly status: string;
}

/** Fails if its input says so. */
const work = graph({
  state: { log: list<string>(), fail: value("") },
  nodes: {
    go: async ({ fail }) => {
      if (fail !== "") throw new TypeError(fail);
      return { log: ["done"] };
    },
  },
  edges: { start: "go" },
});

type Search = { readonly [name: string]: unknown };

async function page({ url }: Server, search: Search = {}, headers: Record<string, string> = {}) {
  const response = await fetch(`${url}/runs/search`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(search),
  });
  expect(response.status).toBe(200);
  const runs = (await response.json()) as readonly Run[];
  return { runs, ids: runs.map(({ run_id }) => run_id), next: response.headers.get("x-pagination-next") };
}

const idsOf = async (server: Server, search?: Search) => (await page(server, search)).ids;

/** Runs the graph to its end. Resolves with the run's id. */
async function run({ url }: Server, thread: string, fail = "", more: Search = {}): Promise<string> {
  const body = { assistant_id: "work", input: { fail }, ...more };
  const { run_id } = await postJson<Run>(`${url}/threads/${thread}/runs`, body);
  await fetch(`${url}/threads/${thread}/runs/${run_id}/join`).then((response) => response.text());
  return run_id;
}

test("finds the runs of all threads, newest first, by what they are", async () => {
  const server = await serve({ graphs: { work } });
  const { url } = server;
  const [one, two] = [await newThread(url), await newThread(url)];
  const first = await run(server, one, "no such File");
  const second = await run(server, one, "", { metadata: { team: "red", nested: { level: 1 } } });
  const third = await run(server, two, "out of time", { metadata: { cron_id: "c/1" } });
  const { runs, next } = await page(server);
  expect(runs.map(({ run_id }) => run_id)).toEqual([third, second, first]);
  expect(next).toBeNull();
  expect(runs[2]).toMatchObject({
    thread_id: one,
    graph_id: "work",
    status: "error",
    attempt: 1,
    error: { error: "TypeError", message: "no such File" },
  });
  expect(runs[0]).not.toHaveProperty("kwargs");
  expect(runs[1]).toMatchObject({ status: "success", error: null, ended_at: expect.any(String) });
  const { assistant_id, created_at } = runs[1] as Run & { assistant_id: string; created_at: string };
  const cases: readonly (readonly [Search, readonly string[]])[] = [
    [{ sort_order: "asc" }, [first, second, third]],
    [{ status: "error" }, [third, first]],
    [{ status: "success" }, [second]],
    [{ status: "interrupted" }, []],
    [{ error: "FILE" }, [first]],
    [{ error: "typeerror" }, [third, first]],
    [{ error: "file", status: "success" }, []],
    [{ thread_id: one }, [second, first]],
    [{ thread_id: one, status: "error" }, [first]],
    [{ thread_id: NOBODY }, []],
    [{ graph_id: "work" }, [third, second, first]],
    [{ graph_id: "other" }, []],
    [{ assistant_id }, [third, second, first]],
    [{ assistant_id: NOBODY }, []],
    [{ metadata: { team: "red" } }, [second]],
    [{ metadata: { nested: { level: 2 } } }, []],
    [{ without_metadata: ["team"] }, [third, first]],
    [{ without_metadata: ["team", "cron_id"] }, [first]],
    [{ metadata: { cron_id: "c/1" } }, [third]],
    [{ metadata: { cron_id: "c/1" }, status: "error", created_after: created_at }, [third]],
    [{ metadata: { cron_id: "c/1", team: "red" } }, []],
    [{ metadata: { cron_id: "c" } }, []],
    [{ metadata: { cron_id: "c/1" }, status: "pending" }, []],
    [{ created_after: created_at }, [third, second]],
    [{ created_before: created_at }, [first]],
    [{ thread_id: one, created_before: created_at }, [first]],
    [{ created_after: "2999-01-01" }, []],
  ];
  for (const [search, expected] of cases)
    expect({ search, ids: await idsOf(server, search) }).toEqual({ search, ids: expected });
});

test("a cursor goes through all runs in pages, which runs that come later do not move", async () => {
  const server = await serve({ graphs: { work } });
  const [one, two] = [await newThread(server.url), await newThread(server.url)];
  const made: string[] = [];
  for (let i = 0; i < 7; i++)
    made.push(
      await run(server, i % 2 ? one : two, i % 3 ? "" : "bad", i < 5 ? { metadata: { cron_id: "c" } } : {}),
    );
  const newest = made.toReversed();
  const metadata = { cron_id: "c" };
  for (const search of [
    {},
    { sort_order: "asc" },
    { status: "error" },
    { thread_id: one },
    { metadata },
    { metadata, sort_order: "asc" },
  ] as const) {
    const all = await idsOf(server, search);
    const found: string[] = [];
    let cursor: string | null = null;
    do {
      const { ids, next }: { ids: string[]; next: string | null } = await page(server, {
        ...search,
        limit: 2,
        ...(cursor !== null && { cursor }),
      });
      found.push(...ids);
      cursor = next;
    } while (cursor !== null);
    expect(found).toEqual(all);
  }
  const { next } = await page(server, { limit: 2 });
  await run(server, one);
  expect(await idsOf(server, { limit: 2, cursor: next })).toEqual(newest.slice(2, 4));
  expect(await idsOf(server, { limit: 1000, cursor: next })).toEqual(newest.slice(2));
});

test("a run in progress, one that waits and a delayed one are told apart", async () => {
  const { held, waits, open } = gated();
  const server = await serve({ graphs: { held, work } });
  const { url } = server;
  const [busy, other] = [await newThread(url), await newThread(url)];
  const start = async (thread: string, assistant_id: string, more: Search = {}) =>
    (
      await postJson<Run>(`${url}/threads/${thread}/runs`, {
        assistant_id,
        input: { name: "a" },
        multitask_strategy: "enqueue",
        ...more,
      })
    ).run_id;
  await run(server, other);
  const running = await start(busy, "held");
  await waits("a");
  const queued = await start(busy, "held");
  const delayed = await start(other, "work", { after_seconds: 3600, input: {} });
  expect(await idsOf(server, { status: "running" })).toEqual([running]);
  expect(await idsOf(server, { status: "pending" })).toEqual([delayed, queued]);
  expect(await idsOf(server, { status: "pending", sort_order: "asc", limit: 1 })).toEqual([queued]);
  expect((await page(server)).runs.map(({ status }) => status)).toEqual([
    "pending",
    "pending",
    "running",
    "success",
  ]);
  open("a");
});

// With several shards, the directory is not one that can be checked as a whole.
test.skipIf(isSharded)("runs that are deleted are gone, and so are those of a deleted thread", async () => {
  const data = await directory();
  const server = await serve({ graphs: { work }, data });
  const { url } = server;
  const [one, two] = [await newThread(url), await newThread(url)];
  const kept = await run(server, one, "bad");
  const removed = await run(server, one, "bad");
  await run(server, two, "bad");
  await fetch(`${url}/threads/${one}/runs/${removed}`, { method: "DELETE" });
  await fetch(`${url}/threads/${two}`, { method: "DELETE" });
  // Runs without a thread are deleted.
  await postJson(`${url}/runs/wait`, { assistant_id: "work", input: { fail: "bad" } });
  expect(await idsOf(server)).toEqual([kept]);
  expect(await idsOf(server, { status: "error" })).toEqual([kept]);
  await server.close(0);
  const lines: string[] = [];
  await check(data, (line) => lines.push(line));
  expect(lines).toEqual([`${data} is whole`]);
  expect(await idsOf(await serve({ graphs: { work }, data }))).toEqual([kept]);
});

test("the runs of another tenant are not there", async () => {
  const server = await serve({ graphs: { work }, keys: ["mine", "acme:theirs"] });
  const headers = { "x-api-key": "mine", "content-type": "application/json" };
  const ask = async (path: string, body: Search) =>
    (await fetch(`${server.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) })).json();
  const { thread_id } = (await ask("/threads", {})) as Run;
  await ask(`/threads/${thread_id}/runs/wait`, { assistant_id: "work", input: { fail: "bad" } });
  expect((await page(server, {}, headers)).runs).toHaveLength(1);
  for (const search of [{}, { status: "error" }, { status: "pending" }, { thread_id }])
    expect((await page(server, search, { "x-api-key": "theirs" })).runs).toEqual([]);
});

test("a user finds the runs of the threads that the rules let it search", async () => {
  const server = await serve({ graphs: { work }, auth: owned() });
  const start = async (name: Name) => {
    const headers = { ...headersOf(name), "content-type": "application/json" };
    const ask = async (path: string, body: Search) =>
      (await fetch(`${server.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) })).json();
    const { thread_id } = (await ask("/threads", {})) as Run;
    await ask(`/threads/${thread_id}/runs/wait`, { assistant_id: "work", input: {} });
    return thread_id;
  };
  const [alice, bob] = [await start("alice"), await start("bob")];
  const threadsOf = async (name: Name, search?: Search) =>
    (await page(server, search, headersOf(name))).runs.map(({ thread_id }) => thread_id);
  expect(await threadsOf("alice")).toEqual([alice]);
  expect(await threadsOf("bob")).toEqual([bob]);
  expect(await threadsOf("bob", { thread_id: alice })).toEqual([]);
});

test("a user whom the rules let search nothing gets 403", async () => {
  const { Auth } = await import("@langchain/langgraph-sdk/auth");
  const auth = new Auth().authenticate(authenticate).on("threads:search", () => false);
  const { url } = await serve({ graphs: { work }, auth });
  const refused = await fetch(`${url}/runs/search`, {
    method: "POST",
    headers: headersOf("bob"),
    body: "{}",
  });
  expect(refused.status).toBe(403);
});

test("what is wrong in a search is named", async () => {
  const { url } = await serve();
  const response = await post(`${url}/runs/search`, { status: "done", created_after: "soon" });
  expect(response.status).toBe(422);
  expect(await response.text()).toContain("status");
});

test("tells of each run whether its thread waits for an answer because of it, and which run resumed it", async () => {
  let isMended = false;
  const asking = graph({
    state: { log: list<string>() },
    nodes: {
      go: async () => {
        if (!isMended) throw new TypeError("no such file");
        return {};
      },
      ask: async (_, ctx) => ({ log: [String(await ctx.interrupt("May it go out?"))] }),
    },
    edges: { start: "go", go: "ask" },
  });
  const server = await serve({ graphs: { asking } });
  const thread = await newThread(server.url);
  const runOn = (more: Search) =>
    postJson(`${server.url}/threads/${thread}/runs/wait`, { assistant_id: "asking", ...more });
  await runOn({ input: {} });
  await runOn({ input: {} });
  isMended = true;
  await runOn({ input: null });
  const plain = { is_latest: false, paused_at: null, resumed_by: null };
  const { runs, ids } = await page(server);
  expect(runs).toMatchObject([
    { ...plain, is_latest: true, paused_at: "question", status: "success" },
    { ...plain, resumed_by: ids[0], status: "error" },
    { ...plain, status: "error" },
  ]);
  expect(await idsOf(server, { paused: true })).toEqual(ids.slice(0, 1));
  expect(await idsOf(server, { paused: false })).toEqual(ids.slice(1));
  expect(await idsOf(server, { paused: true, status: "error" })).toEqual([]);
  await runOn({ command: { resume: "Yes" } });
  expect(await idsOf(server, { paused: true })).toEqual([]);
  expect((await page(server)).runs.slice(0, 2)).toMatchObject([{ ...plain, is_latest: true }, plain]);
  await runOn({ input: {}, interrupt_after: ["go"] });
  expect((await page(server, { limit: 1 })).runs).toMatchObject([{ paused_at: "breakpoint" }]);
});
