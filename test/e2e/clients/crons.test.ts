import type { Cron } from "@langchain/langgraph-sdk";
import { expect } from "vitest";
import { aTime, aUuid, NOBODY } from "../support/wire.ts";
import { proves } from "./table.ts";

/** The SDK's types declare these responses as runs; they are crons. */
const cron = (answer: unknown) => answer as Cron;

/** Once a year: none of them fires during the test. */
const YEARLY = "0 0 1 1 *";

proves("crons", {
  createForThread: [
    "makes one whose runs go to that thread",
    async ({ client }) => {
      const { thread_id } = await client.threads.create();
      const { assistant_id } = await client.assistants.get("agent");
      const made = cron(
        await client.crons.createForThread(thread_id, "agent", { schedule: YEARLY, input: { messages: [] } }),
      );
      expect(made).toMatchObject({
        cron_id: aUuid,
        thread_id,
        assistant_id,
        schedule: YEARLY,
        next_run_date: aTime,
        payload: { input: { messages: [] } },
      });
      expect(await client.crons.search({ threadId: thread_id })).toEqual([made]);
      const lost = client.crons.createForThread(NOBODY, "agent", { schedule: YEARLY });
      await expect(lost).rejects.toMatchObject({ status: 404 });
    },
  ],
  create: [
    "makes one whose runs have a thread each",
    async ({ client }) => {
      const made = cron(await client.crons.create("agent", { schedule: YEARLY, metadata: { a: 1 } }));
      expect(made).toMatchObject({
        cron_id: aUuid,
        thread_id: null,
        schedule: YEARLY,
        metadata: { a: 1 },
        enabled: true,
        created_at: aTime,
        updated_at: aTime,
      });
      expect(made.next_run_date).toMatch(/^\d{4}-01-01T00:00:00/);
      const wrong = client.crons.create("agent", { schedule: "now and then" });
      await expect(wrong).rejects.toMatchObject({ status: 422 });
      await expect(client.crons.create("nope", { schedule: YEARLY })).rejects.toMatchObject({ status: 404 });
    },
  ],
  update: [
    "changes what is named, merges metadata, and keeps the rest",
    async ({ client }) => {
      const made = cron(
        await client.crons.create("agent", { schedule: YEARLY, input: { messages: [] }, metadata: { a: 1 } }),
      );
      const changed = cron(
        await client.crons.update(made.cron_id, {
          schedule: "0 0 1 2 *",
          enabled: false,
          metadata: { b: 2 },
        }),
      );
      expect(changed).toMatchObject({
        cron_id: made.cron_id,
        schedule: "0 0 1 2 *",
        enabled: false,
        metadata: { a: 1, b: 2 },
        payload: { input: { messages: [] } },
      });
      expect(await client.crons.search()).toEqual([changed]);
      const again = cron(await client.crons.update(made.cron_id, { enabled: true }));
      expect(again.next_run_date).toMatch(/^\d{4}-02-01T00:00:00/);
      await expect(client.crons.update(NOBODY, {})).rejects.toMatchObject({ status: 404 });
    },
  ],
  delete: [
    "takes it away",
    async ({ client }) => {
      const { cron_id: id } = cron(await client.crons.create("agent", { schedule: YEARLY }));
      await client.crons.delete(id);
      expect(await client.crons.search()).toEqual([]);
      await expect(client.crons.delete(id)).rejects.toMatchObject({ status: 404 });
    },
  ],
  search: [
    "finds by assistant and thread, in pages, in the order and with the fields asked for",
    async ({ client }) => {
      const { thread_id } = await client.threads.create();
      const a = cron(await client.crons.create("agent", { schedule: YEARLY }));
      const b = cron(await client.crons.create("approval", { schedule: YEARLY, enabled: false }));
      const c = cron(await client.crons.createForThread(thread_id, "agent", { schedule: YEARLY }));
      const found = async (query?: Parameters<typeof client.crons.search>[0]) =>
        (await client.crons.search(query)).map(({ cron_id }) => cron_id);
      expect(await found()).toEqual([c.cron_id, b.cron_id, a.cron_id]);
      expect(await found({ sortOrder: "asc", sortBy: "created_at", limit: 1, offset: 1 })).toEqual([
        b.cron_id,
      ]);
      expect(await found({ assistantId: a.assistant_id })).toEqual([c.cron_id, a.cron_id]);
      expect(await found({ threadId: thread_id })).toEqual([c.cron_id]);
      expect(await found({ enabled: false })).toEqual([b.cron_id]);
      expect(await client.crons.search({ threadId: thread_id, select: ["schedule"] })).toEqual([
        { schedule: YEARLY },
      ]);
    },
  ],
  count: [
    "counts those that a search finds",
    async ({ client }) => {
      const { assistant_id } = cron(await client.crons.create("agent", { schedule: YEARLY }));
      await client.crons.create("approval", { schedule: YEARLY });
      expect(await client.crons.count()).toBe(2);
      expect(await client.crons.count({ assistantId: assistant_id })).toBe(1);
      expect(await client.crons.count({ threadId: NOBODY })).toBe(0);
    },
  ],
});
