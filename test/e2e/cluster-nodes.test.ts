import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Agent, get as getOverHttp, type IncomingMessage, request } from "node:http";
import { networkInterfaces } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { Client } from "@langchain/langgraph-sdk";
import { Client as PostgresClient } from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { shardOf } from "../../src/model/shard-of.ts";
import { build, heddle, heddleBeside, Running } from "../config/process.ts";
import { connect, Home } from "../config/project.ts";
import { all, streamOf } from "./support/protocol.ts";
import { dial, type Dialed, type Frame } from "./support/sockets.ts";
import { events, get, openGet, openPost, postJson, type Sent } from "./support/wire.ts";
import { type PostgresServer, startPostgres, urlOf } from "../postgres/postgres-server.ts";

/** By their names, the node a should have both shards: beside it, b is there to take over. */
const SHARDS = 2;
const STEPS = 12;
const LONG_STEPS = 150;
const LEASE_MS = 1_500;
const SECRET = "a secret of a cluster, long enough for it";
// Each test starts several nodes, with several processes each.
vi.setConfig({ testTimeout: 180_000 });
const home = new Home({ isInstalled: true });
let postgres: PostgresServer;
beforeAll(async () => {
  [postgres] = await Promise.all([startPostgres(), build()]);
}, 120_000);
afterAll(async () => {
  home.remove();
  await postgres.remove();
});

const config = home.project("cluster", {
  "heddle.json": {
    graphs: { count: "./graphs.ts:count", long: "./graphs.ts:long", where: "./graphs.ts:where" },
  },
  "graphs.ts": `
import { END, graph, list, value } from "heddle";

/** Says in which process it ran. */
export const where = graph({
  state: { pid: value(0) },
  nodes: { tell: async () => ({ pid: process.pid }) },
  edges: { start: "tell" },
});

/** Counts in steps that take some time. */
const counting = (steps) => graph({
  state: { log: list() },
  nodes: {
    step: async ({ log }) => {
      await new Promise((resolve) => setTimeout(resolve, 40));
      return { log: [log.length] };
    },
  },
  edges: { start: "step", step: ({ log }) => (log.length < steps ? "step" : END) },
});
export const count = counting(${STEPS});
/** Takes longer than two shards are on their way to other nodes. */
export const long = counting(${LONG_STEPS});
`,
  "package.json": { type: "module" },
});
const counted = Array.from({ length: STEPS }, (_, i) => i);

interface NodeSettings {
  readonly schema: string;
  readonly data?: string;
  readonly shards?: number;
  readonly env?: Record<string, string>;
}

const argsOf = (name: string, { schema, data = `${schema}-${name}`, shards = SHARDS }: NodeSettings) =>
  `--config ${config} --data ${home.data(data)} --node ${name} --cluster ${postgres.url} --shards ${shards}`.split(
    " ",
  );
const envOf = ({ schema, env }: NodeSettings): Record<string, string> => ({
  HEDDLE_CLUSTER_SECRET: SECRET,
  HEDDLE_CLUSTER_SCHEMA: schema,
  HEDDLE_CLUSTER_LEASE: String(LEASE_MS),
  ...env,
});

/** Starts a node that ends with the test. */
async function start(name: string, settings: NodeSettings): Promise<Running> {
  const node = await Running.start(argsOf(name, settings), envOf(settings), () => undefined);
  onTestFinished(async ({ task }) => {
    if (task.result?.state === "fail") process.stderr.write(`node ${name}:\n${node.output}`);
    await node.stop("SIGKILL");
  });
  return node;
}

function refused(name: string, settings: NodeSettings, ...more: string[]): string {
  const args = ["start", "--port", "0", ...argsOf(name, settings), ...more];
  const { status, stderr } = heddle(args, { env: envOf(settings) });
  expect(status).toBe(1);
  return stderr;
}

const status = (schema: string) =>
  heddle(["cluster", "status", "--cluster", postgres.url], { env: { HEDDLE_CLUSTER_SCHEMA: schema } });

const clusterCommand = (schema: string, args: readonly string[], secret = SECRET) =>
  heddleBeside(["cluster", ...args, "--cluster", postgres.url], {
    HEDDLE_CLUSTER_SCHEMA: schema,
    HEDDLE_CLUSTER_SECRET: secret,
  });

/** Requests a URL over a connection of its own. */
const withoutKeepAlive = (url: string) =>
  new Promise<IncomingMessage>((resolve, reject) => {
    getOverHttp(url, { agent: false }, (response) => resolve(response.resume())).on("error", reject);
  });

/** New ids, as many in each shard. */
function idsOf(each: number): readonly string[] {
  const ids: string[] = [];
  for (let shard = 0; shard < SHARDS; shard++)
    for (let left = each; left > 0;) {
      const id = crypto.randomUUID();
      if (shardOf(id, SHARDS) !== shard) continue;
      ids.push(id);
      left--;
    }
  return ids;
}

