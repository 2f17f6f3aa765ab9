import { expect, test } from "vitest";
import { aRun, id, threadKey, Writer } from "../storage/samples.ts";
import type { Opened } from "./harness.ts";

/** Started runs, ordered by the thread's event numbers. */
export function startedContract(opened: Opened): void {
  const COUNT = 40;
  /** Run n begins at 10 n; every third has never begun. */
  const begun = Array.from({ length: COUNT }, (_, i) => i + 1).filter((n) => n % 3 !== 0);
  const baseOf = (n: number) => 10 * n;

  async function runs(): Promise<Writer> {
    const one = new Writer(() => opened().journal, threadKey(1));
    await one.append();
    for (let n = 1; n <= COUNT; n++) {
      const seq_base = begun.includes(n) ? baseOf(n) : 0;
      await one.append({ runs: [aRun(one.key, n, { seq_base })], thread: { next_run: n + 1 } });
    }
    return one;
  }

  test("runs that have begun are found by number, from the one that holds it on", async () => {
    const { key } = await runs();
    const { journal } = opened();
    for (const limit of [1, 8, 100]) {
      for (let seq = 0; seq <= baseOf(COUNT) + 5; seq += 5) {
        const floor = Math.max(
          0,
          begun.findLastIndex((n) => baseOf(n) <= seq),
        );
        const found = await journal.started(key, seq, limit);
        expect(
          found.map(({ run_id }) => run_id),
          `${seq}`,
        ).toEqual(begun.slice(floor, floor + limit).map((n) => id(n)));
      }
    }
    expect((await journal.started(key, 0, 1))[0]).toEqual(aRun(key, 1, { seq_base: baseOf(1) }));
  });

  test("those that were forgotten are passed over; of another thread, or of none, there are none", async () => {
    const one = await runs();
    const { journal } = opened();
    await one.append({ forget: [id(4), id(40)] });
    expect((await journal.started(one.key, baseOf(4), 2)).map(({ run_id }) => run_id)).toEqual([
      id(2),
      id(5),
    ]);
    expect((await journal.started(one.key, baseOf(40), 5)).map(({ run_id }) => run_id)).toEqual([id(38)]);
    expect(await journal.started(threadKey(2), 0, 10)).toEqual([]);
    expect(await journal.started(threadKey(1, "other"), 0, 10)).toEqual([]);
    const { epoch, seq } = one.record;
    await journal.remove(one.key, { epoch, seq });
    expect(await journal.started(one.key, 0, 10)).toEqual([]);
  });

  test("a run that was delayed stands where it began, whatever its place in the order of admission", async () => {
    const one = new Writer(() => opened().journal, threadKey(1));
    await one.append();
    // By admission; the first and the fourth were delayed, and began last and third.
    const bases = [60, 10, 20, 30, 40, 50];
    for (const [i, seq_base] of bases.entries()) {
      const due = seq_base === 60 || seq_base === 30 ? 1 : null;
      await one.append({ runs: [aRun(one.key, i + 1, { seq_base, due })], thread: { next_run: i + 2 } });
    }
    const { journal } = opened();
    for (const limit of [1, 2, 3, 10]) {
      for (let seq = 0; seq <= 70; seq += 5) {
        const all = [...bases].sort((a, b) => a - b);
        const floor = Math.max(
          0,
          all.findLastIndex((base) => base <= seq),
        );
        const found = await journal.started(one.key, seq, limit);
        expect(
          found.map(({ seq_base }) => seq_base),
          `${seq}, ${limit}`,
        ).toEqual(all.slice(floor, floor + limit));
      }
    }
    await one.append({ forget: [id(1), id(4)] });
    expect((await journal.started(one.key, 0, 10)).map(({ seq_base }) => seq_base)).toEqual([10, 20, 40, 50]);
  });
}
