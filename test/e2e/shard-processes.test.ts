import { existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { Client } from "@langchain/langgraph-sdk";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { shardOf } from "../../src/model/shard-of.ts";
import { build, heddle, Running } from "../config/process.ts";
import { connect, Home } from "../config/project.ts";
import { lines } from "./support/clients.ts";
import { inspect } from "./support/inspected.ts";
import { dial, type Dialed } from "./support/sockets.ts";

const SHARDS = 2;
const STEPS = 12;
const home = new Home({ isInstalled: true });
// What the file of the users imports.
symlinkSync(
  join(import.meta.dirname, "../../node_modules/@langchain"),
  join(home.path, "node_modules/@langchain"),
);
afterAll(() => home.remove());
beforeAll(build, 120_000);

const GRAPHS = `
import { END, graph, list, value } from "heddle";

/** Says in which process it ran. */
export const where = graph({
  state: { pid: value(0), name: value("") },
  nodes: {
    tell: async ({ name }, ctx) => {
      await ctx.store.put([name], "done", { name });
      return { pid: process.pid };
    },
  },
  edges: { start: "tell" },
});

/** Blocks the event loop of its process at the first attempt, for some seconds or for good. */
export const blocking = graph({
  state: { seconds: value(0), pid: value(0) },
  nodes: {
    block: async ({ seconds }, ctx) => {
      const until = Date.now() + seconds * 1000;
      while (ctx.attempt === 1 && Date.now() < until);
      return { pid: process.pid };
    },
  },
  edges: { start: "block" },
});

/** Takes longer than a stop waits for. */
export const slow = graph({
  state: { log: list() },
  nodes: {
    sleep: async (_, ctx) => {
      if (ctx.attempt === 1) await new Promise((resolve) => setTimeout(resolve, 20_000));
      return { log: ["done"] };
    },
  },
  edges: { start: "sleep" },
});

/** Counts in steps that take some time. */
export const count = graph({
  state: { log: list() },
  nodes: {
    step: async ({ log }) => {
      await new Promise((resolve) => setTimeout(resolve, 40));
      return { log: [log.length] };
    },
  },
  edges: { start: "step", step: ({ log }) => (log.length < ${STEPS} ? "step" : END) },
});
`;

const config = home.project("shards", {
  "heddle.json": {
    graphs: {
      where: "./graphs.ts:where",
      count: "./graphs.ts:count",
      slow: "./graphs.ts:slow",
      blocking: "./graphs.ts:blocking",
    },
  },
  "graphs.ts": GRAPHS,
  "package.json": { type: "module" },
});
const graphs = { where: "./graphs.ts:where", count: "./graphs.ts:count" };

/** Starts a server that ends with the test, unless `atEnd` is given. Its processes end before the folder of their data is deleted. */
async function start(
  data: string,
  env: Record<string, string> = {},
  atEnd: (end: () => Promise<void>) => void = onTestFinished,
  file = config,
): Promise<Running> {
  const args = ["--config", file, "--data", data, "--shards", String(SHARDS)];
  const server = await Running.start(args, env, () => undefined);
  atEnd(async () => void (await server.stop()));
  return server;
}

const counted = Array.from({ length: STEPS }, (_, i) => i);

/** New threads, some in each shard. */
async function threadsOf(client: ReturnType<typeof connect>, each: number): Promise<string[][]> {
  const found: string[][] = Array.from({ length: SHARDS }, () => []);
  for (let i = 0; i < SHARDS * each; i++) {
    const thread_id = idIn(i % SHARDS);
    // oxlint-disable-next-line no-await-in-loop -- in order
    await client.threads.create({ threadId: thread_id });
    found[i % SHARDS]?.push(thread_id);
  }
  return found;
}

/** A new id in a shard. */
function idIn(shard: number): string {
  for (;;) {
    const id = crypto.randomUUID();
    if (shardOf(id, SHARDS) === shard) return id;
  }
}

describe("processes that share a port", () => {
  let server: Running;
  let stop: (() => Promise<void>) | undefined;
  beforeAll(async () => {
    server = await start(home.data("shared"), {}, (end) => (stop = end));
  }, 60_000);
  afterAll(() => stop?.());

  test.each(lines)(
    "serve the threads of all shards, each in a process of its own, over %s",
    async (_, open) => {
      const client = open(server.url);
      const threads = await threadsOf(client, 3);
      const pids = await Promise.all(
        threads.map((ids) =>
          Promise.all(
            ids.map(async (id) => {
              const end = (await client.runs.wait(id, "where", { input: { name: id } })) as { pid: number };
              return end.pid;
            }),
          ),
        ),
      );
      expect(pids.map((found) => new Set(found).size)).toEqual([1, 1]);
      expect(new Set(pids.flat()).size).toBe(SHARDS);
      const states = await Promise.all(threads.flat().map((id) => client.threads.getState(id)));
      expect(states.map(({ values }) => (values as { pid: number }).pid)).toEqual(pids.flat());
    },
  );

  test("list and count the threads and runs of all shards", async () => {
    const client = connect(server);
    const ids = (await threadsOf(client, 4)).flat();
    await Promise.all(ids.map((id) => client.threads.update(id, { metadata: { group: "listed" } })));
    const found = [];
    for (let offset = 0; offset < ids.length; offset += 3) {
      const asked = { metadata: { group: "listed" }, limit: 3, offset, sortBy: "created_at" as const };
      // oxlint-disable-next-line no-await-in-loop -- page after page
      found.push(...(await client.threads.search(asked)));
    }
    const times = found.map(({ created_at }) => created_at);
    expect(times).toEqual(times.toSorted().toReversed());
    expect(found.map(({ thread_id }) => thread_id).toSorted()).toEqual(ids.toSorted());
    expect(await client.threads.count({ metadata: { group: "listed" } })).toBe(ids.length);
    const pruned = await fetch(`${server.url}/threads/prune`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ thread_ids: ids, strategy: "delete" }),
    });
    expect(await pruned.json()).toMatchObject({ pruned_count: ids.length });
    expect(await client.threads.count({ metadata: { group: "listed" } })).toBe(0);
  });

  test("have one store, one set of assistants, and crons that any process finds", async () => {
    const client = connect(server);
    const made = await client.assistants.create({ graphId: "where", name: "special" });
    const threads = (await threadsOf(client, 2)).flat();
    await Promise.all(
      threads.map((id) => client.runs.wait(id, made.assistant_id, { input: { name: `of ${id}` } })),
    );
    const items = await Promise.all(threads.map((id) => client.store.getItem([`of ${id}`], "done")));
    expect(items.map((item) => item?.value)).toEqual(threads.map((id) => ({ name: `of ${id}` })));
    const namespaces = await client.store.listNamespaces({ limit: 1000 });
    expect(namespaces.namespaces.flat()).toEqual(expect.arrayContaining(threads.map((id) => `of ${id}`)));
    const crons = await Promise.all(
      threads.map((id) => client.crons.createForThread(id, made.assistant_id, { schedule: "0 0 1 1 *" })),
    );
    expect(await client.crons.search({ limit: 100 })).toHaveLength(crons.length);
    await client.assistants.delete(made.assistant_id);
    expect(await client.crons.search({ limit: 100 })).toEqual([]);
    const missing = client.runs.wait(threads[0] as string, made.assistant_id, { input: {} });
    await expect(missing).rejects.toThrow(/404/);
  });

  test("use an assistant as it is after each change, at once and in every process", async () => {
    const client = connect(server);
    const made = await client.assistants.create({ graphId: "blocking" });
    const graphOfNextRuns = async (): Promise<readonly string[]> => {
      const threads = (await threadsOf(client, 2)).flat();
      const results = await Promise.all(
        threads.map((id) => client.runs.wait(id, made.assistant_id, { input: {} })),
      );
      return [...new Set(results.map((values) => ("seconds" in values ? "blocking" : "count")))];
    };
    const seen: (readonly string[])[] = [await graphOfNextRuns()];
    for (const graphId of ["count", "blocking", "count", "blocking"]) {
      // oxlint-disable-next-line no-await-in-loop -- one change after the other
      await client.assistants.update(made.assistant_id, { graphId });
      // oxlint-disable-next-line no-await-in-loop -- after the change
      seen.push(await graphOfNextRuns());
    }
    expect(seen).toEqual([["blocking"], ["count"], ["blocking"], ["count"], ["blocking"]]);
    await client.assistants.setLatest(made.assistant_id, 2);
    expect(await graphOfNextRuns()).toEqual(["count"]);
  });

  test("stream runs of all shards, and from any id on", async () => {
    const client = connect(server);
    const threads = (await threadsOf(client, 2)).flat();
    const streams = await Promise.all(
      threads.map(async (id) => {
        const events = [];
        const asked = { input: {}, streamMode: "updates" as const, streamResumable: true };
        for await (const event of client.runs.stream(id, "count", asked)) events.push(event);
        const run = (await client.runs.list(id))[0]?.run_id as string;
        const later = [];
        const from = events[4]?.id as string;
        for await (const event of client.runs.joinStream(id, run, { lastEventId: from })) later.push(event);
        return { events, later };
      }),
    );
    for (const { events, later } of streams) {
      const updates = events.filter(({ event }) => event === "updates");
      expect(updates.map(({ data }) => data)).toEqual(counted.map((i) => ({ step: { log: [i] } })));
      const ids = events.flatMap(({ id }) => (id === undefined ? [] : [id]));
      expect(later.flatMap(({ id }) => (id === undefined ? [] : [id]))).toEqual(
        ids.slice(ids.indexOf(events[4]?.id as string) + 1),
      );
    }
  });

  test("start one run for an idempotency key, whichever process gets it", async () => {
    const asked = () =>
      fetch(`${server.url}/runs/wait`, {
        method: "POST",
        headers: { "content-type": "application/json", "idempotency-key": "only one", connection: "close" },
        body: JSON.stringify({ assistant_id: "where", input: { name: "key" }, on_completion: "keep" }),
      });
    const answers = await Promise.all(Array.from({ length: 8 }, asked));
    const runs = new Set(answers.map((answer) => answer.headers.get("content-location")));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(runs.size).toBe(1);
  });

  test("serve the sockets of threads in all shards, and one feed of all actors", async () => {
    const client = connect(server);
    const threads = (await threadsOf(client, 2)).flat();
    const feed = inspect(server.url);
    for (const id of threads) {
      // oxlint-disable-next-line no-await-in-loop -- in order
      const socket = await dial(`${server.url}/threads/${id}/stream`);
      socket.socket.send(
        JSON.stringify({ id: 1, type: "run", assistant_id: "where", input: { name: "live" } }),
      );
      // oxlint-disable-next-line no-await-in-loop -- in order
      await expect.poll(() => socket.frames.some(({ event }) => event === "values")).toBe(true);
      // oxlint-disable-next-line no-await-in-loop -- in order
      await feed.until(({ thread_id, kind }) => kind === "run" && thread_id === id);
      socket.socket.close();
    }
  });

  test("send a socket no more than its client takes, and then everything", async () => {
    const client = connect(server);
    const [thread = ""] = (await threadsOf(client, 1)).flat();
    // Each of its steps sends the whole state.
    const input = { log: ["x".repeat(1_000_000)] };
    await client.runs.wait(thread, "count", { input });
    const dialed = await Promise.all(
      Array.from({ length: 8 }, () =>
        dial(`${server.url}/threads/${thread}/stream?last_event_id=-1&stream_mode=values`),
      ),
    );
    const [first, ...others] = dialed;
    for (const { socket } of others) socket.pause();
    const isWhole = ({ frames }: Dialed) => frames.at(-1)?.event === "run_done";
    await first?.until(isWhole);
    for (const { socket } of others) socket.resume();
    const all = await Promise.all(others.map((one) => one.until(isWhole)));
    for (const { frames } of all) expect(frames).toEqual(first?.frames);
  });

  test("pass on large requests and responses", async () => {
    const client = connect(server);
    const name = "x".repeat(3_000_000);
    const values = await Promise.all(
      [0, 1, 0, 1].map(async (shard) => {
        const { thread_id } = await client.threads.create({ threadId: idIn(shard), graphId: "where" });
        await client.threads.updateState(thread_id, { values: { name }, asNode: "tell" });
        return client.threads.getState(thread_id);
      }),
    );
    expect(values.map((state) => (state.values as { name: string }).name === name)).toEqual([
      true,
      true,
      true,
      true,
    ]);
  });

  test("tell the metrics of all of them", async () => {
    const client = connect(server);
    for (const id of (await threadsOf(client, 1)).flat())
      // oxlint-disable-next-line no-await-in-loop -- in order
      await client.runs.wait(id, "where", { input: { name: "measured" } });
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    for (const shard of [0, 1]) {
      const ended = new RegExp(
        `^heddle_runs_ended_total\\{(?=.*status="success")(?=.*shard="${shard}").*\\} (\\d+)$`,
        "m",
      );
      expect(Number(ended.exec(metrics)?.[1])).toBeGreaterThan(0);
      expect(metrics).toMatch(new RegExp(`^heddle_info\\{.*shard="${shard}".*\\} 1$`, "m"));
      expect(metrics).toContain(`\nheddle_shard_up{shard="${shard}"} 1\n`);
    }
  });

  test("tell in time the figures of all but one that is stopped", async () => {
    const client = connect(server);
    const thread = idIn(1);
    await client.threads.create({ threadId: thread });
    const { pid } = (await client.runs.wait(thread, "where", { input: { name: "stopped" } })) as {
      pid: number;
    };
    const { totals, shards } = (await json<Info>(`${server.url}/info`)).heddle;
    expect(shards).toMatchObject([
      { shard: 0, up: true },
      { shard: 1, up: true, pid },
    ]);
    expect(new Set(shards.map((shard) => shard["pid"])).size).toBe(SHARDS);
    for (const [name, total] of Object.entries(totals))
      expect(
        shards.reduce((sum, shard) => sum + Number(shard[name]), 0),
        name,
      ).toBe(total);
    const counted = (history: History) => history.figures["shards_counted"]?.at(-1);
    // Entries are ten seconds apart, and the processes have not started at the same moment.
    await expect
      .poll(async () => counted(await json(`${server.url}/metrics/history`)), { timeout: 20_000 })
      .toBe(SHARDS);

    process.kill(pid, "SIGSTOP");
    try {
      const metrics = await anyAnswer(`${server.url}/metrics`);
      expect(metrics).toContain('\nheddle_shard_up{shard="0"} 1\nheddle_shard_up{shard="1"} 0\n');
      expect(metrics.match(/^.*shard="1".*$/gm)).toEqual(['heddle_shard_up{shard="1"} 0']);
      expect(metrics).toMatch(/^heddle_runs_ended_total\{.*shard="0".*\} \d+$/m);
      const during = (JSON.parse(await anyAnswer(`${server.url}/info`)) as Info).heddle;
      expect(during.shards).toMatchObject([{ shard: 0, up: true }, { shard: 1 }]);
      expect(during.shards[1]).toEqual({ shard: 1, up: false });
      expect(during.totals["memory_bytes"]).toBe(during.shards[0]?.["memory_bytes"]);
      expect(counted(JSON.parse(await anyAnswer(`${server.url}/metrics/history`)) as History)).toBe(1);
    } finally {
      process.kill(pid, "SIGCONT");
    }
    await expect
      .poll(() => anyAnswer(`${server.url}/metrics`), { timeout: 20_000 })
      .toContain('\nheddle_shard_up{shard="1"} 1\n');
  });

  test("answer requests that need a process that hangs with 503, and serve all others", async () => {
    const client = connect(server);
    const [own, other] = [idIn(0), idIn(1)];
    await Promise.all([own, other].map((id) => client.threads.create({ threadId: id })));
    const end = await client.runs.wait(other, "where", { input: { name: "hung" } });
    const { pid } = end as { pid: number };
    process.kill(pid, "SIGSTOP");
    try {
      const answers = await Promise.all([
        // Needs all shards, so the process that has the request calls the others.
        firstAnswer(`${server.url}/threads/search`, { method: "POST", body: "{}" }),
        // These are forwarded as they are.
        firstAnswer(`${server.url}/threads/${other}`),
        firstAnswer(`${server.url}/threads/${other}/state`, { method: "POST", body: '{"values":{}}' }),
      ]);
      for (const { status, headers, body } of answers) {
        expect([status, headers.get("retry-after"), JSON.parse(body)]).toMatchObject([
          503,
          "1",
          { code: "storage.unavailable", detail: expect.stringContaining("has not responded for 8 seconds") },
        ]);
      }
      expect(JSON.parse(answers[2]?.body ?? "")).toMatchObject({
        detail: expect.stringContaining("whether the request was carried out is not known"),
      });
      expect(await firstAnswer(`${server.url}/threads/${own}`)).toMatchObject({ status: 200 });
    } finally {
      process.kill(pid, "SIGCONT");
    }
    await expect.poll(async () => (await firstAnswer(`${server.url}/threads/${other}`)).status).toBe(200);
  });

  test("keep a limited number of a client's messages while the process of its thread cannot be reached", async () => {
    const client = connect(server);
    const thread = idIn(1);
    await client.threads.create({ threadId: thread });
    const { pid } = (await client.runs.wait(thread, "where", { input: { name: "x" } })) as { pid: number };
    const command = (id: number, name = "kept") =>
      JSON.stringify({
        id,
        type: "run",
        assistant_id: "where",
        input: { name },
        multitask_strategy: "enqueue",
      });
    const opened: Dialed[] = [];
    process.kill(pid, "SIGSTOP");
    try {
      // The stopped process gets some of the connections, and does not open these.
      for (let i = 0; i < 24; i++)
        dial(`${server.url}/threads/${thread}/stream`).then(
          (socket) => opened.push(socket),
          () => undefined,
        );
      await expect.poll(() => opened.length).toBeGreaterThan(2);
      const [many, large, few] = opened as [Dialed, Dialed, Dialed];
      for (let id = 0; id < 65; id++) many.send(command(id));
      for (let id = 0; id < 2; id++) large.send(command(id, "x".repeat(600_000)));
      for (let id = 0; id < 3; id++) few.send(command(id));
      const closed = { code: 1008, reason: "Too many commands whose answers were not taken" };
      expect(await Promise.all([many.closed, large.closed])).toEqual([closed, closed]);
      process.kill(pid, "SIGCONT");
      await few.until(({ answers }) => answers.length === 3);
      expect(few.answers.map(({ type, id }) => [type, id])).toEqual([0, 1, 2].map((id) => ["ack", id]));
    } finally {
      process.kill(pid, "SIGCONT");
    }
    await expect.poll(async () => (await client.runs.list(thread)).length).toBe(4);
  });

  test("answer errors as one server does", async () => {
    const missing = await Promise.all(
      [0, 1].map(async (shard) => (await fetch(`${server.url}/threads/${idIn(shard)}`)).status),
    );
    expect(missing).toEqual([404, 404]);
    const invalid = await Promise.all(
      [0, 1].map(async (shard) => {
        const answer = await fetch(`${server.url}/threads/${idIn(shard)}/runs`, {
          method: "POST",
          body: "{",
        });
        return answer.status;
      }),
    );
    expect(invalid).toEqual([400, 400]);
  });
});

