import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { graph, list, messages, runTools, tool } from "../../src/index.ts";
import { chunkEnd, eventModes } from "../../src/model/run-event.ts";
import { type StreamMode, streamModes } from "../../src/model/run.ts";
import { DEFAULT_TENANT } from "../../src/model/thread.ts";
import { noFailpoints } from "../../src/ports/failpoints.ts";
import type { Clock } from "../../src/ports/clock.ts";
import type { Scheduler } from "../../src/ports/scheduler.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { silentLogger } from "../../src/platform/log.ts";
import { systemScheduler } from "../../src/platform/scheduler.ts";
import { openStorage } from "../../src/storage/open-storage.ts";
import { lines } from "./support/clients.ts";
import { gated } from "./support/latches.ts";
import { differs, isHosted } from "./support/suite-variant.ts";
import { serve } from "./support/server.ts";
import { bytesOf, events, get, newThread, post, Reading, type Sent, TIME, UUID } from "./support/wire.ts";
import { served } from "../langgraph/support.ts";
import { describeOverEachTransport } from "../transport/each.ts";

const look = tool({
  name: "look",
  description: "Looks somewhere",
  schema: z.object({ up: z.string() }),
  run: ({ up }) => `saw ${up}`,
});

/** A run with output in every mode: a streamed message with a tool call, custom data, two parallel nodes. */
const chatter = graph({
  state: { messages: messages(), log: list<string>() },
  nodes: {
    speak: async (_, ctx) => {
      ctx.emit({ progress: 1 });
      ctx.log.info("about to speak", { words: 2 });
      const message = ctx.message({ name: "bot" });
      message.write("Hel");
      message.write("lo");
      message.toolCall({ name: "look", args: { up: "x" } });
      message.usage({ input_tokens: 1, output_tokens: 2, total_tokens: 3 });
      const said = message.end();
      await runTools([look], said, ctx);
      return { messages: [said], log: ["spoke"] };
    },
    left: async () => ({ log: ["left"] }),
    right: async () => ({ log: ["right"], messages: [{ role: "ai", content: "whole", id: "w1" }] }),
  },
  edges: { start: "speak", speak: ["left", "right"] },
});

const asks = graph({
  state: { log: list<string>() },
  nodes: {
    ask: async (_, ctx) => ({ log: [await ctx.interrupt<string>("ok?")] }),
  },
  edges: { start: "ask" },
});

const fails = graph({
  state: { log: list<string>() },
  nodes: {
    bad: async () => {
      throw new TypeError("kaboom");
    },
  },
  edges: { start: "bad" },
});

const graphs = { chatter, asks, fails };
const input = { messages: [{ role: "user", content: "hi", id: "u1" }] };

/** The event names of each mode. */
const NAMES: { readonly [M in StreamMode]: readonly string[] } = {
  values: ["values"],
  updates: ["updates"],
  messages: ["messages/metadata", "messages/partial", "messages/complete"],
  "messages-tuple": ["messages"],
  custom: ["custom"],
  debug: ["debug"],
  tasks: ["tasks"],
  checkpoints: ["checkpoints"],
  events: ["events"],
  tools: ["tools"],
  logs: ["logs"],
};

/** The official client does not know `logs`. */
type Known = Exclude<StreamMode, "logs">;

interface Part {
  readonly id?: string;
  readonly event: string;
  readonly data: unknown;
}

/** Replaces ids and times by the order in which they occur, so that two runs of one graph look the same. */
function alike(given: readonly Part[]): unknown {
  const parts = differs("tokens that nobody asked for")
    ? given.map(({ event, data }) => ({ event, data }))
    : given;
  const seen = new Map<string, string>();
  const rename = (found: string) => {
    const known = seen.get(found) ?? `#${seen.size}`;
    seen.set(found, known);
    return known;
  };
  const text = JSON.stringify(parts)
    .replaceAll(/"\d{4}-\d\d-\d\dT[^"]*"/g, '"<time>"')
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}/g, rename);
  return JSON.parse(text);
}

