import { setImmediate as turn } from "node:timers/promises";
import { Client } from "@langchain/langgraph-sdk";
import { expect, test } from "vitest";
import { type Ctx, graph, value } from "../../src/index.ts";
import { silentLogger } from "../../src/platform/log.ts";
import { noFailpoints } from "../../src/ports/failpoints.ts";
import { openStorage } from "../../src/storage/open-storage.ts";
import { createRunLogRegistry, type RunLogRegistry } from "../../src/stream/run-log-registry.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { systemScheduler } from "../../src/platform/scheduler.ts";
import { serve } from "../e2e/support/server.ts";

const EVENTS = 400;

/** Emits many events, a few in each stored chunk. */
const telling = graph({
  state: { done: value(false) },
  nodes: {
    tell: async (_: unknown, ctx: Ctx) => {
      for (let n = 0; n < EVENTS; n++) {
        ctx.emit({ n });
        // oxlint-disable-next-line no-await-in-loop -- the node yields between its events
        if (n % 5 === 0) await turn();
      }
      return { done: true };
    },
  },
  edges: { start: "tell" },
});

async function ended() {
  const parts = {
    scheduler: systemScheduler,
    clock: systemClock,
    failpoints: noFailpoints,
    logger: silentLogger,
  };
  const storage = await openStorage({ kind: "memory" }, parts);
  const { url } = await serve({ storage, graphs: { telling: telling as never } });
  const { journal } = storage;
  const client = new Client({ apiUrl: url, callerOptions: { maxRetries: 0 } });
  const { thread_id } = await client.threads.create();
  const { run_id } = await client.runs.create(thread_id, "telling", { input: {} });
  await client.runs.join(thread_id, run_id);
  const key = { tenant: "_", thread: thread_id };
  const run = await journal.run(key, run_id);
  if (run === undefined) throw new TypeError("The run is gone");
  const runLogs = createRunLogRegistry({ journal, scheduler: systemScheduler, logger: silentLogger });
  const follow = () => runLogs.follow(key, run, { after: -1 });
  const expire = () =>
    journal.expireEvents(Number.MAX_SAFE_INTEGER, null, 1_000, (...asked) => runLogs.isRead(...asked));
  return { runLogs, key, run, follow, expire };
}

type Reading = ReturnType<RunLogRegistry["follow"]>;

/** The reader's position after this many segments, or at the end. */
async function read(reader: Reading, segments: number): Promise<number> {
  for (let n = 0; n < segments; n++) {
    // oxlint-disable-next-line no-await-in-loop -- a reader has one position, so its reads must not overlap
    if (typeof (await reader.next()) === "string") break;
  }
  return reader.cursor;
}

test("events of a run that is read do not expire before the reader has left", async () => {
  const { run, follow, expire } = await ended();
  const reader = follow();
  expect(await read(reader, 1)).toBeLessThan(run.next_event - 1);
  await expire();
  expect(await read(reader, Number.POSITIVE_INFINITY)).toBe(run.next_event - 1);
  reader.close();
  // A second call changes nothing.
  reader.close();
  await expire();
  const late = follow();
  expect(await late.next()).toBe("end");
  expect(late.cursor).toBe(-1);
  late.close();
});

test("of two readers the last one keeps them; so does one that reads all runs of the thread", async () => {
  const { runLogs, key, run, follow, expire } = await ended();
  const [one, two] = [follow(), follow()];
  one.close();
  await expire();
  const thread = runLogs.followThread(key, 0);
  two.close();
  await expire();
  const again = follow();
  expect(await read(again, Number.POSITIVE_INFINITY)).toBe(run.next_event - 1);
  again.close();
  thread.close();
  expect(runLogs.isRead(key, run.run_id)).toBe(false);
});