interface Info {
  readonly heddle: {
    readonly totals: Readonly<Record<string, number>>;
    readonly shards: readonly Readonly<Record<string, unknown>>[];
  };
}

interface History {
  readonly figures: Readonly<Record<string, readonly (number | null)[]>>;
}

const json = async <T>(url: string, headers: Record<string, string> = {}): Promise<T> =>
  (await (await fetch(url, { headers })).json()) as T;

const anyAnswer = async (url: string): Promise<string> => (await firstAnswer(url, {}, { ms: 8_000 })).body;

/**
 * Asks over several new connections, because a stopped process gets some of them and does not answer. Fails if no answer comes within `ms`
 * milliseconds.
 */
async function firstAnswer(url: string, request: RequestInit = {}, { ms = 25_000, times = 16 } = {}) {
  const others = new AbortController();
  const signal = AbortSignal.any([others.signal, AbortSignal.timeout(ms)]);
  const headers = { ...request.headers, connection: "close", "content-type": "application/json" };
  const asked = Array.from({ length: times }, async () => {
    const answer = await fetch(url, { ...request, headers, signal });
    return { status: answer.status, headers: answer.headers, body: await answer.text() };
  });
  try {
    return await Promise.any(asked);
  } finally {
    others.abort();
  }
}

test("a client cannot name another one, nor call a process", async () => {
  const server = await start(home.data("forged"), { HEDDLE_API_KEYS: "a:key-of-a,b:key-of-b" });
  const forged = Buffer.from(JSON.stringify({ tenant: "b" })).toString("base64");
  const [b = []] = await threadsOf(lines[0]?.[1](server.url, "key-of-b") as ReturnType<typeof connect>, 2);
  const ids = [...b, idIn(0), idIn(1)];
  for (const id of ids) {
    const path = `${server.url}/threads/${id}`;
    const headers = { "x-heddle-client": forged };
    // oxlint-disable-next-line no-await-in-loop -- in order
    expect((await fetch(path, { headers })).status).toBe(401);
    // oxlint-disable-next-line no-await-in-loop -- in order
    expect((await fetch(path, { headers: { ...headers, "x-api-key": "key-of-a" } })).status).toBe(404);
  }
  const call = await fetch(`${server.url}/heddle/call`, {
    method: "POST",
    headers: { "x-heddle-client": forged, "x-api-key": "key-of-a" },
    body: "x",
  });
  expect(call.status).toBe(404);
});

