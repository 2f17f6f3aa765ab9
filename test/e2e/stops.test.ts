import { randomUUID } from "node:crypto";
import { Agent, request as httpRequest } from "node:http";
import { setImmediate, setTimeout } from "node:timers/promises";
import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { Client } from "@langchain/langgraph-sdk";
import { Auth } from "@langchain/langgraph-sdk/auth";
import { expect, onTestFinished, test } from "vitest";
import type { AppOptions } from "../../src/app.ts";
import { describeOverEachTransport } from "../transport/each.ts";
import { check } from "../../src/cli/maintenance.ts";
import { graph, list, value } from "../../src/index.ts";
import { served } from "../langgraph/support.ts";
import { gated, latch, latches } from "./support/latches.ts";
import { receiver } from "./support/receiver.ts";
import { directory, serve } from "./support/server.ts";
import { newThread, openPost, post, postJson, Reading } from "./support/wire.ts";

/** Milliseconds that the second node takes, and that the stop waits at most. */
const LONG = 2_000;
const PROMISE = 8_000;
const RUNS = 20;

/** How often each run's second node has begun. */
type Begun = Map<string, number>;
const count = (begun: Begun, name: string) => void begun.set(name, (begun.get(name) ?? 0) + 1);

function native(begun: Begun): AppOptions {
  const slow = graph({
    state: { log: list<string>(), name: value("") },
    nodes: {
      quick: async () => ({ log: ["quick"] }),
      long: async ({ name }, ctx) => {
        count(begun, name);
        for (let i = 0; i < 20; i++) {
          ctx.emit({ token: i });
          await setTimeout(LONG / 20);
        }
        return { log: ["long"] };
      },
    },
    edges: { start: "quick", quick: "long" },
  });
  return { graphs: { slow } };
}

async function hosted(begun: Begun): Promise<AppOptions> {
  const State = Annotation.Root({
    name: Annotation<string>,
    log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
  });
  const slow = new StateGraph(State)
    .addNode("quick", async () => ({ log: ["quick"] }))
    .addNode("long", async ({ name }, config) => {
      count(begun, name);
      for (let i = 0; i < 20; i++) {
        config.writer?.({ token: i });
        await setTimeout(LONG / 20);
      }
      return { log: ["long"] };
    })
    .addEdge(START, "quick")
    .addEdge("quick", "long")
    .compile();
  return { langGraphs: await served({ slow }) };
}

test.each([
  ["our own", native],
  ["LangGraph.js", hosted],
])(
  "a stop in the middle of 20 runs of %s graphs: the drain waits for their nodes, each run ends, run and thread agree",
  async (_, graphs) => {
    const data = await directory();
    const begun: Begun = new Map();
    const first = await serve({ data, ...(await graphs(begun)) });
    const one = new Client({ apiUrl: first.url });
    const runs = await Promise.all(
      Array.from({ length: RUNS }, async (_, i) => {
        // The runs end at different times while the server stops.
        await setTimeout(i * 40);
        const { thread_id: thread } = await one.threads.create();
        const input = { name: `run ${i}` };
        return {
          thread,
          run: (await one.runs.create(thread, "slow", { input, streamMode: "custom" })).run_id,
        };
      }),
    );
    await setTimeout(LONG / 2);
    const began = performance.now();
    await first.close(PROMISE);
    // All runs end within the limit, and the stop takes no longer than they do.
    expect(performance.now() - began).toBeLessThan(PROMISE - 1_000);

    const second = await serve({ data, ...(await graphs(begun)) });
    const two = new Client({ apiUrl: second.url });
    for (const { thread, run } of runs) {
      expect(await two.runs.get(thread, run)).toMatchObject({ status: "success" });
      expect(await two.runs.join(thread, run)).toMatchObject({ log: ["quick", "long"] });
      expect(await two.threads.get(thread)).toMatchObject({ status: "idle" });
    }
    expect([...begun.values()]).toEqual(Array.from({ length: RUNS }, () => 1));
    await second.close();
    const lines: string[] = [];
    expect(await check(data, (line) => lines.push(line)), lines.join()).toBe(0);
    expect([...first.complaints, ...second.complaints]).toEqual([]);
  },
  60_000,
);

