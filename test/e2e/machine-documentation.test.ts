import { describe, expect, test } from "vitest";
import { Client } from "@langchain/langgraph-sdk";
import * as documented from "../fixtures/machines/documented.ts";
import { directory, serve } from "./support/server.ts";
import { ShiftedTime } from "./support/shifted-time.ts";

const machines = { ...documented };

type Event = string | { readonly type: string };
interface Example {
  readonly graph: keyof typeof machines;
  readonly input?: object;
  readonly first: unknown;
  /** Each event, and the state that it leads to. */
  readonly steps: readonly (readonly [Event, unknown])[];
  /** A part of the values at the end. */
  readonly values?: object;
}

const examples: readonly Example[] = [
  {
    graph: "toggle",
    first: "Inactive",
    steps: [
      ["toggle", "Active"],
      ["toggle", "Inactive"],
    ],
  },
  {
    graph: "counting",
    first: "active",
    steps: [
      ["toggle", "inactive"],
      ["toggle", "active"],
    ],
    values: { count: 2 },
  },
  {
    graph: "feedback",
    input: { userId: "7", defaultRating: 4 },
    first: "form",
    steps: [
      [{ type: "feedback.update", text: "good" } as Event, "form"],
      ["feedback.submit", "thanks"],
    ],
    values: { userId: "7", __output__: { text: "good", rating: 4 } },
  },
  {
    graph: "player",
    first: { track: "paused", volume: "normal" },
    steps: [
      ["PLAY", { track: "playing", volume: "normal" }],
      ["MUTE", { track: "playing", volume: "muted" }],
    ],
  },
  {
    graph: "checkout",
    first: { payment: "card" },
    steps: [
      ["paypal", { payment: "paypal" }],
      ["next", "address"],
      ["back", { payment: "paypal" }],
    ],
  },
  { graph: "pushTheButtonGame", first: "waitingForButtonPush", steps: [["PUSH_BUTTON", "success"]] },
  {
    graph: "user",
    first: "idle",
    steps: [
      ["FETCH", "failure"],
      ["RETRY", "success"],
    ],
    values: { error: { name: "Error", message: "offline" }, user: { name: "user 42" } },
  },
  {
    graph: "reducing",
    first: "counting",
    steps: [
      ["inc", "counting"],
      ["inc", "counting"],
    ],
    values: { count: 2 },
  },
  {
    graph: "spawning",
    first: "ready",
    steps: [["begin", "begun"]],
    values: { __snapshot__: { rest: { children: { child: { snapshot: { value: "started" } } } } } },
  },
  {
    graph: "light",
    first: "green",
    steps: [
      ["next", "yellow"],
      ["next", "red"],
    ],
    values: { __interrupt__: [{ value: { tags: ["stop"], events: ["next"] } }] },
  },
  {
    graph: "kettle",
    first: "lukewarm",
    steps: [
      [{ type: "heat", by: 5 } as Event, "lukewarm"],
      [{ type: "heat", by: 15 } as Event, "boiling"],
    ],
    values: { degrees: 100 },
  },
  {
    graph: "form",
    first: "editing",
    steps: [
      ["send", "submitting"],
      ["whatever", "editing"],
      ["cancel", "cancelled"],
    ],
  },
  {
    graph: "coffee",
    first: { preparing: "grindBeans" },
    steps: [
      ["NEXT", { preparing: "brewCoffee" }],
      ["NEXT", "serving"],
      ["SERVE", "served"],
    ],
  },
  { graph: "raising", first: "b", steps: [] },
];

const refusals: readonly (readonly [keyof typeof machines, string])[] = [
  ["resizing", '#resizing.listening.invoke starts "resize", which is callback or observable logic'],
  ["ticking", '#ticking.counting.invoke starts "interval", which is callback or observable logic'],
];

const connect = (url: string) => new Client({ apiUrl: url, callerOptions: { maxRetries: 0 } });
const stateOf = (values: unknown) => (values as Record<string, unknown>)["__state__"];

describe("machines of the documentation of XState 5", () => {
  test.each(examples)("$graph runs", async ({ graph, input = {}, first, steps, values = {} }) => {
    const client = connect((await serve({ graphs: { [graph]: machines[graph] } }, { demo: false })).url);
    const { thread_id } = await client.threads.create();
    let last = await client.runs.wait(thread_id, graph, { input: { ...input } });
    expect(stateOf(last)).toEqual(first);
    for (const [event, state] of steps) {
      const resume = typeof event === "string" ? { type: event } : event;
      // oxlint-disable-next-line no-await-in-loop -- a thread takes one event after the other
      last = await client.runs.wait(thread_id, graph, { command: { resume } });
      expect(stateOf(last)).toEqual(state);
    }
    expect(last).toMatchObject(values);
  });

  test("an event that a state forbids is refused, and the machine waits as before", async () => {
    const client = connect((await serve({ graphs: { form: documented.form } })).url);
    const { thread_id } = await client.threads.create();
    const send = (type: string) => client.runs.wait(thread_id, "form", { command: { resume: { type } } });
    await client.runs.wait(thread_id, "form", { input: {} });
    expect(stateOf(await send("send"))).toBe("submitting");
    await expect(send("cancel")).rejects.toThrow(
      /is \\?"cancel\\?", which the state forbids; the machine can take \*/,
    );
    expect(stateOf(await send("again"))).toBe("editing");
  });

  test("pushTheButtonGame times out, also when the server was down at that time", async () => {
    const data = await directory();
    const graphs = { game: documented.pushTheButtonGame };
    const before = await serve({ graphs, data });
    const { thread_id } = await connect(before.url).threads.create();
    await connect(before.url).runs.wait(thread_id, "game", { input: {} });
    await before.close();
    const client = connect((await serve({ graphs, data, ...new ShiftedTime(5_000) })).url);
    await expect.poll(async () => stateOf((await client.threads.get(thread_id)).values)).toBe("timedOut");
  });

  test.each(refusals)("%s is refused with its reason", async (graph, why) => {
    await expect(serve({ graphs: { [graph]: machines[graph] } })).rejects.toThrow(why);
  });

  test("a child of logic without a name fails the run, which says why", async () => {
    const { url } = await serve({ graphs: { parent: documented.spawningInline } });
    const client = connect(url);
    const { thread_id } = await client.threads.create();
    await client.runs.wait(thread_id, "parent", { input: {} }).catch(() => undefined);
    expect((await client.runs.list(thread_id))[0]?.status).toBe("error");
    expect(JSON.stringify(await client.threads.get(thread_id))).toMatch(/is spawned of inline logic: only/);
  });

  test("each has its test", () => {
    const tested = [
      "spawningInline",
      ...examples.map(({ graph }) => graph),
      ...refusals.map(([graph]) => graph),
    ];
    expect(tested.toSorted()).toEqual(Object.keys(machines).toSorted());
  });
});