test("the figures of the processes need a key where there are keys", async () => {
  const server = await start(home.data("figures"), { HEDDLE_API_KEYS: "a:key-of-a" });
  const membersOf = async (headers: Record<string, string>) =>
    Object.keys((await json<Info>(`${server.url}/info`, headers)).heddle);
  expect(await membersOf({})).toEqual(["version", "transport"]);
  expect(await membersOf({ "x-api-key": "another" })).toEqual(["version", "transport"]);
  expect(await membersOf({ "x-api-key": "key-of-a" })).toEqual(["version", "transport", "totals", "shards"]);
});

const AUTH = `
import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";

export const auth = new Auth()
  .authenticate((request) => {
    const identity = request.headers.get("x-user");
    if (identity === null) throw new HTTPException(401, { message: "Who are you?" });
    return { identity, permissions: [] };
  })
  .on("*", ({ value, user }) => {
    if ("metadata" in value && value.metadata?.broken === true) throw new Error("the rule is broken");
    if ("metadata" in value) value.metadata = { ...value.metadata, owner: user.identity };
    return { owner: user.identity };
  });
`;

const withAuth = home.project("users", {
  "heddle.json": { graphs, auth: { path: "./auth.ts:auth" } },
  "auth.ts": AUTH,
  "graphs.ts": GRAPHS,
  "package.json": { type: "module" },
});

