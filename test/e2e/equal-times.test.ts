import { describe, expect, test } from "vitest";
import { systemClock } from "../../src/platform/clock.ts";
import { lines } from "./support/clients.ts";
import { serve } from "./support/server.ts";

/** A clock whose wall time never changes: all records are created in the same millisecond. */
const stillClock = () => {
  const at = systemClock.now();
  return { now: () => at, mono: () => systemClock.mono() };
};

const COUNT = 12;

/** Creates records in sequence, and returns their ids in this order. */
async function inTurn(make: (index: number) => Promise<string>): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let index = 0; index < COUNT; index++) ids.push(await make(index));
  return ids;
}

describe.each(lines)(
  "records made in the same millisecond are listed by the order in which they were made, over %s",
  (_, connect) => {
    const start = async () => connect((await serve({ clock: stillClock() })).url);
    const orders = [
      { sortBy: "created_at", sortOrder: "asc" },
      { sortBy: "created_at", sortOrder: "desc" },
    ] as const;
    const inOrder = (ids: readonly string[], { sortOrder }: (typeof orders)[number]) =>
      sortOrder === "asc" ? ids : ids.toReversed();

    test("threads", async () => {
      const client = await start();
      const made = await inTurn(async () => (await client.threads.create()).thread_id);
      for (const order of orders) {
        const found = await client.threads.search({ ...order, limit: 100 });
        expect(found.map((thread) => thread.thread_id)).toEqual(inOrder(made, order));
      }
    });

    test("assistants", async () => {
      const client = await start();
      const made = await inTurn(
        async (index) =>
          (await client.assistants.create({ graphId: "agent", metadata: { index }, name: "same" }))
            .assistant_id,
      );
      for (const order of orders) {
        const found = await client.assistants.search({ ...order, limit: 100 });
        const own = found.map((assistant) => assistant.assistant_id).filter((id) => made.includes(id));
        expect(own).toEqual(inOrder(made, order));
      }
    });

    test("crons, also in pages", async () => {
      const client = await start();
      const made = await inTurn(
        async () => (await client.crons.create("agent", { schedule: "0 9 1 1 *" })).cron_id,
      );
      for (const order of orders) {
        const found = [
          ...(await client.crons.search({ ...order, limit: 5 })),
          ...(await client.crons.search({ ...order, limit: 100, offset: 5 })),
        ];
        expect(found.map((cron) => cron.cron_id)).toEqual(inOrder(made, order));
      }
    });

    test("threads of one batch of runs", async () => {
      const client = await start();
      const runs = await client.runs.createBatch(
        Array.from({ length: COUNT }, () => ({
          assistantId: "agent",
          afterSeconds: 3_600,
          onCompletion: "continue",
        })),
      );
      const made = runs.map((run) => run.thread_id);
      const found = await client.threads.search({ sortBy: "created_at", sortOrder: "asc", limit: 100 });
      expect(found.map((thread) => thread.thread_id)).toEqual(made);
    });

    test("runs of a thread, in reverse", async () => {
      const client = await start();
      const { thread_id } = await client.threads.create();
      const made = await inTurn(
        async () =>
          (
            await client.runs.create(thread_id, "agent", {
              multitaskStrategy: "enqueue",
              afterSeconds: 3_600,
            })
          ).run_id,
      );
      const found = await client.runs.list(thread_id, { limit: 100 });
      expect(found.map((run) => run.run_id)).toEqual(made.toReversed());
    });
  },
);
