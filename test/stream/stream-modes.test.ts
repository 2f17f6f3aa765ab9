import { describe, expect, test } from "vitest";
import type { CheckpointHead } from "../../src/model/checkpoint.ts";
import { eventModes, type Fact } from "../../src/model/run-event.ts";
import type { Interrupt } from "../../src/model/interrupt.ts";
import type { JsonObject } from "../../src/model/json.ts";
import { type RunRecord, type StreamMode, streamModes } from "../../src/model/run.ts";
import { createRunLogRegistry } from "../../src/stream/run-log-registry.ts";
import { Collector } from "./reading.ts";
import { HeldScheduler, KEY, Lines, RUN, runRecord, slowJournal, Writer } from "./support.ts";

test("every stream mode has a slot in some fact: it shows something", () => {
  const slots = new Set<string>(Object.values(eventModes).flat());
  expect(streamModes.filter((mode) => !slots.has(mode))).toEqual([]);
});

/**
 * The slots of every kind of fact. The ids of stored events are counted by them, so add a line for a new kind, and never
 * change a line. The compiler compares the lines with `eventModes` too.
 */
const SLOTS: { readonly [T in Fact["t"]]: (typeof eventModes)[T] } = {
  start: ["metadata", "events"],
  checkpoint: ["values", "checkpoints", "debug", "messages", "events", "events"],
  task: ["tasks", "debug", "events"],
  result: ["updates", "tasks", "debug", "events", "events", "events"],
  interrupt: ["updates", "values", "events", "events", "events"],
  custom: ["custom"],
  event: ["events"],
  tool: ["tools"],
  log: ["logs"],
  message: ["messages", "events"],
  token: ["messages-tuple", "messages", "events"],
  piece: ["messages-tuple", "messages", "events"],
  complete: ["messages-tuple", "messages", "events"],
  error: ["error"],
};

test("the slots of a kind of fact never change", () => {
  expect(eventModes).toEqual(SLOTS);
});

/** Exact payloads, mode by mode: what clients of the platform read. */

const base = runRecord();
const run: RunRecord = {
  ...base,
  kwargs: {
    ...base.kwargs,
    input: { messages: [] },
    stream_mode: ["events"],
    config: { tags: ["t1"], configurable: { user_id: "u" }, metadata: { created_by: "user" } },
  },
};
const { thread_id, graph_id, assistant_id } = run;
const ids = { run_id: RUN, thread_id, graph_id, assistant_id };

const BEFORE = "1f0c0000-0000-6000-bfff-000000000001";
const INPUT = "1f0c0000-0000-6000-8000-000000000002";
const LAST = "1f0c0000-0000-6000-8001-000000000003";
const START = "00000000-0000-5000-8000-000000000000";
const TASK = "00000000-0000-5000-8000-000000000001";
const MESSAGE = "00000000-0000-5000-8000-000000000002";
const AT = Date.UTC(2026, 10, 20, 12, 0, 55, 475);
const at = (seconds: number) => `2026-11-20T12:00:${55 + seconds}.475+00:00`;

const pull = { path: ["__pregel_pull", "ask"], triggers: ["branch:to:ask"] } as const;

const head = (id: string, over: Partial<CheckpointHead>): CheckpointHead => ({
  id,
  parent: null,
  ns: "",
  step: 0,
  source: "loop",
  created_at: AT,
  run_id: RUN,
  metadata: { created_by: "user", graph_id },
  writes: null,
  next: [],
  engine: null,
  graph: "",
  ...over,
});

const startTask = { id: START, name: "__start__", path: ["__pregel_pull", "__start__"], triggers: [] };
const heads = {
  [BEFORE]: head(BEFORE, { step: -1, source: "input", next: [startTask] }),
  [INPUT]: head(INPUT, { parent: BEFORE, next: [{ id: TASK, name: "ask", ...pull }] }),
  [LAST]: head(LAST, { parent: INPUT, step: 1 }),
};

const human = { type: "human", content: "hi", id: "h1" };
const old = { type: "ai", content: "from before", id: "a0" };
const answer = { type: "ai", content: "Hello", id: MESSAGE, tool_calls: [] };
const before = { messages: [old] };
const given = { messages: [old, human] };
const last = { messages: [old, human, answer] };

