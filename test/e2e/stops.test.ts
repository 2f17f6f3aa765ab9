import { setTimeout } from "node:timers/promises";
import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { Client } from "@langchain/langgraph-sdk";
import { expect, test } from "vitest";
import type { AppOptions } from "../../src/app.ts";
import { check } from "../../src/cli/maintenance.ts";
import { graph, list, value } from "../../src/index.ts";
import { served } from "../langgraph/support.ts";
import { directory, serve } from "./support/server.ts";

/** Milliseconds that the second node takes, and what the stop promises to wait. */
const LONG = 2_000;
const PROMISE = 8_000;
const RUNS = 20;

/** Counts how often each run's second node was begun. */
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
        // Their ends come one after the other while the server stops.
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
    // All are over within the promise, and nothing holds the stop up once they are.
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
  // Who joins it says so in the address.
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
