import { describe, expect, test } from "vitest";
import { graph, list } from "../../src/index.ts";
import { serve } from "./support/server.ts";
import { bytesOf, events, get, newThread, post, postJson } from "./support/wire.ts";

const steps = graph({
  state: { log: list<string>() },
  nodes: {
    // Takes long enough for the run's start to be stored separately.
    first: async (_, ctx) => {
      for (let i = 0; i < 3; i++) {
        await new Promise((resolve) => setTimeout(resolve, 5));
        ctx.emit(i);
      }
      return { log: ["first"] };
    },
    ask: async (_, ctx) => ({ log: [String(await ctx.interrupt("go on?"))] }),
    last: async () => ({ log: ["last"] }),
  },
  edges: { start: "first", first: "ask", ask: "last" },
});

const MODES = [
  "values",
  "updates",
  "messages",
  "messages-tuple",
  "debug",
  "tasks",
  "checkpoints",
  "events",
  "custom",
];
const body = { assistant_id: "steps", durability: "exit", stream_mode: MODES };

interface Tuple {
  readonly checkpoint: { readonly checkpoint_id: string };
  readonly parent_checkpoint: { readonly checkpoint_id: string } | null;
}

describe("a run that stores nothing before its end", () => {
  test("is read on from any event as from the start, byte by byte", async () => {
    const { url } = await serve({ graphs: { steps } });
    const thread = await newThread(url);
    const runs = `${url}/threads/${thread}/runs`;
    const started = await post(`${runs}/stream`, { ...body, input: {} });
    const path = started.headers.get("content-location") ?? "";
    const seen = events(await started.text());
    expect(seen.length).toBeGreaterThan(20);
    for (const [at, { id }] of seen.entries()) {
      const rest = await get(`${url}${path}/stream`, { "last-event-id": id });
      expect(bytesOf(events(await rest.text()))).toBe(bytesOf(seen.slice(at + 1)));
    }
  });

  test("leaves a checkpoint whose parent is one that is stored, to the run after it too", async () => {
    const { url } = await serve({ graphs: { steps } });
    const thread = await newThread(url);
    const runs = `${url}/threads/${thread}/runs`;
    await postJson(`${runs}/wait`, { ...body, input: {} });
    const state = (await (await get(`${url}/threads/${thread}/state`)).json()) as Tuple;
    const resumed = await post(`${runs}/stream`, { ...body, durability: "sync", command: { resume: "yes" } });
    const path = resumed.headers.get("content-location") ?? "";
    const seen = events(await resumed.text());
    // Nothing was written between the two: the state from which the run began is the stored one.
    const shown = seen.find(({ event }) => event === "checkpoints")?.data as Tuple;
    expect(shown.checkpoint.checkpoint_id).toBe(state.checkpoint.checkpoint_id);
    expect(shown.parent_checkpoint).toEqual(state.parent_checkpoint);
    const again = await get(`${url}${path}/stream`, { "last-event-id": "-1" });
    expect(events(await again.text())).toEqual(seen);
  });
});