/** Two nodes run in parallel, so the order of their ends is open. */
const sorted = (parts: readonly Part[]) => [...parts].sort((a, b) => Number(a.id) - Number(b.id));

describe.each(lines)("stream modes over %s", (_, connect) => {
  const start = async () => {
    const server = await serve({ graphs });
    const client = connect(server.url);
    const read = async (graphName: string, streamMode: StreamMode | StreamMode[], extra = {}) => {
      const { thread_id } = await client.threads.create();
      const got: Part[] = [];
      let run_id = "";
      for await (const part of client.runs.stream(thread_id, graphName, {
        input,
        streamMode: streamMode as Known | Known[],
        onRunCreated: (run) => (run_id = run.run_id),
        ...extra,
      })) {
        got.push(part);
      }
      return { thread_id, run_id, got };
    };
    return { server, client, read };
  };

  /** Modes in which all graphs have output. */
  const shownModes = streamModes.filter(
    (mode) =>
      !(mode === "logs" && differs("log lines")) && !(mode === "tools" && differs("the calls of tools")),
  );

  test("all at once show what each shows alone, of the same run and of another one", async () => {
    const { client, read, server } = await start();
    const { thread_id, run_id, got } = await read("chatter", [...shownModes]);
    for (const mode of shownModes) {
      const joined: Part[] = [];
      for await (const part of client.runs.joinStream(thread_id, run_id, {
        lastEventId: "-1",
        streamMode: mode as Known,
      })) {
        joined.push(part);
      }
      const names = new Set(["metadata", ...NAMES[mode]]);
      const own = got.filter(({ event }) => names.has(event));
      expect(own.length, mode).toBeGreaterThan(1);
      expect(joined, mode).toEqual(own);
      const alone = await read("chatter", mode);
      expect(alike(sorted(alone.got)), mode).toEqual(alike(sorted(own)));
    }
    expect(new Set(got.map(({ event }) => event))).toEqual(
      new Set(["metadata", ...shownModes.flatMap((mode) => NAMES[mode])]),
    );
    expect(server.complaints).toEqual([]);
  });

  test("messages: metadata once, then what has come so far, then the whole; the input's too", async () => {
    const { read } = await start();
    const { got } = await read("chatter", "messages");
    const shown = got.slice(1).map(({ event, data }) => {
      if (event === "messages/metadata") return [event, Object.keys(data as object).length];
      const [message] = data as [{ content: string; tool_calls: unknown[]; usage_metadata?: unknown }];
      return [event, message.content, message.tool_calls?.length ?? 0, message.usage_metadata ?? null];
    });
    const usage = { input_tokens: 1, output_tokens: 2, total_tokens: 3 };
    expect(shown).toEqual([
      ["messages/complete", "hi", 0, null],
      ["messages/metadata", 1],
      ["messages/partial", "Hel", 0, null],
      ["messages/partial", "Hello", 0, null],
      ["messages/partial", "Hello", 1, null],
      ["messages/partial", "Hello", 1, usage],
      ["messages/complete", "Hello", 1, usage],
      ["messages/complete", "whole", 0, null],
    ]);
    const ids = got.flatMap(({ event, data }) =>
      event === "messages/complete" ? (data as { id: string }[]).map(({ id }) => id) : [],
    );
    expect(new Set(ids).size).toBe(3);
  });

  test("a later run on the thread tells of its own messages alone", async () => {
    const { client, read } = await start();
    const { thread_id } = await read("chatter", "messages");
    const complete: unknown[] = [];
    for await (const { event, data } of client.runs.stream(thread_id, "chatter", {
      input: { messages: [{ role: "user", content: "again", id: "u2" }] },
      streamMode: "messages",
    })) {
      if (event === "messages/complete") {
        complete.push(...(data as unknown as { content: string }[]).map(({ content }) => content));
      }
    }
    // The message "w1" is in the state already, and is replaced by itself.
    expect(complete).toEqual(["again", "Hello"]);
  });

  test("checkpoints are those of the thread's history, and its tasks those of its states", async () => {
    const { client, read } = await start();
    const { thread_id, run_id, got } = await read("chatter", ["checkpoints", "tasks"]);
    const shown = got.filter(({ event }) => event === "checkpoints").map(({ data }) => data) as {
      values: { log: string[] };
      next: string[];
      metadata: object;
      config: object;
      tasks: { id: string; name: string }[];
      checkpoint: { checkpoint_id: string };
      parent_checkpoint: { checkpoint_id: string } | null;
    }[];
    expect(shown.map(({ next }) => next)).toEqual([["__start__"], ["speak"], ["left", "right"], []]);
    expect(shown.map(({ metadata }) => metadata)).toMatchObject([
      { source: "input", step: -1, run_id, thread_id, parents: {} },
      { source: "loop", step: 0 },
      { source: "loop", step: 1 },
      { source: "loop", step: 2 },
    ]);
    for (const [at, { parent_checkpoint }] of shown.entries()) {
      expect(parent_checkpoint?.checkpoint_id).toBe(shown[at - 1]?.checkpoint.checkpoint_id);
    }
    const state = await client.threads.getState<{ log: string[] }>(thread_id);
    expect(state.checkpoint).toEqual(shown.at(-1)?.checkpoint);
    expect(state.values).toEqual(shown.at(-1)?.values);
    const started = got.flatMap(({ event, data }) =>
      event === "tasks" && "input" in (data as object) ? [data as { id: string; input: unknown }] : [],
    );
    const planned = shown.flatMap(({ tasks }) => tasks.filter(({ name }) => name !== "__start__"));
    expect(started.map(({ id }) => id)).toEqual(planned.map(({ id }) => id));
    expect(started.map(({ input: given }) => given)).toEqual([
      shown[1]?.values,
      shown[2]?.values,
      shown[2]?.values,
    ]);
  });

  test("debug is the checkpoints and tasks once more, each in its envelope", async () => {
    const { read } = await start();
    const { got } = await read("chatter", ["checkpoints", "tasks", "debug"]);
    const plain = got.filter(({ event }) => event === "checkpoints" || event === "tasks");
    const wrapped = got.filter(({ event }) => event === "debug").map(({ data }) => data) as {
      step: number;
      type: string;
      timestamp: string;
      payload: unknown;
    }[];
    expect(wrapped.map(({ payload }) => payload)).toEqual(plain.map(({ data }) => data));
    for (const { timestamp } of wrapped) expect(timestamp).toMatch(TIME);
    const inOrder = wrapped.map(({ step, type }) => `${step} ${type}`);
    expect(inOrder).toEqual([
      "-1 checkpoint",
      "0 checkpoint",
      "1 task",
      "1 task_result",
      "1 checkpoint",
      "2 task",
      "2 task",
      "2 task_result",
      "2 task_result",
      "2 checkpoint",
    ]);
  });

  test("events tell of the graph, its nodes and its model, one within the other", async () => {
    const { read } = await start();
    const { got, run_id } = await read("chatter", "events");
    const shown = got.slice(1).map(({ data }) => data) as {
      event: string;
      name: string;
      run_id: string;
      parent_ids: string[];
      data: { output?: unknown };
    }[];
    const [first, last] = [shown[0], shown.at(-1)];
    expect(first).toMatchObject({ event: "on_chain_start", name: "LangGraph", run_id, data: { input } });
    expect(last).toMatchObject({ event: "on_chain_end", name: "LangGraph", run_id });
    expect(last?.data.output).toMatchObject({ log: ["spoke", "left", "right"] });
    const of = (name: string) => shown.filter((event) => event.name === name).map(({ event }) => event);
    expect(of("speak")).toEqual(["on_chain_start", "on_chain_end"]);
    const model = "on_chat_model";
    const called = shown.find(({ event }) => event === `${model}_start`);
    const name = differs("events of models") ? called?.name : "bot";
    const pieces = Array.from({ length: 4 }, () => `${model}_stream`);
    expect(of(name ?? "")).toEqual([`${model}_start`, ...pieces, `${model}_end`]);
    const speak = shown.find((event) => event.name === "speak");
    expect(speak?.run_id).toMatch(UUID);
    if (!differs("events of models")) expect(called?.parent_ids).toEqual([run_id, speak?.run_id]);
  });

  test("a pause and a failure, in every mode", async () => {
    const { read } = await start();
    for (const mode of streamModes) {
      const failed = await read("fails", mode, { input: {} });
      expect(failed.got.at(-1), mode).toMatchObject({
        event: "error",
        data: { error: "TypeError", message: "kaboom" },
      });
    }
    const { got } = await read("asks", ["values", "updates", "tasks", "debug"], { input: {} });
    const paused = got.slice(-4).map(({ event, data }) => [event, data]);
    const interrupts = [expect.objectContaining({ value: "ok?", when: "during" }) as unknown];
    expect(paused).toEqual([
      ["updates", { __interrupt__: interrupts }],
      ["values", { log: [], __interrupt__: interrupts }],
      ["tasks", expect.objectContaining({ name: "ask", result: {}, error: null, interrupts })],
      ["debug", expect.objectContaining({ type: "task_result", step: 1 })],
    ]);
  });

  test("a breakpoint shows an empty list", async () => {
    const { read } = await start();
    const { got } = await read("chatter", ["values", "updates"], { interruptBefore: ["speak"] });
    expect(got.slice(-2).map(({ event, data }) => [event, data])).toMatchObject([
      ["updates", { __interrupt__: [] }],
      ["values", { log: [], __interrupt__: [] }],
    ]);
  });
});