test("a user has what is theirs in all shards, and nothing else", async () => {
  const server = await start(home.data("users"), {}, undefined, withAuth);
  const clientOf = (name: string) =>
    new Client({ apiUrl: server.url, defaultHeaders: { "x-user": name }, callerOptions: { maxRetries: 0 } });
  const [alice, bob] = [clientOf("alice"), clientOf("b\u00f6b")];
  const ids = (await threadsOf(alice, 3)).flat();
  const others = (await threadsOf(bob, 2)).flat();
  const made = await alice.assistants.create({ graphId: "where" });
  await Promise.all(ids.map((id) => alice.runs.wait(id, made.assistant_id, { input: { name: "hers" } })));
  const mine = await alice.threads.search({ limit: 100 });
  expect(mine.map(({ thread_id }) => thread_id).toSorted()).toEqual(ids.toSorted());
  expect(await bob.threads.count()).toBe(others.length);
  await Promise.all(ids.map((id) => expect(bob.threads.get(id)).rejects.toThrow(/404/)));
  await Promise.all(
    others.map((id) => expect(bob.runs.wait(id, made.assistant_id, { input: {} })).rejects.toThrow(/404/)),
  );
  expect(await bob.assistants.search({ metadata: { owner: "alice" } })).toEqual([]);
  // Whichever process refuses a run, it says the same of an assistant that is another user's as of one that does not exist.
  for (let i = 0; i < 8; i++) {
    const refusals = [made.assistant_id, crypto.randomUUID()].map(async (assistant_id) => {
      const { status, body } = await firstAnswer(
        `${server.url}/threads/${others[i % others.length]}/runs`,
        { method: "POST", headers: { "x-user": "b\u00f6b" }, body: JSON.stringify({ assistant_id }) },
        { times: 1 },
      );
      return { status, body: body.replaceAll(assistant_id, "ID") };
    });
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    const [refused, absent] = await Promise.all(refusals);
    expect(refused?.status).toBe(404);
    expect(refused).toEqual(absent);
  }
  const anonymous = await Promise.all(
    ids.map(async (id) => (await fetch(`${server.url}/threads/${id}`)).status),
  );
  expect(new Set(anonymous)).toEqual(new Set([401]));
  const socket = await dial(`${server.url}/threads/${others[0]}/stream`, { headers: { "x-user": "alice" } });
  expect((await socket.closed).code).toBeGreaterThan(4000);
});

