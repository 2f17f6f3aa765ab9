import { describe, expect, test } from "vitest";
import type { HeaderPatterns } from "../../src/access/configurable-headers.ts";
import type { JsonObject } from "../../src/model/json.ts";
import { graph, list } from "../../src/index.ts";
import { serve } from "./support/server.ts";
import { dial } from "./support/sockets.ts";
import { newThread } from "./support/wire.ts";

const sent = { "X-Team": "red", "my-room": "4", "my-own": "no", "x-other": "no", authorization: "Basic no" };
const taken = { "x-team": "red", "my-room": "4" };
const patterns: HeaderPatterns = { includes: ["x-team", "my-*"], excludes: ["MY-OWN"] };

/** A server with a graph that waits on request, and records what its node finds in `configurable`. */
async function start(configurableHeaders?: HeaderPatterns) {
  const seen: JsonObject[] = [];
  const noting = graph({
    state: { log: list<string>() },
    nodes: {
      note: async (_, ctx) => {
        seen.push(ctx.config["configurable"] as JsonObject);
        return { log: ["noted"] };
      },
      ask: async (_, ctx) => ({ log: [String(await ctx.interrupt("well?"))] }),
    },
    edges: { start: "note", note: "ask" },
  });
  const { url, complaints } = await serve({
    graphs: { noting },
    ...(configurableHeaders && { configurableHeaders }),
  });
  const call = async (path: string, body: unknown, headers: Record<string, string> = sent) => {
    const response = await fetch(url + path, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
    return { status: response.status, text: await response.text() };
  };
  /** The headers above that the runs have found so far, run by run. */
  const found = () =>
    seen.map((configurable) =>
      Object.fromEntries(
        Object.keys(sent)
          .map((name) => name.toLowerCase())
          .filter((name) => Object.hasOwn(configurable, name))
          .map((name) => [name, configurable[name]]),
      ),
    );
  return { url, call, found, seen, complaints };
}

const run = { assistant_id: "noting", input: {} };

describe("headers that are named go into the runs that a request starts", () => {
  test.each([
    ["in the background", "/runs"],
    ["and waits for", "/runs/wait"],
    ["and streams", "/runs/stream"],
  ])("%s, with a thread and without one", async (_, path) => {
    const { url, call, found } = await start(patterns);
    const thread = await newThread(url);
    for (const at of [path, `/threads/${thread}${path}`]) expect((await call(at, run)).status).toBe(200);
    await expect.poll(found).toEqual([taken, taken]);
  });

  test("in a batch: all of its runs", async () => {
    const { call, found } = await start(patterns);
    expect((await call("/runs/batch", [run, run])).status).toBe(200);
    await expect.poll(found).toEqual([taken, taken]);
  });

  test("by a command over HTTP, and when it answers or branches", async () => {
    const { call, found, url } = await start(patterns);
    const thread = await newThread(url);
    const command = (method: string, params: object, headers?: Record<string, string>) =>
      call(`/threads/${thread}/commands`, { id: 1, method, params }, headers);
    await command("run.start", run);
    await expect.poll(found).toEqual([taken]);
    const [interrupt] = await interrupts(url, thread);
    await command("input.respond", { interrupt_id: interrupt, response: "yes" }, { "my-room": "5" });
    const kwargs = await lastKwargs(url, thread);
    expect(kwargs.config.configurable).toMatchObject({ "my-room": "5" });
    expect(kwargs.config.configurable).not.toHaveProperty("x-team");
    const [first] = await firstCheckpoints(url, thread);
    await command("state.fork", { checkpoint_id: first, input: {} });
    await expect.poll(found).toEqual([taken, taken]);
  });

  test("over a thread's socket: those of the handshake", async () => {
    const { url, found } = await start(patterns);
    const thread = await newThread(url);
    const socket = await dial(`${url}/threads/${thread}/stream`, { headers: sent });
    expect(await socket.ask({ ...run, id: 1, type: "run" })).toMatchObject({ type: "ack" });
    await expect.poll(found).toEqual([taken]);
  });

  test("over a socket of protocol v2: those of the handshake", async () => {
    const { url, found } = await start(patterns);
    const thread = await newThread(url);
    const socket = await dial(`${url}/threads/${thread}/stream/events`, { headers: sent });
    socket.send({ id: 1, method: "run.start", params: run });
    await expect.poll(found).toEqual([taken]);
  });
});

test("without the setting no header goes into a run", async () => {
  const { call, found } = await start();
  await call("/runs/wait", run);
  expect(found()).toEqual([{}]);
});

test("a header wins over the body, whose other members stay", async () => {
  const { call, seen } = await start(patterns);
  await call("/runs/wait", { ...run, config: { tags: ["t"], configurable: { "x-team": "mine", other: 1 } } });
  expect(seen).toMatchObject([{ "x-team": "red", other: 1 }]);
});

test("a header does not reach a run that a cron starts later", async () => {
  const { call, url } = await start(patterns);
  await call("/runs/crons", { ...run, schedule: "0 9 * * *" });
  const [cron] = (await (await fetch(`${url}/runs/crons/search`, { method: "POST" })).json()) as JsonObject[];
  expect(cron).toMatchObject({ payload: { input: {} } });
  expect(JSON.stringify(cron)).not.toContain("red");
});

describe("headers that are too large are refused", () => {
  const large = { "my-a": "v".repeat(5_000), "my-b": "v".repeat(4_000) };

  test("with a status over HTTP", async () => {
    const { call, found, complaints } = await start(patterns);
    const { status, text } = await call("/runs/wait", run, large);
    expect([status, text]).toEqual([422, expect.stringContaining("http.configurable_headers")]);
    expect([found(), complaints]).toEqual([[], []]);
  });

  test("with a close code over a socket", async () => {
    const { url } = await start(patterns);
    const thread = await newThread(url);
    const socket = await dial(`${url}/threads/${thread}/stream`, { headers: large });
    expect((await socket.closed).code).toBe(4422);
  });
});

async function interrupts(url: string, thread: string): Promise<string[]> {
  const read = async () => {
    const response = await fetch(`${url}/threads/${thread}`);
    const { interrupts: all } = (await response.json()) as { interrupts: Record<string, { id: string }[]> };
    return Object.values(all).flatMap((some) => some.map(({ id }) => id));
  };
  await expect.poll(read).toHaveLength(1);
  return read();
}

async function lastKwargs(url: string, thread: string) {
  const response = await fetch(`${url}/threads/${thread}/runs?limit=1`);
  const [last] = (await response.json()) as { kwargs: { config: { configurable: JsonObject } } }[];
  if (last === undefined) throw new Error("there is no run");
  return last.kwargs;
}

async function firstCheckpoints(url: string, thread: string): Promise<string[]> {
  const response = await fetch(`${url}/threads/${thread}/history?limit=100`);
  const states = (await response.json()) as { checkpoint: { checkpoint_id: string } }[];
  return states.map(({ checkpoint }) => checkpoint.checkpoint_id).toReversed();
}