/** Waits for runs. A node may be taken over meanwhile, which can take longer than a request waits. */
async function joined(client: Client, runs: readonly { readonly id: string; readonly run: string }[]) {
  const values: unknown[] = [];
  for (const { id, run } of runs) {
    // oxlint-disable-next-line no-await-in-loop -- in order
    await expect
      .poll(async () => client.runs.join(id, run).catch(() => "not yet"), { timeout: 60_000 })
      .not.toBe("not yet");
    // oxlint-disable-next-line no-await-in-loop -- in order
    values.push((await client.threads.getState(id)).values);
  }
  return values;
}

/** The processes of a node's shards. */
async function pidsOf(client: Client): Promise<readonly number[]> {
  const ends = idsOf(1).map(async (id) => {
    await client.threads.create({ threadId: id });
    return (await client.runs.wait(id, "where", { input: {} })) as { pid: number };
  });
  return (await Promise.all(ends)).map(({ pid }) => pid);
}

/** The logs of `shards` shards have entries of several owners, and none of a former one after the next one's first. */
async function expectTakenOver(schema: string, shards = SHARDS): Promise<void> {
  const client = new PostgresClient(postgres.url);
  await client.connect();
  const { rows } = await client.query<{ epochs: string[] }>(
    `SELECT array_agg(epoch ORDER BY seq) AS epochs FROM ${schema}.log GROUP BY shard`,
  );
  await client.end();
  expect(rows).toHaveLength(SHARDS);
  expect(rows.filter(({ epochs }) => new Set(epochs).size > 1)).toHaveLength(shards);
  for (const { epochs } of rows) {
    expect(epochs.map(Number)).toEqual(epochs.map(Number).toSorted((one, two) => one - two));
  }
}

async function createRuns(client: Client, ids: readonly string[]) {
  return Promise.all(
    ids.map(async (id) => {
      await client.threads.create({ threadId: id });
      return { id, run: (await client.runs.create(id, "count", { input: {} })).run_id };
    }),
  );
}

test("one node: killed, and started on an empty directory, it has everything from the log", async () => {
  const first = await start("a", { schema: "one" });
  const client = connect(first);
  const ids = idsOf(2);
  const ended = await createRuns(client, ids);
  expect(await joined(client, ended)).toEqual(ids.map(() => ({ log: counted })));
  const others = idsOf(2);
  const running = await createRuns(client, others);
  await setTimeout(100);
  await first.stop("SIGKILL");

  const second = await start("a", { schema: "one", data: "one-empty" });
  const again = connect(second);
  expect(await joined(again, running)).toEqual(running.map(() => ({ log: counted })));
  const states = await Promise.all(ids.map((id) => again.threads.getState(id)));
  expect(states.map(({ values }) => values)).toEqual(ids.map(() => ({ log: counted })));
  expect(await again.threads.count()).toBe(8);
});

test("two nodes: any answers for both; a killed one is taken over, and each acknowledged run ends once", async () => {
  const a = await start("a", { schema: "two" });
  const b = await start("b", { schema: "two" });
  const client = connect(b);
  const ids = idsOf(3);
  const runs = await createRuns(client, ids);
  const found = status("two");
  expect(found).toMatchObject({ status: 0, stderr: "" });
  expect(found.stdout).toMatch(
    /^Cluster [-0-9a-f]{36}: 2 shards, 2 nodes\n {2}node a at http:\S+\n {2}node b at http:/,
  );
  expect(found.stdout.match(/shard [01]: node a, epoch \d+, \d+ entries/g)).toHaveLength(SHARDS);
  for (let i = 0; i < 3; i++)
    // oxlint-disable-next-line no-await-in-loop -- in different shards
    expect(await client.runs.wait(null, "where", { input: {} })).toHaveProperty("pid");
  // Node b has no shard. The names of the nodes tell which process each series is from.
  const metrics = await (await fetch(`${b.url}/metrics`)).text();
  const places = [...metrics.matchAll(/^heddle_info\{.*(shard="\w+",node="\w+")\} 1$/gm)].map(
    ([, place]) => place,
  );
  expect(places.toSorted()).toEqual(['shard="0",node="a"', 'shard="1",node="a"', 'shard="none",node="b"']);
  expect(metrics.match(/^heddle_shard_up\{shard="[01]"\} 1$/gm)).toHaveLength(SHARDS);
  const { heddle: figures } = (await (await fetch(`${b.url}/info`)).json()) as {
    heddle: { shards: unknown };
  };
  expect(figures.shards).toMatchObject([
    { shard: 0, up: true, node: "a" },
    { shard: 1, up: true, node: "a" },
  ]);
  const cron = await client.crons.create("count", { schedule: "0 0 1 1 *" });
  expect(await client.crons.search()).toMatchObject([{ cron_id: cron.cron_id }]);
  const more = await createRuns(client, idsOf(3));
  await a.stop("SIGKILL");
  const all = [...runs, ...more];
  expect(await joined(client, all)).toEqual(all.map(() => ({ log: counted })));
  const listed = await Promise.all(all.map(({ id }) => client.runs.list(id)));
  expect(listed.map((of) => of.map(({ status: end }) => end))).toEqual(all.map(() => ["success"]));
  await expectTakenOver("two");
});

