import { expect, test } from "vitest";
import { aRun, id, threadKey, Writer } from "../storage/samples.ts";
import type { Opened } from "./harness.ts";

/** Delayed runs, and idempotent requests. */
export function delayedContract(opened: Opened): void {
  async function delayed(n: number, tenant: string, ...dues: number[]): Promise<Writer> {
    const one = new Writer(() => opened().journal, threadKey(n, tenant));
    const runs = dues.map((due, i) => aRun(one.key, 10 * n + i, { due }));
    await one.append({
      runs,
      thread: { delayed: runs.map(({ run_id, due }) => ({ run: run_id, due: due ?? 0 })) },
    });
    return one;
  }

  test("delayed runs of all threads are told by their time, as long as their threads name them", async () => {
    const { journal } = opened();
    const one = await delayed(1, "_", 300, 100);
    const other = await delayed(2, "other", 200);
    const all = (await journal.delayedRuns(10)).map(({ key, run, due }) => [key.tenant, run, due]);
    expect(all).toEqual([
      ["_", id(11), 100],
      ["other", id(20), 200],
      ["_", id(10), 300],
    ]);
    expect(await journal.delayedRuns(1)).toEqual([{ key: one.key, run: id(11), due: 100 }]);
    expect(await journal.delayedRuns(0)).toEqual([]);
    await one.append({ thread: { delayed: [{ run: id(10), due: 300 }] } });
    expect((await journal.delayedRuns(10)).map(({ run }) => run)).toEqual([id(20), id(10)]);
    // Also when the thread head was released and is read again.
    journal.release(other.key);
    await other.append({ thread: { delayed: null } });
    expect((await journal.delayedRuns(10)).map(({ run }) => run)).toEqual([id(10)]);
    const { epoch, seq } = one.record;
    await journal.remove(one.key, { epoch, seq });
    expect(await journal.delayedRuns(10)).toEqual([]);
  });

  test("the next timer of each thread is told by its time, while a run or an event of the machine may take it", async () => {
    const { journal } = opened();
    const timer = (name: string, due: number, run: string | null = null) => ({ id: name, due, run });
    const one = new Writer(() => journal, threadKey(1));
    await one.append({
      thread: { rest: "interrupted", timers: [timer("1:late", 300), timer("2:a/b", 100)] },
    });
    const other = new Writer(() => journal, threadKey(2, "other"));
    await other.append({ thread: { rest: "interrupted", timers: [timer("1:late", 200)] } });
    const all = async (limit = 10) =>
      (await journal.timers(limit)).map(({ key, id: name, due }) => [key.thread, name, due]);
    const [first, second] = [one.key.thread, other.key.thread];
    expect(await all()).toEqual([
      [first, "2:a/b", 100],
      [second, "1:late", 200],
    ]);
    expect(await journal.timers(1)).toEqual([{ key: one.key, id: "2:a/b", due: 100 }]);
    expect(await all(0)).toEqual([]);
    const fired = [timer("1:late", 300), timer("2:a/b", 100, id(9))];
    await one.append({ thread: { timers: fired } });
    const next = [
      [second, "1:late", 200],
      [first, "1:late", 300],
    ];
    expect(await all()).toEqual(next);
    // Also when the thread head was released and is read again.
    journal.release(one.key);
    await one.append({ thread: { rest: "error" } });
    expect(await all()).toEqual([next[0]]);
    await one.start(aRun(one.key, 10));
    expect(await all()).toEqual(next);
    const { epoch, seq } = one.record;
    await journal.remove(one.key, { epoch, seq });
    expect(await all()).toEqual([next[0]]);
    const copy = threadKey(3, "other");
    await journal.copy(other.key, copy, (thread) => ({ ...thread, thread_id: id(3), seq: thread.seq + 1 }));
    expect(await all()).toEqual([next[0], [copy.thread, "1:late", 200]]);
  });

  test("a request is known by its name, of its tenant alone, until it is forgotten", async () => {
    const { journal } = opened();
    const one = new Writer(() => journal, threadKey(1));
    await one.append();
    const once = { name: "n", digest: "d", run: id(1), at: 1_000 };
    await one.append({ runs: [aRun(one.key, 1)], once });
    expect(await journal.once("_", "n")).toEqual({ ...once, thread: one.key.thread });
    expect(await journal.once("other", "n")).toBeUndefined();
    expect(await journal.expireOnce(1_000, 10)).toBe(false);
    expect(await journal.once("_", "n")).toBeDefined();
    // Reserved again: the deletion of the older one does not remove it.
    await one.append({ once: { ...once, run: id(2), at: 5_000 } });
    expect(await journal.expireOnce(2_000, 10)).toBe(false);
    expect(await journal.once("_", "n")).toMatchObject({ run: id(2) });
    await one.append({ once: { ...once, name: "m", at: 5_000 } });
    expect(await journal.expireOnce(6_000, 1)).toBe(true);
    expect(await journal.expireOnce(6_000, 5)).toBe(false);
    expect([await journal.once("_", "n"), await journal.once("_", "m")]).toEqual([undefined, undefined]);
  });

  test.each([true, false])(
    "a name used again while its old record expires stays (used first: %s)",
    async (isFirst) => {
      const { journal } = opened();
      const one = new Writer(() => journal, threadKey(1));
      const once = { name: "n", digest: "d", run: id(1), at: 1_000 };
      await one.append({ once });
      const again = () => one.append({ once: { ...once, run: id(2), at: 90_000 } });
      const expire = () => journal.expireOnce(2_000, 10);
      await Promise.all(isFirst ? [again(), expire()] : [expire(), again()]);
      expect(await journal.once("_", "n")).toMatchObject({ run: id(2) });
      expect(await journal.expireOnce(100_000, 10)).toBe(false);
      expect(await journal.once("_", "n")).toBeUndefined();
    },
  );
}