test("a run that is to end with its client's connection does not go on after a stop that has cut it", async () => {
  const data = await directory();
  const begun: Begun = new Map();
  const first = await serve({ data, ...native(begun) });
  const one = new Client({ apiUrl: first.url, callerOptions: { maxRetries: 0 } });
  const open = async (name: string, onDisconnect: "cancel" | "continue", to?: string) => {
    const thread = to ?? (await one.threads.create()).thread_id;
    const run = await new Promise<string>((resolve) => {
      const options = { onDisconnect, multitaskStrategy: "enqueue", input: { name } } as const;
      const onRunCreated = ({ run_id }: { run_id: string }) => resolve(run_id);
      const read = async () => {
        const stream = one.runs.stream(thread, "slow", { ...options, streamMode: "custom", onRunCreated });
        for await (const _ of stream);
      };
      void read().catch(() => undefined);
    });
    return { thread, run };
  };
  const cancelled = await open("cancelled", "cancel");
  const queued = await open("queued", "cancel", cancelled.thread);
  const free = await open("free", "continue");
  // A join names this in its query.
  const joined = await open("joined", "continue");
  const controller = new AbortController();
  const path = `/threads/${joined.thread}/runs/${joined.run}/stream?cancel_on_disconnect=true`;
  const joining = await fetch(first.url + path, { signal: controller.signal });
  expect(joining.status).toBe(200);
  await expect.poll(() => begun.size).toBe(3);
  await first.close(100);
  controller.abort();

  const second = await serve({ data, ...native(begun) });
  const two = new Client({ apiUrl: second.url });
  const statusOf = async ({ thread, run }: typeof cancelled) => {
    await two.runs.join(thread, run);
    return (await two.runs.get(thread, run)).status;
  };
  expect(await Promise.all([cancelled, queued, joined, free].map(statusOf))).toEqual([
    "interrupted",
    "interrupted",
    "interrupted",
    "success",
  ]);
  expect(Object.fromEntries(begun)).toEqual({ cancelled: 1, free: 2, joined: 1 });
  await second.close();
  const lines: string[] = [];
  expect(await check(data, (line) => lines.push(line)), lines.join()).toBe(0);
  expect([...first.complaints, ...second.complaints]).toEqual([]);
}, 60_000);

/** Graphs whose runs wait in `one` until the test releases them, and record that they reached `two`. */
function gatedSteps() {
  const [reached, opened] = [latches(), latches()];
  const wentOn: string[] = [];
  const one = async ({ name }: { name: string }) => {
    reached(name).pass();
    await opened(name).passed;
    return { log: [`${name} one`] };
  };
  const two = ({ name }: { name: string }) => {
    wentOn.push(name);
    return { log: [`${name} two`] };
  };
  return {
    one,
    two,
    wentOn,
    opened,
    reached: (name: string) => reached(name).passed,
    open: (name: string) => opened(name).pass(),
  };
}
type Steps = ReturnType<typeof gatedSteps>;

const Steps = Annotation.Root({
  name: Annotation<string>,
  log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});
const ofSteps = {
  native: async ({ one, two }: Steps) => {
    const state = { log: list<string>(), name: value("") };
    return { graphs: { steps: graph({ state, nodes: { one, two }, edges: { start: "one", one: "two" } }) } };
  },
  nested: async ({ one, two }: Steps) => {
    const state = { log: list<string>(), name: value("") };
    const inner = graph({ state, nodes: { one, two }, edges: { start: "one", one: "two" } });
    return { graphs: { steps: graph({ state, nodes: { inner }, edges: { start: "inner" } }) } };
  },
  hosted: async ({ one, two }: Steps) => {
    const made = new StateGraph(Steps).addNode("one", one).addNode("two", two);
    return {
      langGraphs: await served({ steps: made.addEdge(START, "one").addEdge("one", "two").compile() }),
    };
  },
  "hosted, nested": async ({ one, two }: Steps) => {
    const made = new StateGraph(Steps).addNode("one", one).addNode("two", two);
    const inner = made.addEdge(START, "one").addEdge("one", "two").compile();
    const steps = new StateGraph(Steps).addNode("inner", inner).addEdge(START, "inner").compile();
    return { langGraphs: await served({ steps }) };
  },
  // Two nodes at a time: `two` joins the step when `beside` has ended, while `one` still runs.
  "hosted, within a step": async ({ one, two, opened }: Steps) => {
    const made = new StateGraph(Steps)
      .addNode("beside", async ({ name }) => {
        await opened(name).passed;
        return { log: [] };
      })
      .addNode("one", async (state) => {
        const update = await one(state);
        for (let turn = 0; turn < 20; turn++) await setImmediate();
        return update;
      })
      .addNode("two", two);
    const steps = made.addEdge(START, "beside").addEdge(START, "one").addEdge(START, "two").compile();
    return { langGraphs: await served({ steps }) };
  },
};