/** Reads a stream by one connection, until it ends or has shown `last`. */
async function readStream(response: Promise<Response>, last?: string): Promise<readonly Sent[]> {
  const { status, body } = await response;
  expect(status).toBe(200);
  let text = "";
  for await (const piece of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += piece;
    if (last !== undefined && text.includes(last) && text.endsWith("\n\n")) break;
  }
  return events(text);
}

/** The steps whose updates the events show. */
const stepsIn = (sent: readonly Pick<Sent, "event" | "data">[]): readonly number[] =>
  sent.flatMap(({ event, data }) =>
    event === "updates" ? (data as { step: { log: number[] } }).step.log : [],
  );

test.each([
  ["killed", "SIGKILL"],
  ["stopped", "SIGTERM"],
] as const)(
  "streams through another node go on when their node is %s, without a gap and without a repetition",
  async (how, signal) => {
    const schema = `streams_${how}`;
    const a = await start("a", { schema });
    const { url } = await start("b", { schema });
    const client = new Client({ apiUrl: url });
    const paths = idsOf(2).map((id) => `${url}/threads/${id}`);
    await Promise.all(paths.map((path) => postJson(`${url}/threads`, { thread_id: path.split("/").at(-1) })));
    const last = `"log":[${STEPS - 1}]`;
    const run = { assistant_id: "count", input: {}, stream_mode: ["updates", "values"] };
    // These begin before there is any event.
    const opened = await Promise.all(
      paths.flatMap((path) => [
        openGet(`${path}/stream?stream_mode=run_modes`),
        openPost(`${path}/stream/events`, { channels: ["updates"] }),
      ]),
    );
    const threads = opened.map((response) => readStream(Promise.resolve(response), last));
    const started = paths.map((path) => readStream(openPost(`${path}/runs/stream`, run)));
    const runs = await Promise.all(
      paths.map(async (path) => {
        const list = async () => (await (await get(`${path}/runs`)).json()) as { run_id: string }[];
        await expect.poll(async () => (await list()).length).toBe(1);
        return `${path}/runs/${(await list())[0]?.run_id}`;
      }),
    );
    const joins = runs.map((path) => readStream(openGet(`${path}/stream?stream_mode=updates`)));
    const waits = runs.map(async (path) => (await get(`${path}/join`)).json());
    await setTimeout(150);
    await a.stop(signal);

    expect(await Promise.all(waits)).toEqual(paths.map(() => ({ log: counted })));
    const ofThreads = await Promise.all(threads);
    const ofProtocol = ofThreads.filter((_, i) => i % 2 === 1);
    const all = await Promise.all([...started, ...joins, ...threads.filter((_, i) => i % 2 === 0)]);
    expect(all.map(stepsIn)).toEqual(all.map(() => counted));
    expect(ofProtocol.map((sent) => sent.length)).toEqual(paths.map(() => STEPS));
    for (const sent of [...all, ...ofProtocol]) {
      const ids = sent.map(({ id }) => Number(id));
      expect(ids).toEqual(ids.toSorted((one, two) => one - two));
      expect(sent.map(({ event }) => event)).not.toContain("error");
    }
    await expect.poll(() => client.threads.count({ status: "idle" })).toBe(paths.length);
  },
);

/**
 * Reads a socket that connects again with the last event that it has, as the dashboard does, until it has shown the end, or is closed
 * because there are no more events. `codes`: the close codes of its connections.
 */
async function followed(address: string, isEnd: (frame: Frame) => boolean, onFrames?: () => void) {
  const codes: number[] = [];
  const frames: Frame[] = [];
  for (;;) {
    const last = frames.at(-1)?.id ?? "-1";
    // oxlint-disable-next-line no-await-in-loop -- one connection after the other
    const socket = await dial(`${address}&last_event_id=${last}`);
    // oxlint-disable-next-line no-await-in-loop -- as above
    await socket
      .until((so) => {
        if (so.frames.length > 0) onFrames?.();
        return so.frames.some(isEnd);
      })
      .catch(() => undefined);
    frames.push(...socket.frames);
    if (frames.some(isEnd)) return { frames, codes };
    // oxlint-disable-next-line no-await-in-loop -- as above
    const { code } = await socket.closed;
    if (code === 1000) return { frames, codes };
    codes.push(code);
  }
}

