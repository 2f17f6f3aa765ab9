import { describe, expect, test } from "vitest";
import { graph, list } from "../../src/index.ts";
import type { TemporaryKind, ThreadKey } from "../../src/model/thread.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import { draftOf } from "./draft.ts";
import { Server } from "./server.ts";

const MINUTE = 60_000;

/** A graph whose runs wait until the test releases them. */
function gated() {
  const waiting: (() => void)[] = [];
  const work = graph({
    state: { log: list<string>() },
    nodes: {
      work: async (_, { signal }) => {
        await new Promise<void>((resolve, reject) => {
          waiting.push(resolve);
          signal.addEventListener("abort", () => reject(signal.reason));
        });
        return { log: ["worked"] };
      },
    },
    edges: { start: "work" },
  });
  const open = () => {
    for (const go of waiting.splice(0)) go();
  };
  return { work, open };
}

async function start(server: Server, temporary: TemporaryKind, webhook: string | null = null) {
  const key: ThreadKey = { tenant: "_", thread: server.newId() };
  const draft = { ...draftOf(server.newId(), { webhook }), create: { metadata: {}, temporary } };
  const run = await server.do(server.system.admit(key, draft));
  return { key, run, end: () => server.do(server.system.ended(key, run.run_id)) };
}

const isThere = async ({ storage }: Server, key: ThreadKey) =>
  (await storage.journal.thread(key)) !== undefined;

/** Everything that is still stored of any thread, and all damage. */
async function leftovers(server: Server): Promise<unknown[]> {
  await server.scheduler.settle();
  const found: unknown[] = [...(await server.storage.catalog.threads("_", { limit: 10 }))];
  for await (const key of server.storage.journal.unsettled()) found.push(key);
  for await (const damage of server.storage.journal.verify()) found.push(damage);
  return found;
}