test.each(Object.entries(ofSteps))(
  "a paused or queued run that is cancelled while the server stops ends before the server does, and its clients get the end (%s)",
  async (_, graphs) => {
    const data = await directory();
    const steps = gatedSteps();
    const options = { data, ...(await graphs(steps)) };
    const first = await serve(options);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    /** Sends a request over a connection opened before the stop, since new ones are not accepted. */
    const ask = (method: string, path: string) =>
      new Promise<number | undefined>((resolve, reject) => {
        const request = httpRequest(first.url + path, { agent, method }, (response) => {
          response.resume().on("end", () => resolve(response.statusCode));
        });
        request.on("error", reject).end();
      });
    const create = async (thread: string, name: string) => {
      const body = {
        assistant_id: "steps",
        input: { name },
        config: { max_concurrency: 2 },
        multitask_strategy: "enqueue",
        stream_mode: ["updates"],
        stream_subgraphs: true,
      };
      const { run_id: run } = await postJson<{ run_id: string }>(`${first.url}/threads/${thread}/runs`, body);
      const path = `/threads/${thread}/runs/${run}`;
      const stream = new Reading(await fetch(`${first.url}${path}/stream`));
      return { name, thread, run, path, stream, joined: read(fetch(`${first.url}${path}/join`)) };
    };
    const [a, b, c] = [await newThread(first.url), await newThread(first.url), await newThread(first.url)];
    const runs = [
      { ...(await create(a, "paused")), action: "interrupt", is: "interrupted" },
      { ...(await create(a, "queued")), action: "interrupt", is: "interrupted" },
      { ...(await create(a, "undone, queued")), action: "rollback", is: undefined },
      { ...(await create(b, "undone")), action: "rollback", is: undefined },
    ];
    const slow = await create(c, "slow");
    const last = await create(a, "last");
    await Promise.all(["paused", "undone", "slow"].map(steps.reached));
    expect(await ask("GET", "/ok")).toBe(200);
    const began = performance.now();
    const closed = first.close(PROMISE);
    await expect.poll(() => ask("POST", "/threads"), { interval: 5 }).toBe(503);
    steps.open("paused");
    steps.open("undone");
    for (const { name, stream } of runs.filter((run) => !run.name.includes("queued")))
      await stream.until(({ data }) => JSON.stringify(data).includes(`${name} one`));
    for (const { path, action } of runs)
      expect(await ask("POST", `${path}/cancel?action=${action}`)).toBe(202);
    // Before the last node has ended.
    for (const { stream, joined } of runs) {
      await stream.all();
      expect(await joined).toMatch(/^200 /);
    }
    steps.open("slow");
    await closed;
    expect(performance.now() - began).toBeLessThan(PROMISE - 1_000);
    expect(await last.joined).toBe("cut");

    const second = await serve(options);
    for (const { path, is } of runs) {
      const found = await fetch(second.url + path);
      const { status } = (await found.json()) as { status?: string };
      expect([path, found.status, status]).toEqual([path, is === undefined ? 404 : 200, is]);
    }
    steps.open("last");
    const two = new Client({ apiUrl: second.url });
    for (const { thread, run } of [slow, last]) {
      await two.runs.join(thread, run);
      expect((await two.runs.get(thread, run)).status).toBe("success");
    }
    expect(steps.wentOn.toSorted()).toEqual(["last", "slow"]);
    await second.close();
    const lines: string[] = [];
    expect(await check(data, (line) => lines.push(line)), lines.join()).toBe(0);
    expect([...first.complaints, ...second.complaints]).toEqual([]);
  },
  60_000,
);

/** The result for a client that reads a response to its end. */
async function read(answer: Promise<Response>): Promise<string> {
  try {
    const response = await answer;
    return `${response.status} ${await response.text()}`;
  } catch {
    return "cut";
  }
}

/** A server whose project code waits forever at the place that the test names. */
async function waitsIn(transport: "uws" | "node", where: string) {
  const bothWait = latch();
  let waiting = 0;
  const wait = async (here: string): Promise<void> => {
    if (here !== where) return;
    if (++waiting === 2) bothWait.pass();
    await new Promise(() => undefined);
  };
  const { held, waits } = gated();
  const auth = new Auth()
    .authenticate(async (request) => {
      await wait(`authenticate ${new URL(request.url).pathname}`);
      return "somebody";
    })
    .on("threads:read", async () => {
      await wait("a handler of threads:read");
      return true;
    });
  const httpApp = async (request: Request) => {
    await wait(`an application ${new URL(request.url).pathname}`);
    return undefined;
  };
  const app = await serve({
    transport,
    graphs: { held },
    auth,
    ...(where.startsWith("an application") && { httpApp }),
  });
  return { app, bothWait: bothWait.passed, waits };
}