/** The steps whose updates the events of the official thread protocol show. */
const protocolStepsIn = (
  sent: readonly { readonly method: string; readonly params: { readonly data: unknown } }[],
): readonly number[] =>
  sent.flatMap(({ method, params }) => (method === "updates" ? (params.data as { log: number[] }).log : []));

test.each([
  ["killed", "SIGKILL", 1001],
  ["stopped", "SIGTERM", 1012],
] as const)(
  "sockets through another node are closed when their node is %s, and clients that connect again miss and repeat nothing",
  async (how, signal, code) => {
    const schema = `sockets_${how}`;
    const a = await start("a", { schema });
    const { url } = await start("b", { schema });
    const client = new Client({ apiUrl: url });
    const ids = idsOf(1);
    await Promise.all(ids.map((id) => client.threads.create({ threadId: id })));
    const own = await Promise.all(
      ids.map(async (threadId) => {
        const { thread } = streamOf(url, "websocket", "count", threadId, client);
        return { thread, updates: await thread.subscribe({ channels: ["updates", "lifecycle"] }) };
      }),
    );
    const feed = await dial(`${url}/inspect`);
    const runs = await Promise.all(
      own.map(async ({ thread }) => ((await thread.run.start({ input: {} })) as { run_id: string }).run_id),
    );
    const first = own.map(({ updates }) => all(updates));
    const single = runs.map((run, i) =>
      followed(`${url}/threads/${ids[i]}/runs/${run}/stream?stream_mode=updates`, () => false),
    );
    const isLast = ({ data }: Frame) => JSON.stringify(data).includes(`[${STEPS}]`);
    // The node ends once each of these sockets has got an event. A socket that is opened later would not be closed.
    const begun: Promise<void>[] = [];
    const threads = ids.map((id) => {
      let begin: () => void = () => undefined;
      begun.push(new Promise((resolve) => (begin = resolve)));
      return followed(`${url}/threads/${id}/stream?stream_mode=updates`, isLast, begin);
    });
    await Promise.all(begun);
    await a.stop(signal);
    expect((await Promise.all(first)).map(protocolStepsIn)).toEqual(ids.map(() => counted));
    // On the sockets that were opened before the move.
    await Promise.all(own.map(({ thread }) => thread.run.start({ input: {} })));
    const second = own.map(({ updates }) => all(updates));
    expect((await Promise.all(second)).map(protocolStepsIn)).toEqual(ids.map(() => [STEPS]));

    for (const { frames } of await Promise.all(single)) expect(stepsIn(frames)).toEqual(counted);
    for (const { frames, codes } of await Promise.all(threads)) {
      expect(stepsIn(frames)).toEqual([...counted, STEPS]);
      const numbers = frames.map(({ id }) => Number(id));
      expect(numbers).toEqual([...new Set(numbers)].toSorted((one, two) => one - two));
      expect(codes).toEqual([code]);
    }
    expect((await feed.closed).code).toBe(1001);
  },
);

test("a node that stops closes the sockets that it forwards, so that their clients connect again", async () => {
  const schema = "sockets_forwarded";
  const client = connect(await start("a", { schema }));
  const b = await start("b", { schema });
  const [id = ""] = idsOf(1);
  await client.threads.create({ threadId: id });
  const run = await client.runs.create(id, "count", { input: {} });
  await client.runs.join(id, run.run_id);
  const sockets = [
    await followedTo(`${b.url}/threads/${id}/stream?last_event_id=-1&stream_mode=updates`),
    await followedTo(`${b.url}/threads/${id}/stream?last_event_id=-1&stream_mode=updates`),
  ];
  const feed = await dial(`${b.url}/inspect`);
  expect(await b.stop()).toBe(0);
  const closed = await Promise.all([...sockets, feed].map((socket) => socket.closed));
  expect(closed.map(({ code }) => code)).toEqual([1012, 1012, 1012]);
});

/** A socket that has shown the last step of a run. */
async function followedTo(address: string): Promise<Dialed> {
  const socket = await dial(address);
  return socket.until(({ frames }) => stepsIn(frames).includes(STEPS - 1));
}

test("a process of a node that hangs is killed after the limit, and its shard is served again", async () => {
  const a = await start("a", { schema: "hanging", env: { HEDDLE_HANG_LIMIT: "10000" } });
  const client = connect(a);
  const [pid = 0] = await pidsOf(client);
  const [id = ""] = idsOf(1);
  await client.threads.create({ threadId: id });
  process.kill(pid, "SIGSTOP");
  await a.printed("the process of a shard has not responded for 10 seconds and is killed");
  await expect
    .poll(() => client.runs.wait(id, "where", { input: {} }).catch(() => ({ pid })), { timeout: 60_000 })
    .not.toMatchObject({ pid });
  await expectTakenOver("hanging", 1);
});

