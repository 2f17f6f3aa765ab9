import { expect, test } from "vitest";
import { graph, list } from "../../src/index.ts";
import { serve } from "./support/server.ts";
import { get, newThread, postJson } from "./support/wire.ts";

const ENTRIES = 300;

interface Run {
  readonly run_id: string;
  readonly thread_id: string;
}

/** A graph that records each execution of its node, by the name in the input. */
function counted() {
  const executions = new Map<string, number>();
  const noted = graph({
    state: { name: list<string>() },
    nodes: {
      note: async ({ name: [name = ""] }) => {
        executions.set(name, (executions.get(name) ?? 0) + 1);
        return {};
      },
    },
    edges: { start: "note" },
  });
  return { executions, noted };
}

// More runs than idle threads that stay in memory.
test.each([
  ["whose threads are their own", false, "delete"],
  ["whose threads are kept", false, "keep"],
  ["that name a thread", true, "keep"],
] as const)(
  `a batch of ${ENTRIES} runs %s: each runs once, and is loaded once`,
  async (_, named, on_completion) => {
    const { executions, noted } = counted();
    const { url, system, complaints } = await serve({ graphs: { noted } });
    const thread_id = await newThread(url);
    const { woken } = system.figures;
    const entries = Array.from({ length: ENTRIES }, (_, i) => ({
      assistant_id: "noted",
      input: { name: [`run ${i}`] },
      on_completion,
      ...(named && { thread_id }),
    }));
    const runs = await postJson<Run[]>(`${url}/runs/batch`, entries);
    expect(runs).toHaveLength(ENTRIES);
    expect(new Set(runs.map(({ thread_id: own }) => own)).size).toBe(ENTRIES);
    await expect.poll(() => executions.size, { timeout: 20_000 }).toBe(ENTRIES);
    for (const run of runs.slice(0, 20)) {
      expect((await get(`${url}/threads/${run.thread_id}/runs/${run.run_id}/join`)).status).toBeLessThan(500);
    }
    await expect.poll(() => system.figures.running).toBe(0);
    expect([...executions.values()].filter((times) => times !== 1)).toEqual([]);
    expect(system.figures.woken - woken).toBe(ENTRIES);
    expect(complaints).toEqual([]);
  },
);
