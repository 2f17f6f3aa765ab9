import { expect, test } from "vitest";
import type { ThreadKey, ThreadRecord } from "../../src/model/thread.ts";
import {
  aCheckpoint,
  add,
  all,
  aRun,
  id,
  set,
  someEvents,
  someWrites,
  threadKey,
  Writer,
} from "../storage/samples.ts";
import type { Opened, Supports } from "./harness.ts";

const LONG = "x".repeat(100);

/** Copying a thread, and pruning its history. */
export function keepingContract(opened: Opened, supports: Supports): void {
  const journal = () => opened().journal;

  async function valuesAt(key: ThreadKey, n: number, ns = "") {
    const checkpoint = await journal().checkpoint(key, ns, id(n));
    return checkpoint && journal().values(key, checkpoint);
  }

  const historyOf = async (key: ThreadKey, ns = "") =>
    (await journal().history(key, { ns, limit: 100 })).map(({ id: one, parent }) => [one, parent]);

  /** Ten steps of two runs, with a fork, a subgraph, pending tasks, and events. */
  async function lived(n = 1): Promise<Writer> {
    const one = new Writer(journal, threadKey(n));
    const run = aRun(one.key, 500);
    await one.append({ thread: { metadata: { a: 1 } } });
    await one.start(run, { events: someEvents(run.run_id, 0, 3) });
    for (let step = 1; step <= 10; step++) {
      const parent = step === 1 ? null : step === 8 ? 4 : step - 1;
      // The eighth continues from the fourth, whose list had four items.
      const keep = step < 8 ? step - 1 : step - 4;
      await one.append({
        checkpoints: [
          aCheckpoint(step, parent, {
            list: add(keep, `item ${step}`),
            whole: set({ LONG, step }),
            small: set(step),
          }),
          aCheckpoint(
            100 + step,
            step === 1 ? null : 99 + step,
            { inner: set({ LONG, step }) },
            { ns: "sub:1" },
          ),
        ],
        writes: [someWrites(step, 700 + step)],
        thread: { checkpoint: id(step) },
      });
    }
    await one.settle({ ...run, next_event: 3 }, { thread: { rest: "interrupted" } });
    return one;
  }

  const prune = ({ key, record: { epoch, seq } }: Writer) => journal().prune(key, { epoch, seq });

  test("what is pruned keeps the latest checkpoint of each graph, and its state", async () => {
    const one = await lived();
    const before = [await valuesAt(one.key, 10), await valuesAt(one.key, 110, "sub:1")];
    expect(before[0]).toEqual({
      list: ["item 1", "item 2", "item 3", "item 4", "item 8", "item 9", "item 10"],
      whole: { LONG, step: 10 },
      small: 10,
    });
    const bystander = await lived(2);
    await prune(one);
    if (supports.reopen) await opened().reopen();
    expect(await historyOf(one.key)).toEqual([[id(10), null]]);
    expect(await historyOf(one.key, "sub:1")).toEqual([[id(110), null]]);
    expect([await valuesAt(one.key, 10), await valuesAt(one.key, 110, "sub:1")]).toEqual(before);
    expect((await journal().writes(one.key, "", id(10))).length).toBe(1);
    expect(await journal().writes(one.key, "", id(9))).toEqual([]);
    expect(await valuesAt(one.key, 9)).toBeUndefined();
    expect((await historyOf(bystander.key)).length).toBe(10);
    expect((await journal().runs(one.key, { limit: 5, offset: 0 })).length).toBe(1);
    expect(await all(journal().verify())).toEqual([]);
  });

  test("a thread goes on after it was pruned, and can be pruned again", async () => {
    const one = await lived();
    await prune(one);
    await prune(one);
    await one.append({
      checkpoints: [aCheckpoint(11, 10, { list: add(7, "item 11") }), aCheckpoint(12, 11, { list: add(0) })],
      thread: { checkpoint: id(12) },
    });
    expect((await valuesAt(one.key, 11))?.["list"]).toHaveLength(8);
    await prune(one);
    expect(await historyOf(one.key)).toEqual([[id(12), null]]);
    expect(await valuesAt(one.key, 12)).toEqual({ list: [], whole: { LONG, step: 10 }, small: 10 });
    expect(await all(journal().verify())).toEqual([]);
  });

  test("a thread without a checkpoint is pruned to itself; a stale writer prunes nothing", async () => {
    const empty = new Writer(journal, threadKey(7));
    await empty.append();
    await prune(empty);
    expect(await journal().thread(empty.key)).toEqual(empty.record);
    const one = await lived();
    await expect(journal().prune(one.key, { epoch: 9, seq: 1 })).rejects.toMatchObject({
      code: "journal.fenced",
    });
    expect((await historyOf(one.key)).length).toBe(10);
  });

  const make =
    (to: ThreadKey) =>
    (thread: ThreadRecord): ThreadRecord => ({
      ...thread,
      thread_id: to.thread,
      created_at: 9_000,
      rested_at: 9_000,
      seq: thread.seq + 1,
      active: null,
      next_run: 1,
      next_event: 1,
    });

  test("a copy has the whole history, and goes its own way", async () => {
    const one = await lived();
    const to = threadKey(2);
    const made = await journal().copy(one.key, to, make(to));
    expect(made).toMatchObject({ thread_id: to.thread, checkpoint: id(10), rest: "interrupted" });
    if (supports.reopen) await opened().reopen();
    expect(await journal().thread(to)).toEqual(made);
    expect(await historyOf(to)).toEqual(await historyOf(one.key));
    expect(await historyOf(to, "sub:1")).toEqual(await historyOf(one.key, "sub:1"));
    for (const n of [1, 7, 10]) expect(await valuesAt(to, n)).toEqual(await valuesAt(one.key, n));
    expect((await journal().writes(to, "", id(10))).length).toBe(1);
    expect(await journal().runs(to, { limit: 5, offset: 0 })).toEqual([]);
    expect(await journal().events(to, id(500), -1, 5)).toEqual([]);
    const search = {
      limit: 5,
      offset: 0,
      sort_by: "created_at",
      sort_order: "desc",
      metadata: { a: 1 },
    } as const;
    const found = await opened().catalog.searchThreads("_", search);
    expect(found.threads.map(({ thread_id }) => thread_id)).toEqual([to.thread, one.key.thread]);
    // Both continue from the same checkpoint.
    const copy = new Writer(journal, to, made);
    await copy.append({ checkpoints: [aCheckpoint(11, 10, { list: add(7, "of the copy") })] });
    await one.append({ checkpoints: [aCheckpoint(11, 10, { list: add(7, "of the first") })] });
    expect((await valuesAt(to, 11))?.["list"]).toContain("of the copy");
    expect((await valuesAt(one.key, 11))?.["list"]).toContain("of the first");
    const run = aRun(to, 600);
    await copy.start(run);
    await copy.append({ forget: [run.run_id], thread: { active: null } });
    await journal().remove(one.key, { epoch: one.record.epoch, seq: one.record.seq });
    expect((await valuesAt(to, 10))?.["small"]).toBe(10);
    expect(await all(journal().verify())).toEqual([]);
  });

  test("a long thread is copied in pieces, and nobody sees it before it is whole", async () => {
    const one = new Writer(journal, threadKey(1));
    await one.append();
    for (let n = 1; n <= 700; n++) {
      void one.append({
        checkpoints: [
          aCheckpoint(n, n === 1 ? null : n - 1, { list: add(n - 1, n), whole: set({ n, LONG }) }),
        ],
        thread: { checkpoint: id(n) },
      });
    }
    await one.append();
    const to = threadKey(2);
    const copied = journal().copy(one.key, to, make(to));
    const pages: number[] = [];
    let over = false;
    const done = copied.finally(() => (over = true));
    while (!over) {
      const thread = await journal().thread(to);
      const page = (await journal().history(to, { ns: "", limit: 1_000 })).length;
      if (!over && thread === undefined) pages.push(page);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await done;
    expect(new Set(pages)).toEqual(new Set([0]));
    expect((await valuesAt(to, 700))?.["list"]).toHaveLength(700);
    expect(await all(journal().verify())).toEqual([]);
  });

  test("an id is taken by one copy, or by the thread that is being created", async () => {
    const one = await lived();
    const refused = expect.objectContaining({ code: "journal.conflict" }) as Error;
    const to = threadKey(2);
    const copies = await Promise.allSettled([1, 2, 3].map(() => journal().copy(one.key, to, make(to))));
    expect(copies.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected"]);
    expect(copies[1]).toEqual({ status: "rejected", reason: refused });
    const third = new Writer(journal, threadKey(3));
    const created = third.append();
    await expect(journal().copy(one.key, third.key, make(third.key))).rejects.toEqual(refused);
    await created;
    expect(await journal().thread(third.key)).toEqual(third.record);
    expect(await all(journal().verify())).toEqual([]);
  });

  test("a copy of nothing, or over something, is refused and leaves nothing", async () => {
    const one = await lived();
    const hidden = new Writer(journal, threadKey(3));
    await hidden.append({ thread: { temporary: "free" } });
    const to = threadKey(2);
    for (const from of [threadKey(9), hidden.key]) {
      await expect(journal().copy(from, to, make(to))).rejects.toMatchObject({ code: "thread.not_found" });
    }
    await expect(journal().copy(one.key, one.key, make(one.key))).rejects.toMatchObject({
      code: "journal.conflict",
    });
    expect(await journal().thread(to)).toBeUndefined();
    // The thread id is free again.
    await new Writer(journal, to).append();
    expect(await all(journal().verify())).toEqual([]);
  });
}