/** The process of a shard of a node that may still be starting. */
function pidOf(schema: string, shard: number): number | undefined {
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const variables = readFileSync(`/proc/${name}/environ`, "utf8");
      if (variables.includes(`SCHEMA=${schema}\0`) && variables.includes(`{"number":${shard},`))
        return Number(name);
    } catch {
      // The process has ended, or belongs to another user.
    }
  }
  return undefined;
}

test.skipIf(process.platform !== "linux")(
  "a process that ends while another one of its node still starts is started again",
  async () => {
    const schema = "ends_early";
    const starting = start("a", { schema });
    const pids = await vi.waitUntil(
      () => {
        const [ends, waits] = [pidOf(schema, 0), pidOf(schema, 1)];
        return ends !== undefined && waits !== undefined && { ends, waits };
      },
      { timeout: 60_000, interval: 5 },
    );
    process.kill(pids.waits, "SIGSTOP");
    const database = new PostgresClient(postgres.url);
    await database.connect();
    onTestFinished(() => database.end());
    // The node says where the first process listens once it has started.
    const addresses = async () =>
      (await database.query<{ address: string }>(`SELECT address FROM ${schema}.nodes`)).rows[0]?.address;
    await expect.poll(addresses, { timeout: 60_000 }).toMatch(/"ports":\{"0":\d+\}/);
    process.kill(pids.ends, "SIGKILL");
    await expect.poll(addresses, { timeout: 60_000 }).toContain('"ports":{}');
    process.kill(pids.waits, "SIGCONT");
    const client = connect(await starting);
    const served = await pidsOf(client);
    expect(served[1]).toBe(pids.waits);
    expect(pids).not.toMatchObject({ ends: served[0] });
  },
);

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** A connection of its own to one process of a node. */
class OneConnection {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
    onTestFinished(() => this.#agent.destroy());
  }

  /** Sends a request. Resolves with the whole body, or what of it has come before the connection was cut; `begun` is called with its first bytes. */
  post(path: string, body: object, begun?: () => void): Promise<{ text: string; isCut: boolean }> {
    return new Promise((resolve, reject) => {
      const headers = { "content-type": "application/json" };
      const sent = request(
        `${this.#url}${path}`,
        { method: "POST", agent: this.#agent, headers },
        (response) => {
          let text = "";
          response.setEncoding("utf8").on("data", (piece: string) => {
            text += piece;
            begun?.();
          });
          response.on("error", () => undefined);
          response.on("close", () => resolve({ text, isCut: !response.complete }));
        },
      );
      sent.on("error", reject);
      sent.end(JSON.stringify(body));
    });
  }

  /** The process with which it is connected: a run without a thread is run there. */
  async pid(): Promise<number> {
    const { text } = await this.post("/runs/wait", { assistant_id: "where", input: {} });
    return (JSON.parse(text) as { pid: number }).pid;
  }
}

test("a process that hands its shard over does not cut its clients' streams of other shards, and follows these too", async () => {
  const a = await start("a", { schema: "streaming" });
  await start("b", { schema: "streaming" });
  const client = connect(a);
  const pids = await pidsOf(client);
  const ids = idsOf(1);
  const streams: {
    readonly text: Promise<{ text: string; isCut: boolean }>;
    readonly begun: Promise<void>;
  }[] = [];
  for (const [shard, id] of ids.entries()) {
    let connection = new OneConnection(a.url);
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    while ((await connection.pid()) === pids[shard]) connection = new OneConnection(a.url);
    let begin: () => void = () => undefined;
    const begun = new Promise<void>((resolve) => (begin = resolve));
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    await client.threads.create({ threadId: id });
    const config = { recursion_limit: 1_000 };
    const body = { assistant_id: "long", input: {}, config, stream_mode: ["updates"] };
    streams.push({ text: connection.post(`/threads/${id}/runs/stream`, body, begin), begun });
  }
  await Promise.all(streams.map(({ begun }) => begun));
  expect(await clusterCommand("streaming", ["drain", "a"])).toMatchObject({ status: 0 });
  for (const { text: ended } of streams) {
    // oxlint-disable-next-line no-await-in-loop -- they run side by side
    const { text, isCut } = await ended;
    expect(isCut).toBe(false);
    const steps = [...text.matchAll(/^data: \{"step":\{"log":\[(\d+)\]/gm)].map(([, step]) => Number(step));
    expect(steps).toEqual(Array.from({ length: LONG_STEPS }, (_, i) => i));
  }
  // Nobody is connected any more with the processes that had the shards.
  await expect.poll(() => pids.some(isAlive)).toBe(false);
  expect(await client.threads.count()).toBe(SHARDS * 2);
});

test("a node that was paused and taken over writes nothing any more, and forwards from then on", async () => {
  const a = await start("a", { schema: "paused" });
  const client = connect(await start("b", { schema: "paused" }));
  const pids = await pidsOf(client);
  const runs = await createRuns(client, idsOf(3));
  for (const pid of pids) process.kill(pid, "SIGSTOP");
  void a.stop("SIGSTOP");
  expect(await joined(client, runs)).toEqual(runs.map(() => ({ log: counted })));
  // Requests that the paused node finds when it goes on.
  const late = idsOf(2).map(async (id) => {
    const created = await fetch(`${a.url}/threads`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ thread_id: id }),
    }).catch(() => undefined);
    return { id, isAcknowledged: created?.ok === true };
  });
  await setTimeout(100);
  for (const pid of pids) process.kill(pid, "SIGCONT");
  void a.stop("SIGCONT");
  const acknowledged = (await Promise.all(late)).filter(({ isAcknowledged }) => isAcknowledged);
  await a.printed("another node has taken a shard over", SHARDS);
  for (const { id } of acknowledged)
    // oxlint-disable-next-line no-await-in-loop -- in order
    expect(await client.threads.get(id)).toMatchObject({ thread_id: id });
  await expectTakenOver("paused");

  const through = connect(a);
  await expect.poll(() => through.threads.count().catch(() => 0), { timeout: 60_000 }).toBeGreaterThan(0);
  expect(await joined(through, runs)).toEqual(runs.map(() => ({ log: counted })));
});