test.skipIf(isHosted)("every kind of fact is emitted by some run", async () => {
  const storage = await openStorage(
    { kind: "memory" },
    { clock: systemClock, scheduler: systemScheduler, failpoints: noFailpoints, logger: silentLogger },
  );
  const hosted = new StateGraph(Annotation.Root({ n: Annotation<number> }))
    .addNode("one", () => ({ n: 1 }))
    .addEdge(START, "one")
    .compile();
  const { url } = await serve({ storage, graphs, langGraphs: await served({ hosted }) });
  const kinds = new Set<string>();
  const inputs = { chatter: input, asks: {}, fails: {}, hosted: { n: 0 } };
  for (const [assistant_id, given] of Object.entries(inputs)) {
    const thread = await newThread(url);
    const body = { assistant_id, input: given, stream_mode: ["events"] };
    const response = await post(`${url}/threads/${thread}/runs/stream`, body);
    await response.text();
    const run = response.headers.get("content-location")?.split("/").at(-1) ?? "";
    const key = { tenant: DEFAULT_TENANT, thread };
    // Only an empty result is the end.
    for (let after = -1; ;) {
      const chunks = await storage.journal.events(key, run, after, 1_000);
      const last = chunks.at(-1);
      if (last === undefined) break;
      for (const { facts } of chunks) for (const { t } of facts) kinds.add(t);
      after = chunkEnd(last) - 1;
    }
  }
  expect(Object.keys(eventModes).filter((kind) => !kinds.has(kind))).toEqual([]);
});