const meta = {
  langgraph_step: 1,
  langgraph_node: "ask",
  langgraph_triggers: ["branch:to:ask"],
  langgraph_path: ["__pregel_pull", "ask"],
  langgraph_checkpoint_ns: `ask:${TASK}`,
  checkpoint_ns: `ask:${TASK}`,
};
const own = { tags: [], ...ids, ...meta };
const tool = { name: "f", args: '{"a":', id: "c1", index: 0, type: "tool_call_chunk" };
const usage = { input_tokens: 1, output_tokens: 2, total_tokens: 3 };

const checkpoint = (id: string, step: number, input = false): Fact => ({
  t: "checkpoint",
  id,
  ns: "",
  step,
  input,
});
const result = { t: "result", id: TASK, name: "ask", ns: "", checkpoint: INPUT, at: AT + 2000 } as const;
const begin: Fact = { t: "message", id: MESSAGE, name: null, ns: "", meta };

type Emitted = readonly [fact: Fact, values?: JsonObject];

/** A whole run: the ids of its facts' first events are 0, 2, 8, 14, 17, 19, 22, 25, 28, 31, 37, 43, 44 and 45. */
const whole: readonly Emitted[] = [
  [{ t: "start", attempt: 1 }],
  [checkpoint(BEFORE, -1, true), before],
  [checkpoint(INPUT, 0), given],
  [
    {
      t: "task",
      id: TASK,
      name: "ask",
      ns: "",
      checkpoint: INPUT,
      triggers: ["branch:to:ask"],
      at: AT + 1000,
    },
  ],
  [begin],
  [{ t: "token", m: 17, text: "Hel" }],
  [{ t: "token", m: 17, text: "lo" }],
  [{ t: "piece", m: 17, chunk: { tool_call_chunks: [tool], usage_metadata: usage } }],
  [{ t: "complete", message: answer, streamed: true, ns: "", meta }],
  [{ ...result, update: { messages: [answer] }, interrupts: [] }],
  [checkpoint(LAST, 1), last],
  [{ t: "custom", ns: "", json: '{"any":"thing"}' }],
  [
    {
      t: "log",
      ns: "",
      task: TASK,
      node: "ask",
      level: "info",
      at: AT + 3000,
      message: "asked",
      fields: { words: 2 },
    },
  ],
  [{ t: "tool", ns: "", json: '{"event":"on_tool_start","toolCallId":"c1","name":"f","input":"{}"}' }],
];

async function shown(facts: readonly Emitted[], mode: StreamMode, after = -1, subgraphs = false) {
  const journal = slowJournal();
  const scheduler = new HeldScheduler();
  const runLogs = createRunLogRegistry({ journal, scheduler, logger: new Lines() });
  await new Writer(journal).start(run);
  const sink = runLogs.open(KEY, runRecord(), 1, 0);
  for (const [fact, values] of facts) {
    const known = fact.t === "checkpoint" ? (heads as Record<string, CheckpointHead>)[fact.id] : undefined;
    sink.emit(fact, values, known);
  }
  await scheduler.settle();
  const reader = new Collector(runLogs.follow(KEY, run, { after }), [mode], subgraphs);
  await reader.read();
  const rest = reader.events.filter(({ event }) => event !== "metadata");
  return rest.map(({ id, event, data }) => [id, event, data] as const);
}

const place = (id: string) => ({
  thread_id,
  checkpoint_ns: "",
  checkpoint_id: id,
  checkpoint_map: null,
});
const config = (id: string) => ({
  tags: ["t1"],
  metadata: { created_by: "user" },
  configurable: { user_id: "u", thread_id, checkpoint_ns: "", checkpoint_id: id },
});

const snapshot = (
  id: string,
  parent: string | null,
  rest: { values: JsonObject; source: string; step: number; tasks: readonly JsonObject[] },
) => ({
  config: config(id),
  parent_config: parent === null ? null : config(parent),
  values: rest.values,
  metadata: {
    created_by: "user",
    graph_id,
    source: rest.source,
    step: rest.step,
    parents: {},
    run_id: RUN,
    thread_id,
  },
  next: rest.tasks.map(({ name }) => name),
  tasks: rest.tasks.map((task) => ({ ...task, interrupts: [], state: null })),
  checkpoint: place(id),
  parent_checkpoint: parent === null ? null : place(parent),
});