test("the cause of an error is logged, whichever process has it", async () => {
  const server = await start(home.data("broken-rule"), {}, undefined, withAuth);
  for (let i = 0; i < 8; i++) {
    // oxlint-disable-next-line no-await-in-loop -- in order
    const { status, body } = await firstAnswer(
      `${server.url}/threads`,
      {
        method: "POST",
        headers: { "x-user": "alice" },
        body: JSON.stringify({ thread_id: idIn(1), metadata: { broken: true } }),
      },
      { times: 1 },
    );
    expect([status, JSON.parse(body)]).toMatchObject([500, { code: "auth.failed" }]);
    expect(body).not.toContain("the rule is broken");
  }
  await server.printed("the rule is broken", 8);
});

test("a user's runs without a thread are in the shard that their idempotency key names", async () => {
  const server = await start(home.data("threadless"), {}, undefined, withAuth);
  for (let i = 0; i < 8; i++) {
    const asked = () =>
      fetch(`${server.url}/runs/wait`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          "x-user": "alice",
          "idempotency-key": `key ${i}`,
          connection: "close",
        },
        body: JSON.stringify({ assistant_id: "where", input: { name: "hers" }, on_completion: "keep" }),
      });
    // oxlint-disable-next-line no-await-in-loop -- in order
    const answers = await Promise.all([asked(), asked()]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    const [run = "", again] = answers.map(({ headers }) => headers.get("content-location"));
    expect(again).toBe(run);
    // oxlint-disable-next-line no-await-in-loop -- as above
    const found = await fetch(`${server.url}${run}/join`, { headers: { "x-user": "alice" } });
    expect(found.status).toBe(200);
  }
});

