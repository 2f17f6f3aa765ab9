import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { graph, list } from "../../src/index.ts";
import { LevelDbKeyValueStore } from "../../src/storage/leveldb-key-value-store.ts";
import { gated, latch } from "./support/latches.ts";
import { receiver } from "./support/receiver.ts";
import { directory, serve } from "./support/server.ts";
import { get, newThread, openGet, openPost, post, postJson } from "./support/wire.ts";

/** LevelDB on a disk that fails on request, with LevelDB's own error messages. */
class FailingKeyValueStore extends LevelDbKeyValueStore {
  readonly failure: Error;
  writes = true;
  reads = true;

  constructor(directory: string, what = "Input/output error") {
    super(directory, false);
    this.failure = Object.assign(new Error(`IO error: ${directory}/000005.log: ${what}`), {
      code: "LEVEL_IO_ERROR",
    });
  }

  override async probe(): Promise<void> {
    if (!this.writes) throw this.failure;
  }

  override async open(): Promise<void> {
    await super.open();
    const db = this.db as unknown as Record<"getSync" | "iterator" | "keys", (...args: unknown[]) => unknown>;
    for (const name of ["getSync", "iterator", "keys"] as const) {
      const real = db[name].bind(db);
      db[name] = (...args) => {
        if (!this.reads) throw this.failure;
        return real(...args);
      };
    }
  }

  protected override write(...args: Parameters<LevelDbKeyValueStore["write"]>): Promise<void> {
    return this.writes ? super.write(...args) : Promise.reject(this.failure);
  }
}

test("a storage that fails while runs are streamed: no face tells where the data is, or where in the server's code", async () => {
  const data = await directory();
  const kv = new FailingKeyValueStore(join(data, "level"));
  const go = latch();
  const slow = graph({
    state: { log: list<string>() },
    nodes: {
      wait: async (_, ctx) => {
        ctx.emit({ token: 1 });
        await go.passed;
        return { log: ["done"] };
      },
    },
    edges: { start: "wait" },
  });
  const { url } = await serve({
    data: { kind: "key-value", store: kv },
    graphs: { slow },
    webhooks: { allow_internal: true },
  });
  const hook = await receiver();
  /** Everything that the server has sent, by place. */
  const left: [where: string, text: string][] = [];
  const read = async (where: string, response: Promise<Response>): Promise<number> => {
    const { status, body } = await response;
    let text = "";
    try {
      const decoder = new TextDecoder();
      for await (const piece of body ?? []) text += decoder.decode(piece as Uint8Array);
    } catch {
      // The connection was cut.
    }
    left.push([where, text]);
    return status;
  };
  const listen = async (path: string): Promise<void> => {
    const socket = new WebSocket(url.replace("http", "ws") + path);
    onTestFinished(() => socket.terminate());
    socket.on("message", (text: Buffer) => left.push([path, text.toString()]));
    socket.on("close", (_, reason) => left.push([path, reason.toString()]));
    await new Promise<void>((resolve, reject) => socket.on("open", resolve).on("error", reject));
  };

  const thread = await newThread(url);
  const before = await newThread(url);
  const at = `/threads/${thread}`;
  const ended = await postJson<{ run_id: string }>(`${url}/threads/${before}/runs`, {
    assistant_id: "agent",
    input: { messages: [] },
  });
  await get(`${url}/threads/${before}/runs/${ended.run_id}/join`);
  const { run_id } = await postJson<{ run_id: string }>(`${url}${at}/runs`, {
    assistant_id: "slow",
    input: {},
    stream_mode: ["values", "custom", "debug"],
    webhook: hook.url,
  });
  const run = `${at}/runs/${run_id}`;
  const streams = [`${run}/stream`, `${at}/stream`].map((path) => read(`stream ${path}`, get(url + path)));
  const joined = read("join", get(`${url}${run}/join`));
  await listen(`${run}/stream`);
  await listen("/inspect");
  await expect
    .poll(() => left.some(([where, text]) => where === `${run}/stream` && text.includes("token")))
    .toBe(true);

  const askAll = async (): Promise<number[]> => {
    const asked: (readonly [string, string, object?])[] = [
      ["GET", "/ready"],
      ["GET", at],
      ["GET", `${at}/state`],
      ["GET", `${at}/history`],
      ["GET", `${at}/runs`],
      ["GET", run],
      ["GET", `/threads/${before}/runs/${ended.run_id}/stream`],
      ["GET", `/threads/${before}/runs/${ended.run_id}/join`],
      ["GET", `/threads/${before}/stream`],
      ["POST", "/threads/search", {}],
      ["POST", "/threads", {}],
      ["POST", "/runs/wait", { assistant_id: "agent", input: { messages: [] } }],
      ["POST", "/runs/stream", { assistant_id: "agent", input: { messages: [] } }],
      ["POST", `/threads/${before}/copy`],
      ["POST", `/threads/${before}/state`, { values: { messages: [] } }],
      ["POST", "/store/items/search", { namespace_prefix: [] }],
      ["POST", "/runs/crons/search", {}],
      ["GET", "/inspect/actors"],
      ["GET", "/webhooks/deliveries"],
      ["GET", "/metrics"],
    ];
    return Promise.all(
      asked.map(([method, path, body]) => {
        const signal = AbortSignal.timeout(2_000);
        const headers = { "content-type": "application/json" };
        const sent = body === undefined ? {} : { body: JSON.stringify(body), headers };
        return read(`${method} ${path}`, fetch(url + path, { method, signal, ...sent })).catch(() => 0);
      }),
    );
  };
  kv.writes = false;
  const refused = askAll();
  go.pass();
  expect(await refused).toContain(503);
  kv.reads = false;
  expect(await askAll()).toContain(503);
  kv.reads = true;
  kv.writes = true;
  const [told] = await hook.until(1);
  left.push(["webhook", told?.text ?? ""]);
  await askAll();
  await Promise.all([streams[0], joined]);

  const secrets = left.filter(
    ([, text]) => text.includes(data) || text.includes(process.cwd()) || /\.[tj]s:\d+/.test(text),
  );
  expect(secrets).toEqual([]);
  expect(left.filter(([, text]) => text !== "").length).toBeGreaterThan(40);
}, 60_000);