/** The answer to a request that has waited ten seconds for its shard. On a slow machine, a process can take longer to start. */
const WAITED = "does not answer; try again soon";

/** Creates runs one after the other, in all shards, without repeating a request, until it is stopped. Any other failure is thrown by `stop`. */
function load(url: string) {
  const client = new Client({ apiUrl: url, callerOptions: { maxRetries: 0 } });
  const created: { readonly id: string; readonly run: string }[] = [];
  let isStopped = false;
  const work = async (): Promise<void> => {
    while (!isStopped) {
      try {
        // oxlint-disable-next-line no-await-in-loop -- one after the other
        created.push(...(await createRuns(client, idsOf(1))));
      } catch (cause) {
        if (!String(cause).includes(WAITED)) throw cause;
      }
    }
  };
  const done = work();
  let failure: unknown;
  done.catch((cause: unknown) => (failure = cause));
  /** Waits until further runs have been created. @throws the error of a request */
  const goOn = async () => {
    const before = created.length;
    // A shard's process takes long to start on a busy machine, and requests wait for it.
    await expect
      .poll(() => created.length > before + 2 || failure !== undefined, { timeout: 90_000 })
      .toBe(true);
    if (failure !== undefined) await done;
  };
  const stop = async () => {
    isStopped = true;
    await done;
    return created;
  };
  return { created, goOn, stop };
}

test("a drained node hands its shards over one by one, and takes none until told so; a request waits for its shard", async () => {
  const schema = "drained";
  const a = await start("a", { schema });
  const alone = await clusterCommand(schema, ["drain", "a"]);
  expect(alone).toMatchObject({ status: 1, stderr: expect.stringContaining("No other node could take") });
  const b = await start("b", { schema });
  const requests = load(b.url);
  await requests.goOn();
  const drained = await clusterCommand(schema, ["drain", "a"]);
  expect(drained).toEqual({
    status: 0,
    stderr: "",
    stdout: [
      "Node a gives up the shards 0, 1",
      "  shard 0: node b",
      "  shard 1: node b",
      'Node a has no shards, and takes none until "heddle cluster undrain a" or its restart',
      "",
    ].join("\n"),
  });
  await requests.goOn();
  const created = await requests.stop();
  const through = connect(a);
  expect(await joined(through, created)).toEqual(created.map(() => ({ log: counted })));
  const listed = await Promise.all(created.map(({ id }) => through.runs.list(id)));
  expect(listed.map((of) => of.map(({ status: end }) => end))).toEqual(created.map(() => ["success"]));
  await expectTakenOver(schema);

  expect(status(schema).stdout).toMatch(/node a at http:\S+, draining\n/);
  await b.stop("SIGKILL");
  await setTimeout(2 * LEASE_MS);
  expect(status(schema).status).toBe(1);
  expect((await clusterCommand(schema, ["undrain", "a"])).stdout).toBe("Node a takes shards again\n");
  expect(await joined(through, created.slice(0, 2))).toHaveLength(2);
  expect(status(schema)).toMatchObject({ status: 0 });
});