test("list the states of many threads without having all of them in memory", async () => {
  const THREADS = 120;
  const name = "x".repeat(2_000_000);
  const server = await start(home.data("many-states"));
  const client = connect(server);
  for (let i = 0; i < THREADS; i += 4)
    // oxlint-disable-next-line no-await-in-loop -- few at a time, so that the requests do not take much memory
    await Promise.all(
      [0, 1, 0, 1].map(async (shard) => {
        const { thread_id } = await client.threads.create({ threadId: idIn(shard), graphId: "where" });
        await client.threads.updateState(thread_id, { values: { name }, asNode: "tell" });
      }),
    );
  const before = await peaksOf(server);
  const response = await fetch(`${server.url}/threads/search`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ limit: 1000 }),
  });
  let bytes = 0;
  for await (const piece of response.body as ReadableStream<Uint8Array>) bytes += piece.length;
  expect(bytes).toBeGreaterThan(THREADS * name.length);
  const after = await peaksOf(server);
  const grown = after.map((peak, shard) => peak - (before[shard] ?? 0));
  expect(Math.max(...grown)).toBeLessThan(0.8 * bytes);
}, 60_000);

/** The largest amount of memory, in bytes, that each process of a server has used so far. */
async function peaksOf({ url }: Running): Promise<number[]> {
  const { heddle: found } = (await (await fetch(`${url}/info`)).json()) as {
    heddle: { shards: { pid: number }[] };
  };
  return found.shards.map(({ pid }) => {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
  });
}

test("a process that is killed is started again; nothing acknowledged is lost, and runs go on", async () => {
  const server = await start(home.data("killed"));
  const client = connect(server);
  const [, threads = []] = await threadsOf(client, 10);
  const { pid } = (await client.runs.wait(threads[0] as string, "where", { input: { name: "x" } })) as {
    pid: number;
  };
  const runs = await Promise.all(
    threads.map(async (id) => ({ id, run: (await client.runs.create(id, "count", { input: {} })).run_id })),
  );
  // Half of them are waited for, half of them streamed. Connections to the process that is killed break; those to the other one do not.
  const waits = runs.map(({ id, run }) => client.runs.join(id, run).catch(() => "broken"));
  const seen = runs.map(async ({ id, run }) => {
    const updates: unknown[] = [];
    let lastEventId: string | undefined;
    for (let tries = 0; tries < 200; tries++) {
      try {
        const options = lastEventId === undefined ? {} : { lastEventId };
        for await (const event of client.runs.joinStream(id, run, { streamMode: "updates", ...options })) {
          lastEventId = event.id ?? lastEventId;
          if (event.event === "updates") updates.push(event.data);
        }
        if (updates.length >= STEPS) return updates;
      } catch {
        await setTimeout(50);
      }
    }
    return updates;
  });
  await setTimeout(150);
  process.kill(pid, "SIGKILL");
  await server.printed("the process of a shard ended");
  const results = await Promise.all(waits);
  expect(results.filter((values) => values !== "broken").length).toBeGreaterThan(0);
  for (const values of results) if (values !== "broken") expect(values).toMatchObject({ log: counted });
  await expect.poll(async () => (await client.runs.list(threads[1] as string))[0]?.status).toBe("success");
  const states = await Promise.all(threads.map((id) => client.runs.list(id)));
  expect(states.flat().map(({ status }) => status)).not.toContain("error");
  for (const updates of await Promise.all(seen))
    expect(updates).toEqual(counted.map((i) => ({ step: { log: [i] } })));
  expect(await client.threads.count()).toBe(20);
});