test.each([
  ["No space left on device", "The disk of the data is full: free some space, and send the request again"],
  ["Disk quota exceeded", "The disk of the data is full: free some space, and send the request again"],
  ["Input/output error", "The storage is not available: a write failed"],
])("who waits for a run is answered when a write of it fails with %s", async (failure, detail) => {
  const data = await directory();
  const kv = new FailingKeyValueStore(join(data, "level"), failure);
  const { held, waits, open } = gated();
  const { url, complaints } = await serve({ data: { kind: "key-value", store: kv }, graphs: { held } });
  const runs = `${url}/threads/${await newThread(url)}/runs`;
  const body = (name: string) => ({ assistant_id: "held", input: { name }, multitask_strategy: "enqueue" });
  const waiting = await openPost(`${runs}/wait`, body("a"));
  await waits("a");
  const queued = await postJson<{ run_id: string }>(runs, body("b"));
  const joining = await openGet(`${runs}/${queued.run_id}/join`);
  kv.writes = false;
  open("a");
  // The headers had already been sent.
  const told = { __error__: { error: "ServiceError", message: detail } };
  expect(await waiting.json()).toEqual(told);
  expect(await joining.json()).toEqual(told);
  for (const answer of [await get(`${runs}/${queued.run_id}/join`), await post(`${runs}/wait`, body("c"))]) {
    expect(answer.status).toBe(503);
    expect(await answer.json()).toMatchObject({ code: "storage.unavailable", detail });
  }
  expect(complaints.filter((line) => line.includes("result could not be read"))).toEqual([]);
  // The runs themselves continue from their last checkpoint.
  kv.writes = true;
  open("b");
  const joined = async () => (await get(`${runs}/${queued.run_id}/join`)).json();
  await expect
    .poll(joined, { timeout: 20_000 })
    .toEqual({ name: "b", log: ["a began", "a ended", "b began", "b ended"] });
});