test("a drain is refused with the reason", async () => {
  const schema = "undrained";
  await start("a", { schema });
  expect((await clusterCommand(schema, ["drain", "c"])).stderr).toContain(
    'no living node "c"; there are: a\n',
  );
  const stranger = await clusterCommand(schema, ["drain", "a"], `another ${SECRET}`);
  expect([stranger.status, stranger.stderr]).toEqual([1, expect.stringContaining("has another secret")]);
  expect((await clusterCommand(schema, ["drain", "a"], "")).stderr).toContain("HEDDLE_CLUSTER_SECRET");
  expect((await clusterCommand("none", ["drain", "a"])).stderr).toContain("no cluster in the schema none");
  expect(status(schema).stdout).not.toContain("draining");
});

test("while a node stops under load, a request through another node fails only if it has waited for ten seconds", async () => {
  const schema = "load";
  const a = await start("a", { schema });
  const b = await start("b", { schema });
  const requests = load(b.url);
  await requests.goOn();
  expect(await a.stop()).toBe(0);
  const created = await requests.stop();
  expect(await joined(connect(b), created)).toEqual(created.map(() => ({ log: counted })));
  await expectTakenOver(schema);
});

test("a node that joins gets its share of the shards, a request waits for its shard, and then nothing moves", async () => {
  const schema = "joined";
  const a = await start("a", { schema });
  const client = connect(a);
  const early = await createRuns(client, idsOf(2));
  // By their names, the node a should have shard 0, and c shard 1.
  const c = await start("c", { schema });
  const requests = load(c.url);
  const placed = /shard 0: node a, epoch (\d+), .*\n {2}shard 1: node c, epoch (\d+),/;
  await expect
    .poll(() => status(schema).stdout, { timeout: 90_000, interval: 500 })
    .toEqual(expect.stringMatching(placed));
  await requests.goOn();
  const created = await requests.stop();
  const all = [...early, ...created];
  expect(await joined(client, all)).toEqual(all.map(() => ({ log: counted })));
  const [first, then] = [placed.exec(status(schema).stdout), await setTimeout(4 * LEASE_MS)];
  expect([then, placed.exec(status(schema).stdout)?.slice(1)]).toEqual([undefined, first?.slice(1)]);
});

test("a node that stops hands its shards over", async () => {
  const a = await start("a", { schema: "handed" });
  const b = await start("b", { schema: "handed" });
  const client = connect(b);
  const runs = await createRuns(client, idsOf(3));
  expect(await a.stop()).toBe(0);
  expect(await joined(client, runs)).toEqual(runs.map(() => ({ log: counted })));
  expect(await b.stop()).toBe(0);
  const { stdout, status: code } = status("handed");
  expect([code, stdout.match(/shard [01]: no node/g)]).toEqual([1, ["shard 0: no node", "shard 1: no node"]]);
});

test("a node follows the shards of another one, and takes them over from its own copy when that one dies", async () => {
  const a = await start("a", { schema: "followed" });
  const b = await start("b", { schema: "followed" });
  const client = connect(b);
  const ids = idsOf(3);
  const runs = await createRuns(client, ids);
  await joined(client, runs);
  const isFollowed = /shard 0: node a, .*, followed by b\n.*shard 1: node a, .*, followed by b\n/;
  await expect.poll(() => status("followed").stdout, { timeout: 20_000, interval: 500 }).toMatch(isFollowed);
  // If the new owner had to read the log, it would not find the first entries.
  const database = new PostgresClient(postgres.url);
  await database.connect();
  await database.query("DELETE FROM followed.log WHERE seq <= 2");
  await database.end();
  await a.stop("SIGKILL");
  expect(await joined(client, runs)).toEqual(runs.map(() => ({ log: counted })));
  await expectTakenOver("followed");
});

test("while the database is gone nothing is acknowledged; when it is back, runs go on", async () => {
  const client = connect(await start("a", { schema: "gone" }));
  const runs = await createRuns(client, idsOf(2));
  await postgres.stop();
  const [thread_id] = idsOf(1);
  await expect(client.threads.create({ threadId: thread_id as string })).rejects.toThrow(/503/);
  await postgres.start();
  expect(await joined(client, runs)).toEqual(runs.map(() => ({ log: counted })));
  const states = await Promise.all(runs.map(({ id }) => client.runs.list(id)));
  expect(states.map((of) => of.map(({ status: end }) => end))).toEqual(runs.map(() => ["success"]));
});

test("while the database is gone no process of a node is ready, also one that only forwards", async () => {
  await start("a", { schema: "unready" });
  const { url } = await start("b", { schema: "unready" });
  /** The answers of the node's processes: each request has a connection of its own. */
  const answers = async () =>
    Promise.all(Array.from({ length: 16 }, async () => (await withoutKeepAlive(`${url}/ready`)).statusCode));
  const expectAll = (status: number) =>
    expect.poll(answers, { timeout: 30_000 }).toEqual(Array.from({ length: 16 }, () => status));
  await expectAll(200);
  await postgres.stop();
  try {
    await expectAll(503);
    expect((await get(`${url}/live`)).status).toBe(200);
  } finally {
    await postgres.start();
  }
  await expectAll(200);
});