const { triggers: _, ...shownStart } = startTask;
const snapshots = [
  snapshot(BEFORE, null, { values: before, source: "input", step: -1, tasks: [shownStart] }),
  snapshot(INPUT, BEFORE, {
    values: given,
    source: "loop",
    step: 0,
    tasks: [{ id: TASK, name: "ask", path: ["__pregel_pull", "ask"] }],
  }),
  snapshot(LAST, INPUT, { values: last, source: "loop", step: 1, tasks: [] }),
] as const;

const taskStart = {
  id: TASK,
  name: "ask",
  input: given,
  triggers: ["branch:to:ask"],
  interrupts: [],
  metadata: own,
};
const taskResult = { id: TASK, name: "ask", result: { messages: [answer] }, interrupts: [], error: null };

const partial = (content: string, over: JsonObject = {}) => ({
  content,
  tool_calls: [],
  additional_kwargs: {},
  invalid_tool_calls: [],
  tool_call_chunks: [],
  response_metadata: {},
  id: MESSAGE,
  type: "ai",
  example: false,
  name: null,
  ...over,
});

const chain = {
  name: "LangGraph",
  run_id: RUN,
  tags: ["t1"],
  metadata: { created_by: "user", ...ids },
  parent_ids: [],
};
const node = { name: "ask", run_id: TASK, tags: ["graph:step:1"], metadata: own, parent_ids: [RUN] };
const model = { name: "ChatModel", run_id: MESSAGE, tags: [], metadata: own, parent_ids: [RUN, TASK] };

const table: {
  readonly [M in StreamMode]: readonly (readonly [id: number, event: string, data: unknown])[];
} = {
  values: [
    [8, "values", given],
    [37, "values", last],
  ],
  updates: [[31, "updates", { ask: { messages: [answer] } }]],
  custom: [[43, "custom", { any: "thing" }]],
  logs: [
    [
      44,
      "logs",
      { timestamp: at(3), task: TASK, node: "ask", level: "info", message: "asked", fields: { words: 2 } },
    ],
  ],
  tools: [[45, "tools", { event: "on_tool_start", toolCallId: "c1", name: "f", input: "{}" }]],
  checkpoints: [
    [3, "checkpoints", snapshots[0]],
    [9, "checkpoints", snapshots[1]],
    [38, "checkpoints", snapshots[2]],
  ],
  tasks: [
    [14, "tasks", taskStart],
    [32, "tasks", taskResult],
  ],
  debug: [
    [4, "debug", { step: -1, type: "checkpoint", timestamp: at(0), payload: snapshots[0] }],
    [10, "debug", { step: 0, type: "checkpoint", timestamp: at(0), payload: snapshots[1] }],
    [15, "debug", { step: 1, type: "task", timestamp: at(1), payload: taskStart }],
    [33, "debug", { step: 1, type: "task_result", timestamp: at(2), payload: taskResult }],
    [39, "debug", { step: 1, type: "checkpoint", timestamp: at(0), payload: snapshots[2] }],
  ],
  "messages-tuple": [
    [19, "messages", [partial("Hel"), own]],
    [22, "messages", [partial("lo"), own]],
    [25, "messages", [partial("", { tool_call_chunks: [tool], usage_metadata: usage }), own]],
  ],
  messages: [
    [11, "messages/complete", [human]],
    [17, "messages/metadata", { [MESSAGE]: { metadata: own } }],
    [20, "messages/partial", [partial("Hel")]],
    [23, "messages/partial", [partial("Hello")]],
    [26, "messages/partial", [partial("Hello", { tool_call_chunks: [tool], usage_metadata: usage })]],
    [29, "messages/complete", [answer]],
  ],
  events: [
    [1, "events", { event: "on_chain_start", ...chain, data: { input: { messages: [] } } }],
    [16, "events", { event: "on_chain_start", ...node, data: { input: given } }],
    [18, "events", { event: "on_chat_model_start", ...model, data: {} }],
    [21, "events", { event: "on_chat_model_stream", ...model, data: { chunk: partial("Hel") } }],
    [24, "events", { event: "on_chat_model_stream", ...model, data: { chunk: partial("lo") } }],
    [
      27,
      "events",
      {
        event: "on_chat_model_stream",
        ...model,
        data: { chunk: partial("", { tool_call_chunks: [tool], usage_metadata: usage }) },
      },
    ],
    [30, "events", { event: "on_chat_model_end", ...model, data: { output: answer } }],
    [
      35,
      "events",
      { event: "on_chain_end", ...node, data: { output: { messages: [answer] }, input: given } },
    ],
    [42, "events", { event: "on_chain_end", ...chain, data: { output: last } }],
  ],
};