test("a process that hangs is killed after the limit, and started again; one that computes for some seconds is not", async () => {
  const server = await start(home.data("hanging"), { HEDDLE_HANG_LIMIT: "10000" });
  const client = connect(server);
  const [[busy = ""] = [], [hanging = ""] = []] = await threadsOf(client, 1);
  const pidOf = async (id: string) =>
    ((await client.runs.wait(id, "where", { input: { name: "x" } })) as { pid: number }).pid;
  const [busyPid, hangingPid] = [await pidOf(busy), await pidOf(hanging)];
  const computing = await client.runs.create(busy, "blocking", { input: { seconds: 4 } });
  const run = await client.runs.create(hanging, "blocking", { input: { seconds: 3_600 } });
  const killed = "the process of a shard has not responded for 10 seconds and is killed";
  await server.printed(killed);
  await server.printed('"signal":"SIGKILL"');
  const ended = async (id: string, run_id: string) =>
    (await client.runs.get(id, run_id).catch(() => undefined))?.status;
  await expect.poll(() => ended(hanging, run.run_id)).toBe("success");
  await expect.poll(() => ended(busy, computing.run_id)).toBe("success");
  expect((await client.threads.getState(busy)).values).toMatchObject({ pid: busyPid });
  expect((await client.threads.getState(hanging)).values).not.toMatchObject({ pid: hangingPid });
  expect(isAlive(hangingPid)).toBe(false);
  const lines = server.output.split("\n").filter((line) => line.includes(killed));
  expect(lines).toEqual([expect.stringContaining('"shard":1')]);
});

describe("a process that does not accept requests after its start", () => {
  /** A project whose graphs hang while their process loads them, as long as there is a file. `how`: without or with turns of the event loop. */
  function hangingProject(name: string, how: "computes" | "waits"): { config: string; flag: string } {
    const flag = join(home.path, `${name}-hangs`);
    const hang =
      how === "computes"
        ? "while (existsSync(flag));"
        : "if (existsSync(flag)) await new Promise(() => setInterval(() => undefined, 1_000));";
    const config = home.project(name, {
      "heddle.json": { graphs },
      "graphs.ts": `
import { existsSync, writeFileSync } from "node:fs";
${GRAPHS}
const flag = ${JSON.stringify(flag)};
if (existsSync(flag)) writeFileSync(flag, String(process.pid));
${hang}
`,
      "package.json": { type: "module" },
    });
    return { config, flag };
  }
  const KILLED =
    "the process of a shard has not accepted requests 10 seconds after its start or its last progress, and is killed";

  test.each(["computes", "waits"] as const)(
    "is killed after the limit, and started again: it %s",
    async (how) => {
      const { config, flag } = hangingProject(`start-${how}`, how);
      const server = await start(
        home.data(`start-${how}`),
        { HEDDLE_START_LIMIT: "10000" },
        onTestFinished,
        config,
      );
      const client = connect(server);
      const [[id = ""] = []] = await threadsOf(client, 1);
      const wait = async () =>
        (await client.runs.wait(id, "where", { input: { name: "x" } })) as { pid: number };
      const { pid } = await wait();
      writeFileSync(flag, "");
      process.kill(pid, "SIGKILL");
      await server.printed(KILLED);
      rmSync(flag);
      await expect.poll(() => wait().catch(() => ({ pid }))).not.toEqual({ pid });
      const lines = server.output.split("\n").filter((line) => line.includes(KILLED));
      expect(lines).toEqual([expect.stringContaining('"shard":0')]);
    },
  );

  test("ends the first start of a server, with the reason", async () => {
    const { config, flag } = hangingProject("start-first", "computes");
    writeFileSync(flag, "");
    const starting = start(home.data("start-first"), { HEDDLE_START_LIMIT: "10000" }, onTestFinished, config);
    await expect(starting).rejects.toThrow(
      /ended with 1:[^]*the process of shard [01] has not accepted requests 10 seconds/,
    );
  });

  test("ends when the server is stopped meanwhile", async () => {
    const { config, flag } = hangingProject("start-stopped", "computes");
    const server = await start(home.data("start-stopped"), {}, onTestFinished, config);
    const client = connect(server);
    const [[id = ""] = []] = await threadsOf(client, 1);
    const { pid } = (await client.runs.wait(id, "where", { input: { name: "x" } })) as { pid: number };
    writeFileSync(flag, "");
    process.kill(pid, "SIGKILL");
    await expect.poll(() => readFileSync(flag, "utf8")).not.toBe("");
    const hanging = Number(readFileSync(flag, "utf8"));
    expect(await server.stop()).toBe(1);
    await expect.poll(() => isAlive(hanging)).toBe(false);
  });
});

test("a stop ends a process that hangs too", async () => {
  const data = home.data("hanging-stopped");
  const server = await start(data);
  const client = connect(server);
  const [, [hanging = ""] = []] = await threadsOf(client, 1);
  const { pid } = (await client.runs.wait(hanging, "where", { input: { name: "x" } })) as { pid: number };
  const run = await client.runs.create(hanging, "blocking", { input: { seconds: 3_600 } });
  const shards = async () => (JSON.parse(await anyAnswer(`${server.url}/info`)) as Info).heddle.shards;
  await expect.poll(shards).toMatchObject([{ up: true }, { up: false }]);
  expect(await server.stop()).toBe(1);
  await expect.poll(() => isAlive(pid)).toBe(false);
  const again = connect(await start(data));
  expect(await again.runs.join(hanging, run.run_id)).toMatchObject({ seconds: 3_600 });
});