describe("a thread made for one run", () => {
  test.each([true, false])(
    "stays while a request is about to read it, and then if it is read: %s",
    async (isRead) => {
      const { work, open } = gated();
      const server = await Server.start(work);
      const { key, run, end } = await start(server, "background");
      const [release, another] = [server.system.keepTemporary(key), server.system.keepTemporary(key)];
      open();
      await end();
      await server.scheduler.settle();
      another();
      await server.scheduler.settle();
      expect(await isThere(server, key)).toBe(true);
      const reader = isRead ? server.runLogs.follow(key, run, { after: -1 }) : undefined;
      release();
      await server.scheduler.settle();
      expect(await isThere(server, key)).toBe(isRead);
      reader?.close();
      await server.scheduler.advance(MINUTE);
      expect(await isThere(server, key)).toBe(false);
      expect(await leftovers(server)).toEqual([]);
    },
  );

  test("is in no list, takes no other run, and is deleted at the run's end with its actor", async () => {
    const { work, open } = gated();
    const server = await Server.start(work);
    const { key, end } = await start(server, "background");
    expect(await isThere(server, key)).toBe(true);
    expect(await server.storage.catalog.threads("_", { limit: 10 })).toEqual([]);
    await expect(server.admit(key, { strategy: "interrupt" })).rejects.toMatchObject({
      code: "thread.not_found",
    });
    open();
    expect(await end()).toMatchObject({ run: { status: "success" }, left: { values: { log: ["worked"] } } });
    expect(await leftovers(server)).toEqual([]);
    expect(await isThere(server, key)).toBe(false);
    expect(server.system.counts).toEqual({ live: 0, busy: 0 });
  });

  test("is deleted also when the run is cancelled, or taken back", async () => {
    for (const action of ["interrupt", "rollback"] as const) {
      for (const temporary of ["background", "bound", "free"] as const) {
        const server = await Server.start(gated().work);
        const { key, run, end } = await start(server, temporary);
        await server.do(server.system.cancel(key, run.run_id, action));
        await end();
        if (await isThere(server, key)) await server.scheduler.advance(MINUTE);
        expect(await leftovers(server)).toEqual([]);
      }
    }
  });

  test("stays a minute for a client that may come back", async () => {
    const { work, open } = gated();
    const server = await Server.start(work);
    const { key, end } = await start(server, "free");
    open();
    await end();
    await server.scheduler.advance(MINUTE - 1_000);
    expect(await isThere(server, key)).toBe(true);
    await server.scheduler.advance(1_000);
    expect(await leftovers(server)).toEqual([]);
  });

  test("stays a minute for a reader who has not come to the end", async () => {
    const { work, open } = gated();
    const server = await Server.start(work);
    const { key, run, end } = await start(server, "bound");
    const reader = server.runLogs.follow(key, run, { after: -1 });
    open();
    await end();
    await server.scheduler.advance(MINUTE - 1_000);
    let facts = 0;
    for (let got = await reader.next(); typeof got !== "string"; got = await reader.next()) {
      facts += got.entry.chunk.facts.length;
    }
    expect(facts).toBeGreaterThan(3);
    reader.close();
    await server.scheduler.advance(1_000);
    expect(await leftovers(server)).toEqual([]);
  });

  test.each([
    ["background", true],
    ["free", true],
    ["bound", false],
  ] as const)("after a crash %s is taken up: %s", async (temporary, survives) => {
    const kv = new MemoryKeyValueStore();
    const first = gated();
    const before = await Server.start(first.work, { kv });
    const { key, run } = await start(before, temporary);
    // The second run does not end.
    const second = gated();
    const after = await Server.start(second.work, { kv, seed: 2 });
    await after.scheduler.settle();
    expect(await isThere(after, key)).toBe(survives);
    if (survives) {
      const ended = after.system.ended(key, run.run_id);
      second.open();
      expect(await after.do(ended)).toMatchObject({ run: { status: "success", attempt: 2 } });
      // Whoever waited for it at the first server may come back.
      await after.scheduler.advance(MINUTE - 1_000);
      expect(await isThere(after, key)).toBe(true);
      await after.scheduler.advance(1_000);
    }
    expect(await leftovers(after)).toEqual([]);
  });

  test("a run that was to start later, and whose client a crash has cut off, does not start when its time comes", async () => {
    const kv = new MemoryKeyValueStore();
    const before = await Server.start(gated().work, { kv });
    const key: ThreadKey = { tenant: "_", thread: before.newId() };
    const draft = draftOf(before.newId(), {});
    const create = { metadata: {}, temporary: "bound" } as const;
    await before.do(before.system.admit(key, { ...draft, create, delay: MINUTE }));
    const warned: string[] = [];
    const { work } = gated();
    const options = { kv, seed: 2, at: before.clock.now() + 2 * MINUTE, warned };
    const after = await Server.start(work, options);
    expect(await leftovers(after)).toEqual([]);
    expect(after.system.counts).toEqual({ live: 0, busy: 0 });
    expect(warned).toEqual([]);
  });

  test("its webhook is owed when it is gone: at its end, and when a crash has cut its client off", async () => {
    const webhook = "https://hooks.test/";
    const owed = async ({ storage }: Server, id: string) =>
      (await storage.outbox.content({ tenant: "_", id })) ?? {};
    const kv = new MemoryKeyValueStore();
    const { work, open } = gated();
    const server = await Server.start(work, { kv });
    const done = await start(server, "background", webhook);
    open();
    await done.end();
    expect(await leftovers(server)).toEqual([]);
    expect(await owed(server, done.run.run_id)).toMatchObject({
      run: { status: "success" },
      values: { log: ["worked"] },
    });
    const cut = await start(server, "bound", webhook);
    const next_event = await server.storage.journal.nextEvent(cut.key, cut.run.run_id);
    expect(next_event).toBeGreaterThan(0);
    const after = await Server.start(gated().work, { kv, seed: 2 });
    expect(await leftovers(after)).toEqual([]);
    // A reader continues from its position: the run has as many events as before.
    expect(await owed(after, cut.run.run_id)).toMatchObject({
      run: { status: "interrupted", next_event },
      values: null,
    });
  });

  test.each(["background", "free"] as const)(
    "what a crash leaves of one that has ended, the next start keeps for a minute: who waited for it asks again (%s)",
    async (temporary) => {
      const kv = new MemoryKeyValueStore();
      const { work, open } = gated();
      const before = await Server.start(work, { kv });
      const { key, run, end } = await start(before, temporary);
      const release = before.system.keepTemporary(key);
      open();
      await end();
      const after = await Server.start(work, { kv, seed: 2 });
      release();
      await after.scheduler.advance(MINUTE - 1_000);
      expect(await after.do(after.system.ended(key, run.run_id))).toMatchObject({
        run: { status: "success" },
      });
      await after.scheduler.advance(1_000);
      expect(await isThere(after, key)).toBe(false);
      expect(await leftovers(after)).toEqual([]);
    },
  );

  test("what a stop leaves, because its storage is closed, the next start deletes: nobody has to be told", async () => {
    const kv = new MemoryKeyValueStore();
    const { work, open } = gated();
    const logged: string[] = [];
    const before = await Server.start(work, { kv, logged });
    const { key, end } = await start(before, "free");
    open();
    await end();
    await before.do(before.system.drain(1_000));
    await before.storage.close();
    await before.scheduler.advance(MINUTE);
    expect(logged).toEqual([]);
    await kv.open();
    const after = await Server.start(work, { kv, seed: 2 });
    await after.scheduler.advance(MINUTE);
    expect(await isThere(after, key)).toBe(false);
    expect(await leftovers(after)).toEqual([]);
  });
});
