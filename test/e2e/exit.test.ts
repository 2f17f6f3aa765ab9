import { describe, expect, test } from "vitest";
import { graph, list } from "../../src/index.ts";
import { lines } from "./support/clients.ts";
import { ours } from "./support/suite-variant.ts";
import { directory, serve } from "./support/server.ts";

const steps = graph({
  state: { log: list<string>() },
  nodes: {
    one: async () => ({ log: ["one"] }),
    two: async () => ({ log: ["two"] }),
  },
  edges: { start: "one", one: "two" },
});

describe.each(lines)("durability exit over %s", (_, connect) => {
  test("the stream shows every step, also read again after a restart; the history has one checkpoint", async () => {
    const data = await directory();
    const first = await serve({ graphs: { steps }, data });
    const client = connect(first.url);
    const { thread_id } = await client.threads.create();
    const streamMode = ["values", "updates", "tasks", "checkpoints"] as (
      | "values"
      | "updates"
      | "tasks"
      | "checkpoints"
    )[];
    const live: unknown[] = [];
    for await (const part of client.runs.stream(thread_id, "steps", {
      input: {},
      durability: "exit",
      streamMode,
    })) {
      live.push({ event: part.event, data: part.data });
    }
    expect(live.filter((part) => (part as { event: string }).event === "values")).toEqual([
      ...ours("a step that writes nothing", { event: "values", data: { log: [] } }),
      { event: "values", data: { log: ["one"] } },
      { event: "values", data: { log: ["one", "two"] } },
    ]);
    await first.close(0);

    const second = await serve({ graphs: { steps }, data });
    const again = connect(second.url);
    const [run] = await again.runs.list(thread_id);
    const replayed: unknown[] = [];
    const stream = again.runs.joinStream(thread_id, run?.run_id ?? "", { lastEventId: "-1", streamMode });
    for await (const part of stream) replayed.push({ event: part.event, data: part.data });
    expect(replayed).toEqual(live);
    const history = await fetch(`${second.url}/threads/${thread_id}/state`).then((answer) => answer.json());
    expect(history).toMatchObject({ values: { log: ["one", "two"] }, parent_checkpoint: null, next: [] });
  });
});