describeOverEachTransport("a stop", (transport) => {
  test.each([
    ["authenticate /threads/search", "POST", "/threads/search"],
    ["a handler of threads:read", "GET", `/threads/${randomUUID()}`],
    ["an application /threads/search", "POST", "/threads/search"],
  ])("refuses a request that is still in %s with 503", async (where, method, path) => {
    const { app, bothWait } = await waitsIn(transport, where);
    const init =
      method === "POST" ? { method, headers: { "content-type": "application/json" }, body: "{}" } : {};
    const asked = fetch(app.url + path, init);
    const within = app.fetch(new Request(`http://localhost${path}`, init));
    await bothWait;
    await app.close();
    for (const response of await Promise.all([asked, within])) {
      expect([response.status, response.headers.get("retry-after")]).toEqual([503, "1"]);
      expect(await response.json()).toMatchObject({ detail: "The server is stopping" });
    }
    expect(app.complaints).toEqual([]);
  });

  test("cuts who waits for a run, also behind an application: a 503 would have them start it again", async () => {
    const { app, waits } = await waitsIn(transport, "an application, nowhere");
    const body = { assistant_id: "held", input: { name: "one" } };
    const waiting = read(post(`${app.url}/runs/wait`, body));
    await waits("one");
    await app.close(1);
    expect(await waiting).toBe("cut");
  });

  test("that ends runs whose clients wait for them cuts the clients, whether the runs have started or not, and tells the webhooks", async () => {
    const data = await directory();
    const hook = await receiver();
    const begun: Begun = new Map();
    const options = { data, transport, webhooks: { allow_internal: true }, ...native(begun) } as const;
    // One run at a time: all others are queued.
    const concurrent = { all: 1, perTenant: Infinity, perGraph: {} };
    const first = await serve({ ...options, limits: { concurrent } });
    const thread = await newThread(first.url);
    const locations: string[] = [];
    const send = async (path: string, name: string, more: object = {}) => {
      const body = { assistant_id: "slow", input: { name }, webhook: hook.url, metadata: { name }, ...more };
      const response = await openPost(first.url + path, body);
      locations.push(response.headers.get("content-location") ?? "");
      return response;
    };
    const active = read(send("/runs/wait", "active"));
    await expect.poll(() => begun.size).toBe(1);
    const queued = {
      active,
      wait: read(send("/runs/wait", "wait")),
      stream: read(send("/runs/stream", "stream")),
      thread: read(send(`/threads/${thread}/runs/wait`, "thread", { on_disconnect: "cancel" })),
      delayed: read(send("/runs/wait", "delayed", { after_seconds: 3_600 })),
    };
    await expect.poll(() => locations.length).toBe(5);
    const joined = read(fetch(`${first.url}${locations.find((path) => path.startsWith("/threads/"))}/join`));
    const { busy } = first.system.counts;
    const all = { ...queued, joined, late: read(send("/runs/wait", "late")) };
    // The run is admitted, but its response has no headers yet.
    await expect.poll(() => first.system.counts.busy, { interval: 5 }).toBe(busy + 1);
    await first.close(50);
    const got = Object.fromEntries(
      await Promise.all(Object.entries(all).map(async ([name, end]) => [name, await end] as const)),
    );
    expect(got).toEqual(Object.fromEntries(Object.keys(all).map((name) => [name, "cut"])));

    const second = await serve(options);
    const names = ["active", "delayed", "late", "stream", "thread", "wait"];
    await expect.poll(() => hook.told.length).toBeGreaterThanOrEqual(names.length);
    const told = hook.told.map(({ json }) => [(json["metadata"] as { name: string }).name, json["status"]]);
    expect(told.toSorted()).toEqual(names.map((name) => [name, "interrupted"]));
    for (const path of locations) {
      const isAlone = path.startsWith("/runs/");
      const { status } = await fetch(`${second.url}${path}${isAlone ? "/join" : ""}`);
      expect([path, status]).toEqual([path, isAlone ? 404 : 200]);
    }
    expect(await (await fetch(`${second.url}/threads/${thread}/runs`)).json()).toMatchObject([
      { status: "interrupted" },
    ]);
    expect(Object.fromEntries(begun)).toEqual({ active: 1 });
    await second.close();
    const lines: string[] = [];
    expect(await check(data, (line) => lines.push(line)), lines.join()).toBe(0);
    expect([...first.complaints, ...second.complaints]).toEqual([]);
  }, 60_000);
});