describeOverEachTransport("stream modes, byte by byte,", (transport) => {
  test("after any id, in all modes, the rest comes to the byte", async () => {
    const { url } = await serve({ transport, graphs });
    const thread = await newThread(url);
    const response = await post(`${url}/threads/${thread}/runs/stream`, {
      assistant_id: "chatter",
      input,
      stream_mode: streamModes,
    });
    const path = response.headers.get("content-location") ?? "";
    const all: Sent[] = events(await response.text());
    for (let id = 0; id <= Number(all.at(-1)?.id); id++) {
      const joined = await get(`${url}${path}/stream`, { "last-event-id": String(id) });
      const missing = all.filter((event) => Number(event.id) > id);
      expect(bytesOf(events(await joined.text())), `after ${id}`).toBe(bytesOf(missing));
    }
  });

  test("a run whose events have expired has a stream that has ended, and its outcome", async () => {
    let pass: () => void = () => undefined;
    // The expiry pass runs when the test fires its timer.
    const scheduler: Scheduler = {
      ...systemScheduler,
      after(ms, task) {
        if (ms !== 1_234) return systemScheduler.after(ms, task);
        pass = task;
        return () => undefined;
      },
    };
    let late = 0;
    const clock: Clock = { ...systemClock, now: () => systemClock.now() + late };
    const server = await serve({ transport, graphs, scheduler, clock, streamsTtl: 12_340 });
    const { url } = server;
    const thread = await newThread(url);
    const created = await post(`${url}/threads/${thread}/runs/stream`, { assistant_id: "chatter", input });
    const path = created.headers.get("content-location") ?? "";
    const all = await created.text();
    const again = async () => events(await (await get(`${url}${path}/stream`)).text());
    // A pass schedules the next one when it has visited all threads.
    const passed = async () => {
      const before = pass;
      before();
      while (pass === before) await new Promise((resolve) => systemScheduler.soon(() => resolve(undefined)));
    };
    await passed();
    expect(bytesOf(await again())).toBe(bytesOf(events(all)));
    late = 12_341;
    await passed();
    expect(await again()).toEqual([]);
    const resumed = await get(`${url}${path}/stream`, { "last-event-id": "3" });
    expect([resumed.status, events(await resumed.text())]).toEqual([200, []]);
    expect(await (await get(`${url}${path}/join`)).json()).toMatchObject({ log: ["spoke", "left", "right"] });
    expect(server.complaints).toEqual([]);
  });

  describe("on_disconnect", () => {
    const held = async () => {
      const gate = gated();
      const { url } = await serve({ transport, graphs: { held: gate.held } });
      return { ...gate, url, thread: await newThread(url) };
    };

    const statusOf = async (at: string) => {
      await (await get(`${at}/join`)).text();
      return ((await (await get(at)).json()) as { status: string }).status;
    };

    test.each([
      ["stream", "cancel", "interrupted"],
      ["stream", "continue", "success"],
      ["stream", undefined, "success"],
      ["wait", "cancel", "interrupted"],
      ["wait", "continue", "success"],
      ["wait", undefined, "success"],
    ])("POST /runs/%s with %s: when its client goes away the run ends as %s", async (how, what, status) => {
      const { url, thread, waits, open } = await held();
      const leaving = new AbortController();
      const response = await fetch(`${url}/threads/${thread}/runs/${how}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ assistant_id: "held", input: { name: "a" }, on_disconnect: what }),
        signal: leaving.signal,
      });
      const path = response.headers.get("content-location") ?? "";
      await waits("a");
      leaving.abort();
      await response.text().catch(() => undefined);
      if (status === "success") open("a");
      expect(await statusOf(`${url}${path}`)).toBe(status);
    });

    test.each([
      ["join", "1", "interrupted"],
      ["join", "0", "success"],
      ["stream", "true", "interrupted"],
    ])("GET %s with cancel_on_disconnect=%s ends it as %s", async (how, cancel, status) => {
      const { url, thread, waits, open } = await held();
      const created = await post(`${url}/threads/${thread}/runs`, {
        assistant_id: "held",
        input: { name: "a" },
      });
      await created.text();
      const at = `${url}${created.headers.get("content-location") ?? ""}`;
      await waits("a");
      const leaving = new AbortController();
      const response = await fetch(`${at}/${how}?cancel_on_disconnect=${cancel}`, { signal: leaving.signal });
      leaving.abort();
      await response.text().catch(() => undefined);
      if (status === "success") open("a");
      expect(await statusOf(at)).toBe(status);
    });

    test("a reader that only joins does not end a run whose creator asked for it", async () => {
      const { url, thread, waits, open } = await held();
      const created = await post(`${url}/threads/${thread}/runs/stream`, {
        assistant_id: "held",
        input: { name: "a" },
        on_disconnect: "cancel",
      });
      const path = created.headers.get("content-location") ?? "";
      await waits("a");
      const leaving = new AbortController();
      const joined = await fetch(`${url}${path}/stream`, { signal: leaving.signal });
      await new Reading(joined).until(({ event }) => event === "metadata");
      leaving.abort();
      open("a");
      await created.text();
      expect(await statusOf(`${url}${path}`)).toBe("success");
    });
  });
});