test("a shard whose process cannot be started on its node is given up, and another node serves it", async () => {
  const schema = "unable";
  const a = await start("a", { schema });
  const ids = idsOf(2);
  const runs = await createRuns(connect(a), ids);
  await joined(connect(a), runs);
  await (await start("b", { schema })).stop();
  // Where node b has its copy of shard 0, or would make it, it has a file.
  const level = join(home.data("unable-b"), "shards", "0", "level");
  rmSync(level, { recursive: true, force: true });
  mkdirSync(dirname(level), { recursive: true });
  writeFileSync(level, "");
  const b = await start("b", { schema });
  await a.stop("SIGKILL");
  await b.printed("the process of a shard could not be started");
  await start("a", { schema });
  await b.printed("a shard cannot be served by this node, and is given up");
  expect(await joined(connect(b), runs)).toEqual(runs.map(() => ({ log: counted })));
});

test("two nodes of one name are told so, and a node that was killed and started again is not", async () => {
  const schema = "twins";
  await (await start("a", { schema })).stop("SIGKILL");
  const again = await start("a", { schema });
  const warning = "another node of the cluster has the same name";
  await expect.poll(() => status(schema).stdout, { timeout: 30_000 }).toContain(": 2 shards, 1 nodes");
  expect(again.output).not.toContain(warning);
  const twin = await start("a", { schema, data: "twin" });
  for (const node of [again, twin])
    // oxlint-disable-next-line no-await-in-loop -- in order
    await expect.poll(() => node.output, { timeout: 30_000 }).toContain(warning);
});

test("a node that no other node could reach is refused, and an address that is no URL gets a hint", () => {
  const schema = "unreachable";
  // An address for documentation, which no machine has.
  const env = { HEDDLE_CLUSTER_HOST: "203.0.113.9" };
  expect(refused("b", { schema, env })).toContain("203.0.113.9 is no address of this machine");
  expect(status(schema).stderr).toContain("no cluster in the schema unreachable");
  const url = "postgres://user:p#w@127.0.0.1/heddle";
  expect(refused("b", { schema }, "--cluster", url)).toContain("%23 for #");
});

test("a node that is stopped while the database is gone ends as usual, and says that its leases end by themselves", async () => {
  const node = await start("a", { schema: "left" });
  await postgres.stop();
  try {
    expect(await node.stop("SIGTERM")).toBe(0);
  } finally {
    await postgres.start();
  }
  expect(node.output).toContain("its leases end by themselves");
  expect(node.output).not.toContain("the shutdown failed");
});

test("what does not fit together is refused with the reason", async () => {
  const schema = "refused";
  const node = await start("a", { schema });
  expect(refused("b", { schema, shards: 3 })).toContain("was made with 2 shards, not 3");
  const secret = { HEDDLE_CLUSTER_SECRET: `another ${SECRET}` };
  expect(refused("b", { schema, env: secret })).toContain("The node a of this cluster has another secret");
  expect(refused("b", { schema: "none", env: { HEDDLE_CLUSTER_SECRET: "short" } })).toContain(
    "32 bytes or more",
  );
  await start("a", { schema: "other" });
  expect(refused("b", { schema: "other", data: `${schema}-a` })).toContain(
    "and the database has the cluster",
  );
  // A mistake must not make a cluster: one would be in the way of a backup that is restored.
  expect(refused("b", { schema: "empty", data: `${schema}-a` })).toContain(
    "and the database has no cluster in the schema empty",
  );
  mkdirSync(join(home.data("single"), "level"), { recursive: true });
  expect(refused("b", { schema: "empty", data: "single" })).toContain("of a server without a cluster");
  const outside = Object.values(networkInterfaces()).flatMap((addresses) =>
    (addresses ?? []).filter(({ internal, family }) => !internal && family === "IPv4"),
  );
  for (const { address } of outside.slice(0, 1)) {
    expect(refused("b", { schema, env: { HEDDLE_CLUSTER_HOST: address } })).toContain(
      `The node a of this cluster is reached at 127.0.0.1, and this one at ${address}`,
    );
  }
  expect(status("empty").stderr).toContain("no cluster in the schema empty");
  expect(refused("b", { schema }, "--cluster", urlOf(1))).toContain(
    "PostgreSQL at 127.0.0.1:1 cannot be reached",
  );
  expect(refused("b", { schema }, "--cluster", urlOf(postgres.port, "postgres", "wrong"))).toContain(
    "or the password",
  );
  const data = ["--data", home.data(`${schema}-a`)];
  expect(heddle(["check", ...data]).stderr).toContain("back up the database instead");
  expect(status("none").stderr).toContain("no cluster in the schema none");
  expect((await fetch(`${node.url}/ok`)).status).toBe(200);
});