test("a stop ends all processes, and another start has all that was stored", async () => {
  const data = home.data("stopped");
  const first = await start(data);
  const client = connect(first);
  const threads = (await threadsOf(client, 3)).flat();
  await Promise.all(threads.map((id) => client.runs.create(id, "count", { input: {} })));
  expect(await first.stop()).toBe(0);
  expect(existsSync(join(data, "url"))).toBe(false);
  await expect(fetch(`${first.url}/ok`)).rejects.toThrow("fetch failed");
  expect(first.output).toMatch(/"message":"stopped","shard":1/);

  const copy = home.data("stopped-copy");
  expect(heddle(["backup", copy, "--data", data])).toMatchObject({ status: 0, stderr: "" });
  const whole = [0, 1].map((shard) => `${join(copy, "shards", String(shard))} is whole\n`).join("");
  expect(heddle(["check", "--data", copy])).toEqual({ status: 0, stdout: whole, stderr: "" });

  const second = await start(copy);
  const again = connect(second);
  await Promise.all(
    threads.map(async (id) => {
      const run = (await again.runs.list(id))[0]?.run_id as string;
      expect(await again.runs.join(id, run)).toEqual({ log: counted });
    }),
  );
  const { pid } = (await again.runs.wait(threads[0] as string, "where", { input: { name: "x" } })) as {
    pid: number;
  };
  expect(await second.stop("SIGKILL")).toBe(null);
  // The processes end once their parent has.
  await expect.poll(() => isAlive(pid)).toBe(false);
});

test("a stop closes all sockets so that their clients connect again, whichever process they are connected with", async () => {
  const server = await start(home.data("sockets-stopped"));
  const client = connect(server);
  const [[idle = ""] = [], [busy = ""] = []] = await threadsOf(client, 1);
  // The process of the other shard waits for this run, so it still has its sockets when the first one closes those that it forwards.
  const { run_id } = await client.runs.create(busy, "slow", { input: {} });
  const paths = [
    `/threads/${idle}/stream`,
    `/threads/${busy}/stream`,
    `/threads/${busy}/runs/${run_id}/stream`,
    "/inspect",
  ];
  // About half of them are connected with each process.
  const sockets = await Promise.all(
    paths.flatMap((path) => Array.from({ length: 12 }, () => dial(`${server.url}${path}`))),
  );
  const codes = sockets.map(async ({ closed }) => (await closed).code);
  expect(await server.stop()).toBe(0);
  const ofThreads = (await Promise.all(codes)).slice(0, 36);
  expect(new Set(ofThreads)).toEqual(new Set([1012]));
  expect([1001, 1012]).toEqual(expect.arrayContaining((await Promise.all(codes)).slice(36)));
});

test("a second signal ends all processes at once, and the next start goes on", async () => {
  const data = home.data("stopped-twice");
  const first = await start(data);
  const client = connect(first);
  const threads = (await threadsOf(client, 1)).flat();
  const pids = await Promise.all(
    threads.map(async (id) => {
      const { pid } = (await client.runs.wait(id, "where", { input: { name: "x" } })) as { pid: number };
      await client.runs.create(id, "slow", { input: {} });
      return pid;
    }),
  );
  const stopped = first.stop();
  await first.printed('"message":"stopping"', SHARDS + 1);
  expect(await first.stop()).toBe(143);
  expect(await stopped).toBe(143);
  await expect.poll(() => pids.filter(isAlive)).toEqual([]);

  const again = connect(await start(data));
  await Promise.all(
    threads.map(async (id) => {
      const run = (await again.runs.list(id))[0]?.run_id as string;
      expect(await again.runs.join(id, run)).toMatchObject({ log: ["done"] });
    }),
  );
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

test("the number of a data directory's shards stays the same", async () => {
  const data = home.data("numbered");
  const server = await start(data);
  await server.stop();
  const refused = (...args: string[]) =>
    heddle(["start", "--config", config, "--data", data, "--port", "0", ...args]);
  const more = refused("--shards", "3");
  expect(more.stderr).toContain(
    `divided into ${SHARDS} shards, and cannot be served as 3: start with --shards ${SHARDS}`,
  );
  expect(more.status).toBe(1);
  expect(refused().stderr).toContain(`start with --shards ${SHARDS}`);
  expect(refused("--shards", "1").stderr).toContain("is not a whole number from 2 to 64");
});

test("over Node's own server, an older Node is refused, and a newer one serves", async () => {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const isNew = major > 23 || (major === 23 && minor > 0) || (major === 22 && minor > 11);
  const args = ["start", "--config", config, "--port", "0", "--shards", "2", "--transport", "node"];
  if (isNew) return void (await start(home.data("node"), { HEDDLE_TRANSPORT: "node" }));
  const { status, stderr } = heddle([...args, "--data", home.data("node")]);
  expect(stderr).toContain("can share a port over Node's own HTTP server only from Node 22.12");
  expect(stderr.match(/heddle: /g)).toHaveLength(1);
  expect(status).toBe(1);
});
