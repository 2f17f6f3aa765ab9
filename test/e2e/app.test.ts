import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { type AppOptions, createApp, graph, list, value } from "../../src/index.ts";
import { KNOWN_OPTIONS } from "../../src/app/options.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createLogger } from "../../src/platform/log.ts";
import { gated, latch, unlessAborted } from "./support/latches.ts";
import { directory, serve } from "./support/server.ts";
import { newThread, postJson } from "./support/wire.ts";
import { describeOverEachTransport } from "../transport/each.ts";

const json = { "content-type": "application/json" };

const one = graph({
  state: { log: list<string>() },
  nodes: { a: async () => ({ log: ["a"] }) },
  edges: { start: "a" },
});

async function wait(url: string, name: string): Promise<unknown> {
  const made = await fetch(`${url}/threads`, { method: "POST", headers: json, body: "{}" });
  const { thread_id } = (await made.json()) as { thread_id: string };
  const body = JSON.stringify({ assistant_id: name, input: {} });
  const answer = await fetch(`${url}/threads/${thread_id}/runs/wait`, {
    method: "POST",
    headers: json,
    body,
  });
  return answer.json();
}

describe("a server", () => {
  describeOverEachTransport("a transport that was asked for,", (transport) => {
    test("serves what it was given", async () => {
      const app = await serve({ transport, graphs: { one } });
      expect(app.transport.kind).toBe(transport);
      expect(app.url).toBe(`http://127.0.0.1:${app.address.port}`);
      expect(await wait(app.url, "one")).toEqual({ log: ["a"] });
      expect(app.storage.stats().synced).toBeGreaterThan(0);
      expect(app.complaints).toEqual([]);
    });
  });

  test("closes once, however often it is asked, and lets nobody in any more", async () => {
    const app = await serve();
    const closing = app.close();
    expect(app.close()).toBe(closing);
    await closing;
    await expect(fetch(`${app.url}/ok`)).rejects.toThrow("fetch failed");
  });

  test("takes a body as large as it is told to, and no larger", async () => {
    const app = await serve({ maxBody: 100 });
    const post = (length: number) =>
      fetch(`${app.url}/threads`, { method: "POST", headers: json, body: JSON.stringify({}).padEnd(length) });
    expect((await post(100)).status).toBe(200);
    expect((await post(101)).status).toBe(413);
  });
});

describe("a server that cannot start", () => {
  test("leaves its directory to the next one", async () => {
    const data = await directory();
    const other = await serve();
    const { port } = other.address;
    await expect(serve({ data, port })).rejects.toMatchObject({ code: "server.address" });
    expect(await wait((await serve({ data, graphs: { one } })).url, "one")).toEqual({ log: ["a"] });
  });

  test("stops the runs that it had begun", async () => {
    const data = await directory();
    const [first, second] = [gated(), gated()];
    const { url, close } = await serve({ data, graphs: { held: first.held } });
    const thread = await newThread(url);
    await postJson(`${url}/threads/${thread}/runs`, { assistant_id: "held", input: { name: "run" } });
    await first.waits("run");
    await close(0);

    const signals: AbortSignal[] = [];
    const resumed = graph({
      state: { log: list<string>(), name: value("nobody") },
      nodes: {
        begin: async () => ({}),
        hold: async (_, ctx) => {
          signals.push(ctx.signal);
          await unlessAborted(latch().passed, ctx.signal);
          return {};
        },
      },
      edges: { start: "begin", begin: "hold" },
    });
    const { port } = (await serve()).address;
    const failed = serve({ data, port, graphs: { held: resumed } });
    await expect(failed).rejects.toMatchObject({ code: "server.address" });
    await serve({ data, graphs: { held: second.held } });
    await second.waits("run");
    second.open("run");
    expect(signals.filter(({ aborted }) => !aborted)).toEqual([]);
  });

  test("because its directory is in use, even in this process, leaves that one alone", async () => {
    const data = await directory();
    const first = await serve({ data, graphs: { one } });
    await expect(serve({ data })).rejects.toMatchObject({ code: "storage.locked" });
    expect(await wait(first.url, "one")).toEqual({ log: ["a"] });
  });

  test.each([
    ["graph", "did you mean graphs?"],
    ["Data", "did you mean data?"],
    ["max_body", "did you mean maxBody?"],
    ["xyz", "the options are graphs, langGraphs, config, data,"],
  ])("because of an option that there is not: %s", async (name, hint) => {
    const data = await directory();
    await expect(createApp({ data, [name]: {} } as AppOptions)).rejects.toMatchObject({
      code: "config.invalid",
      message: expect.stringContaining(`createApp has no option "${name}"; ${hint}`) as unknown,
    });
    // The failed start has left nothing open.
    await serve({ data });
  });

  test("because of a transport that there is not", async () => {
    const transport = "x" as unknown as "node";
    await expect(createApp({ transport })).rejects.toMatchObject({
      code: "config.invalid",
      message: 'The transport must be "uws", "node" or "none", not "x"',
    });
  });

  test("because other machines could use it without a key: says which options there are", async () => {
    await expect(createApp({ host: "0.0.0.0" })).rejects.toThrow(
      "the options keys and insecure of createApp",
    );
  });

  test("because of a graph that is none", async () => {
    const graphs = { odd: { nodes: {} } as unknown as typeof one };
    await expect(createApp({ graphs })).rejects.toMatchObject({ code: "graph.invalid" });
  });
});

test("a server without options serves no graph", async () => {
  const app = await createApp();
  onTestFinished(() => app.close(0));
  expect((await fetch(`${app.url}/ok`)).status).toBe(200);
});

test("the guide lists each option of createApp", () => {
  const guide = readFileSync(join(import.meta.dirname, "../../src/guide/clients.md"), "utf8");
  const [, table = ""] = guide.split("## Options of `createApp`");
  expect(Object.keys(KNOWN_OPTIONS).filter((name) => !table.includes(`\`${name}\``))).toEqual([]);
});

test.each([
  ["no graphs", {}, 1],
  ["an empty list of graphs", { graphs: {} }, 1],
  ["an option that is not set", { graphs: { one }, limit: undefined }, 0],
])("a server with %s warns when it has none", async (_, options, count) => {
  const warned: string[] = [];
  const logger = createLogger({ clock: systemClock, level: "warn", write: (line) => warned.push(line) });
  const app = await createApp({ ...options, logger } as AppOptions);
  onTestFinished(() => app.close(0));
  expect(warned.filter((line) => line.includes("no graph is served"))).toHaveLength(count);
  expect(warned).toHaveLength(count);
});
