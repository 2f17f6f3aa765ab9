import { Worker } from "node:worker_threads";
import { afterAll, expect, test } from "vitest";
import { graph, value } from "../../src/index.ts";
import { directory, serve } from "./support/server.ts";
import { get, newThread, postJson } from "./support/wire.ts";
import { describeOverEachTransport } from "../transport/each.ts";

/** Milliseconds after which a node stops waiting for its client to get the response. */
const PATIENCE = 3_000;

/**
 * Graphs whose node blocks the event loop until the client has its response, or for {@link PATIENCE}: `busy` at once,
 * `asking` after its question has been answered.
 */
function blocking() {
  const flag = new Int32Array(new SharedArrayBuffer(4));
  let tell: (isAnswered: boolean) => void = () => undefined;
  const isAnswered = new Promise<boolean>((resolve) => (tell = resolve));
  let hasWaited = false;
  const block = () => {
    if (hasWaited) return;
    hasWaited = true;
    tell(Atomics.wait(flag, 0, 0, PATIENCE) !== "timed-out");
  };
  const state = { topic: value("") };
  const busy = graph({
    state,
    nodes: {
      work: async () => {
        block();
        return {};
      },
    },
    edges: { start: "work" },
  });
  const asking = graph({
    state,
    nodes: {
      ask: async (_, ctx) => {
        await ctx.interrupt("go on?");
        block();
        return {};
      },
    },
    edges: { start: "ask" },
  });
  return { graphs: { busy, asking }, flag, isAnswered };
}

interface Asked {
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>> | readonly unknown[];
  /** The part of the response that the client waits for. */
  readonly until: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const client = new Worker(new URL("../fixtures/asking.mjs", import.meta.url));
afterAll(async () => void (await client.terminate()));

/** Sends the request from another thread, which sets a flag when the response has arrived. */
function ask(url: string, { path, ...asked }: Asked, flag: Int32Array): void {
  const to = path.startsWith("ws:") ? url.replace("http", "ws") + path.slice(3) : url + path;
  client.postMessage({ ...asked, url: to, flag }, []);
}

const run = { assistant_id: "busy", input: {} };
const answer = { assistant_id: "asking", command: { resume: "yes" } };
const inThread = (thread: string) => `/threads/${thread}`;

/** Ways to start a run. */
const starts: Readonly<Record<string, (thread: string) => Asked>> = {
  "POST runs": (thread) => ({ path: `${inThread(thread)}/runs`, body: run, until: "run_id" }),
  "POST runs with an idempotency key": (thread) => ({
    path: `${inThread(thread)}/runs`,
    body: run,
    until: "run_id",
    headers: { "idempotency-key": "once" },
  }),
  "POST runs/stream": (thread) => ({
    path: `${inThread(thread)}/runs/stream`,
    body: run,
    until: "event: metadata",
  }),
  "POST /runs": () => ({ path: "/runs", body: run, until: "run_id" }),
  "POST /runs/stream": () => ({ path: "/runs/stream", body: run, until: "event: metadata" }),
  "the thread's socket": (thread) => ({
    path: `ws:${inThread(thread)}/stream`,
    body: { id: 1, type: "run", ...run },
    until: '"ack"',
  }),
  "run.start of the protocol": (thread) => ({
    path: `${inThread(thread)}/commands`,
    body: { id: 1, method: "run.start", params: run },
    until: '"success"',
  }),
  "run.start over the protocol's socket": (thread) => ({
    path: `ws:${inThread(thread)}/stream/events`,
    body: { id: 1, method: "run.start", params: run },
    until: '"success"',
  }),
};

/** Ways to answer the question of a run. */
const resumes: Readonly<Record<string, (thread: string, interrupt: string) => Asked>> = {
  "POST runs": (thread) => ({ path: `${inThread(thread)}/runs`, body: answer, until: "run_id" }),
  "POST runs/stream": (thread) => ({
    path: `${inThread(thread)}/runs/stream`,
    body: answer,
    until: "event: metadata",
  }),
  "the thread's socket": (thread) => ({
    path: `ws:${inThread(thread)}/stream`,
    body: { id: 1, type: "resume", resume: "yes" },
    until: '"ack"',
  }),
  "input.respond of the protocol": (thread, interrupt_id) => ({
    path: `${inThread(thread)}/commands`,
    body: { id: 1, method: "input.respond", params: { interrupt_id, response: "yes" } },
    until: '"success"',
  }),
  "input.respond over the protocol's socket": (thread, interrupt_id) => ({
    path: `ws:${inThread(thread)}/stream/events`,
    body: { id: 1, method: "input.respond", params: { interrupt_id, response: "yes" } },
    until: '"success"',
  }),
};

describeOverEachTransport("a node that computes keeps nobody from the answer,", (transport) => {
  test.each(Object.entries(starts))("a run by %s", async (_, asked) => {
    const { graphs, flag, isAnswered } = blocking();
    const { url } = await serve({ transport, graphs });
    ask(url, asked(await newThread(url)), flag);
    expect(await isAnswered).toBe(true);
  });

  test.each(Object.entries(starts))("a run by %s that is stored on a disk first", async (_, asked) => {
    const { graphs, flag, isAnswered } = blocking();
    const { url } = await serve({ transport, graphs, data: await directory() });
    ask(url, asked(await newThread(url)), flag);
    expect(await isAnswered).toBe(true);
  });

  test.each(["in memory", "on a disk"])("a batch of runs that is stored %s", async (where) => {
    const { graphs, flag, isAnswered } = blocking();
    const { url } = await serve({
      transport,
      graphs,
      ...(where === "on a disk" && { data: await directory() }),
    });
    ask(url, { path: "/runs/batch", body: Array.from({ length: 100 }, () => run), until: "run_id" }, flag);
    expect(await isAnswered).toBe(true);
  });

  test.each(Object.entries(resumes))("an answer by %s", async (_, asked) => {
    const { graphs, flag, isAnswered } = blocking();
    const { url } = await serve({ transport, graphs });
    const thread = await newThread(url);
    await postJson(`${url}/threads/${thread}/runs/wait`, { assistant_id: "asking", input: {} });
    const { interrupts } = (await (await get(`${url}/threads/${thread}`)).json()) as {
      interrupts: Record<string, readonly { id: string }[]>;
    };
    const [question] = Object.values(interrupts).flat();
    ask(url, asked(thread, question?.id ?? ""), flag);
    expect(await isAnswered).toBe(true);
  });
});