describe.each(streamModes.map((mode) => [mode] as const))("%s", (mode) => {
  test("a whole run", async () => {
    expect(await shown(whole, mode)).toEqual(table[mode]);
  });

  test("from anywhere in the run, the rest of it is the same", async () => {
    for (let after = 0; after < 46; after++) {
      const rest = table[mode].filter(([id]) => id > after);
      expect(await shown(whole, mode, after), `after ${after}`).toEqual(rest);
    }
  });
});

const question: Interrupt = {
  value: "ok?",
  id: "0123456789abcdef0123456789abcdef",
  resumable: true,
  ns: [`ask:${TASK}`],
  when: "during",
};
const asks = { state: { messages: [], __interrupt__: [question] }, update: { __interrupt__: [question] } };
const pause: readonly Emitted[] = [
  [{ t: "interrupt", ns: "", checkpoint: INPUT, interrupts: [question] }, { messages: [] }],
  [{ ...result, interrupts: [question] }],
];
const waiting = { id: TASK, name: "ask", result: {}, interrupts: [question], error: null };

describe("a run that pauses", () => {
  const paused = async (mode: StreamMode) =>
    (await shown(pause, mode)).map(([, event, data]) => [event, data] as const);

  test.each<[StreamMode, readonly (readonly [string, unknown])[]]>([
    ["values", [["values", asks.state]]],
    ["updates", [["updates", asks.update]]],
    ["tasks", [["tasks", waiting]]],
    ["debug", [["debug", { step: null, type: "task_result", timestamp: at(2), payload: waiting }]]],
    ["checkpoints", []],
    ["messages", []],
    ["events", [["events", { event: "on_chain_end", ...chain, data: { output: asks.state } }]]],
  ])("%s", async (mode, expected) => {
    expect(await paused(mode)).toEqual(expected);
  });
});

describe("a task that fails", () => {
  const failed: readonly Emitted[] = [
    [checkpoint(INPUT, 0), {}],
    [{ ...result, error: { error: "TypeError", message: "kaboom" }, interrupts: [] }],
    [{ t: "error", error: { error: "TypeError", message: "kaboom" } }],
  ];
  const payload = {
    id: TASK,
    name: "ask",
    result: {},
    interrupts: [],
    error: '{"name":"TypeError","message":"kaboom"}',
  };
  const error = [12, "error", { error: "TypeError", message: "kaboom" }] as const;

  test("has an error, and an empty result; the run's own comes last, in every mode", async () => {
    for (const mode of streamModes) expect((await shown(failed, mode)).at(-1), mode).toEqual(error);
    expect(await shown(failed, "tasks")).toEqual([[7, "tasks", payload], error]);
    const [, debugged] = await shown(failed, "debug");
    expect(debugged?.[2]).toEqual({ step: 1, type: "task_result", timestamp: at(2), payload });
    expect((await shown(failed, "updates")).map(([, event]) => event)).toEqual(["error"]);
    expect((await shown(failed, "events")).map(([, event]) => event)).toEqual(["error"]);
  });
});

describe("what was sent to a task is its input", () => {
  const sent = { id: TASK, name: "leaf", ns: "", checkpoint: INPUT, triggers: ["__pregel_push"] } as const;
  const facts: readonly Emitted[] = [
    [checkpoint(INPUT, 0), { a: 1 }],
    [{ t: "task", ...sent, at: AT, input: { value: { n: "x" } } }],
  ];

  test.each(["tasks", "debug", "events"] as const)("%s", async (mode) => {
    const [, , data] = (await shown(facts, mode)).at(-1) ?? [];
    expect(JSON.stringify(data)).toContain('"input":{"n":"x"}');
  });
});

