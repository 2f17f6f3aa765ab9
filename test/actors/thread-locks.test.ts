import { expect, test } from "vitest";
import { graph, list } from "../../src/index.ts";
import { draftOf } from "./draft.ts";
import { Server } from "./server.ts";

const simple = graph({
  state: { log: list<string>() },
  nodes: { work: async () => ({ log: ["worked"] }) },
  edges: { start: "work" },
});

/** The outcome: `made`, or the reason of the failure. */
async function outcome(asked: Promise<unknown>): Promise<string> {
  try {
    await asked;
    return "made";
  } catch (cause) {
    return (cause as { code: string }).code;
  }
}

const asks = {
  run: (server: Server, key: { tenant: string; thread: string }) =>
    server.system.admit(key, { ...draftOf(server.newId()), create: {} }),
  raise: (server: Server, key: { tenant: string; thread: string }) =>
    server.system.create(key, { metadata: {}, if_exists: "raise" }),
  "do nothing": (server: Server, key: { tenant: string; thread: string }) =>
    server.system.create(key, { metadata: {}, if_exists: "do_nothing" }),
} as const;

test.each<{ order: (keyof typeof asks)[]; outcomes: string[] }>([
  { order: ["run", "raise"], outcomes: ["made", "thread.exists"] },
  { order: ["run", "do nothing"], outcomes: ["made", "made"] },
  { order: ["raise", "run"], outcomes: ["made", "made"] },
  { order: ["do nothing", "run"], outcomes: ["made", "made"] },
  { order: ["raise", "raise", "do nothing"], outcomes: ["made", "thread.exists", "made"] },
  { order: ["raise", "run", "raise", "run"], outcomes: ["made", "made", "thread.exists", "run.conflict"] },
])("asked for at the same time, $order: one thread", async ({ order, outcomes }) => {
  for (let turns = 0; turns < 8; turns++) {
    const server = await Server.start(simple);
    const key = { tenant: "_", thread: server.newId() };
    const came: Promise<string>[] = [];
    for (const what of order) {
      came.push(outcome(asks[what](server, key)));
      for (let turn = 0; turn < turns; turn++) await Promise.resolve();
    }
    expect(await server.do(Promise.all(came)), `${turns} turns apart`).toEqual(outcomes);
    if (!order.includes("run")) continue;
    await server.scheduler.settle();
    expect(await server.values(key)).toEqual({ log: ["worked"] });
    const runs = await server.storage.journal.runs(key, { limit: 10, offset: 0 });
    expect(runs).toMatchObject([{ status: "success" }]);
  }
});