describe("subgraphs", () => {
  const ns = `sub:${TASK}`;
  const inner = { id: START, name: "leaf", ns, checkpoint: LAST } as const;
  const leaf = { ...meta, langgraph_node: "leaf", langgraph_checkpoint_ns: `${ns}|leaf:${START}` };
  const facts: readonly Emitted[] = [
    [{ t: "checkpoint", id: LAST, ns, step: 0, input: false }, { a: 1 }],
    [{ t: "task", ...inner, triggers: [], at: AT }],
    [{ t: "message", id: MESSAGE, name: null, ns, meta: leaf }],
    [{ t: "token", m: 9, text: "x" }],
    [{ t: "complete", message: answer, streamed: true, ns, meta: leaf }],
    [{ t: "result", ...inner, at: AT, update: { a: 2 }, interrupts: [] }],
    [{ t: "interrupt", ns, checkpoint: LAST, interrupts: [] }, { a: 1 }],
    [{ t: "tool", ns, json: "{}" }],
  ];

  test.each<[StreamMode, hidden: readonly string[], asked: readonly string[]]>([
    ["values", [], [`values|${ns}`, `values|${ns}`]],
    ["updates", [], [`updates|${ns}`, `updates|${ns}`]],
    ["checkpoints", [], [`checkpoints|${ns}`]],
    ["tasks", [], [`tasks|${ns}`, `tasks|${ns}`]],
    ["debug", [], [`debug|${ns}`, `debug|${ns}`, `debug|${ns}`]],
    ["tools", [], [`tools|${ns}`]],
    ["messages-tuple", ["messages"], [`messages|${ns}|leaf:${START}`]],
    [
      "messages",
      ["messages/metadata", "messages/partial"],
      ["messages/metadata", "messages/partial", "messages/complete"],
    ],
  ])("%s", async (mode, hidden, asked) => {
    const names = async (subgraphs: boolean) =>
      (await shown(facts, mode, -1, subgraphs)).map(([, event]) => event);
    expect(await names(false)).toEqual(hidden);
    expect(await names(true)).toEqual(asked);
  });

  test("events tell of them by their parents, and of no other chain's output", async () => {
    const got = (await shown(facts, "events")).map(([, event, data]) => [
      event,
      (data as { event: string }).event,
      (data as { parent_ids: string[] }).parent_ids,
    ]);
    expect(got).toEqual([
      ["events", "on_chain_start", [RUN, TASK]],
      ["events", "on_chat_model_start", [RUN, TASK, START]],
      ["events", "on_chat_model_stream", [RUN, TASK, START]],
      ["events", "on_chat_model_end", [RUN, TASK, START]],
      ["events", "on_chain_end", [RUN, TASK]],
    ]);
  });
});

describe("a run whose graph tells its events itself", () => {
  const told = [{ event: "on_chain_start", name: "mine" }, { event: "on_chain_end" }];
  const facts: readonly Emitted[] = [
    [{ t: "start", attempt: 1, events: true }],
    ...whole.slice(1),
    ...told.map((event): Emitted => [{ t: "event", json: JSON.stringify(event) }]),
  ];

  test("has no others, from wherever they are read", async () => {
    expect(await shown(facts, "events")).toEqual([
      [46, "events", told[0]],
      [47, "events", told[1]],
    ]);
    expect(await shown(facts, "events", 46)).toEqual([[47, "events", told[1]]]);
  });

  test.each(streamModes.filter((mode) => mode !== "events"))("shows them not in %s", async (mode) => {
    expect(await shown(facts, mode)).toEqual(table[mode]);
  });
});

describe("a checkpoint that is not stored", () => {
  test("is shown with what its fact and its state say", async () => {
    const id = "1f0c0000-0000-6000-8001-00000000000f";
    const [one] = await shown([[checkpoint(id, 4), { a: 1 }]], "checkpoints");
    expect(one?.[2]).toMatchObject({ values: { a: 1 }, next: [], tasks: [], parent_checkpoint: null });
    expect(one?.[2]).toMatchObject({ metadata: { source: "loop", step: 4 }, checkpoint: place(id) });
    expect(await shown([[checkpoint(id, 4)]], "checkpoints")).toEqual([]);
  });
});
