import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { CronRecord } from "../../src/model/cron.ts";
import { all, id } from "../storage/samples.ts";
import type { Harness } from "./harness.ts";

function aCron(n: number, changes: Partial<CronRecord> = {}): CronRecord {
  return {
    cron_id: id(n),
    assistant_id: id(900),
    thread_id: null,
    on_run_completed: "delete",
    schedule: "* * * * *",
    timezone: null,
    end_time: null,
    next: 1_000 * n,
    enabled: true,
    payload: { input: { n } },
    metadata: {},
    created_at: n,
    updated_at: n,
    ...changes,
  };
}

/** The contract of every cron store; run for each storage. */
export function cronsContract(name: string, open: () => Promise<Harness>): void {
  describe(`crons on ${name}`, () => {
    let harness: Harness;
    beforeEach(async () => {
      harness = await open();
    });
    afterEach(() => harness.close());
    const put = (cron: CronRecord, tenant = "_") =>
      harness.crons.change({ tenant, cron: cron.cron_id }, () => cron);

    test("a cron is found, and listed newest first, by its tenant alone", async () => {
      for (const n of [1, 3, 2]) await put(aCron(n));
      await put(aCron(4), "other");
      expect(await harness.crons.find({ tenant: "_", cron: id(2) })).toEqual(aCron(2));
      expect(await harness.crons.find({ tenant: "other", cron: id(2) })).toBeUndefined();
      expect((await all(harness.crons.list("_"))).map(({ cron_id }) => cron_id)).toEqual([
        id(3),
        id(2),
        id(1),
      ]);
    });

    test("those that are to fire are told by their slots, of all tenants; each stands at one slot", async () => {
      await put(aCron(1, { next: 3_000 }));
      await put(aCron(2, { next: 1_000 }), "other");
      await put(aCron(3, { next: null }));
      const slots = async (limit = 10) =>
        (await harness.crons.next(limit)).map(({ tenant, cron, slot }) => [tenant, cron, slot]);
      expect(await slots()).toEqual([
        ["other", id(2), 1_000],
        ["_", id(1), 3_000],
      ]);
      expect(await slots(1)).toHaveLength(1);
      expect(await slots(0)).toEqual([]);
      await put(aCron(2, { next: 5_000 }), "other");
      await put(aCron(3, { next: 500 }));
      expect((await slots()).map(([, , slot]) => slot)).toEqual([500, 3_000, 5_000]);
      await harness.crons.change({ tenant: "_", cron: id(1) }, () => null);
      expect((await slots()).map(([, , slot]) => slot)).toEqual([500, 5_000]);
      expect(await harness.crons.find({ tenant: "_", cron: id(1) })).toBeUndefined();
    });

    test("those of a thread are found without a look at the others", async () => {
      const of = (thread: string, tenant = "_") => harness.crons.ofThread(tenant, thread);
      await put(aCron(1, { thread_id: "a" }));
      await put(aCron(2));
      await put(aCron(3, { thread_id: "a" }), "other");
      expect(await Promise.all([of("a"), of("a"), of("b"), of("a", "other")])).toEqual([
        [id(1)],
        [id(1)],
        [],
        [id(3)],
      ]);
      await put(aCron(4, { thread_id: "a" }));
      await put(aCron(5, { thread_id: "b" }));
      await harness.crons.change({ tenant: "_", cron: id(1) }, () => null);
      expect([await of("a"), await of("b")]).toEqual([[id(4)], [id(5)]]);
    });

    test("changes that overlap see one another, and leave no slot behind", async () => {
      await put(aCron(1, { next: 1_000 }));
      const key = { tenant: "_", cron: id(1) };
      const moved = [2_000, 3_000, 4_000].map((next) =>
        harness.crons.change(key, (now) => now && { ...now, next, updated_at: now.updated_at + 1 }),
      );
      await Promise.all(moved);
      expect(await harness.crons.find(key)).toMatchObject({ next: 4_000, updated_at: 4 });
      expect(await harness.crons.next(10)).toEqual([{ ...key, slot: 4_000 }]);
      const gone = harness.crons.change(key, () => null);
      const late = harness.crons.change(key, (now) => now);
      await Promise.all([gone, late]);
      expect(await late).toBeUndefined();
      expect(await harness.crons.next(10)).toEqual([]);
    });

    test("a change that wants nothing answers what is on its way only once that is stored", async () => {
      await put(aCron(1, { next: 1_000 }));
      const key = { tenant: "_", cron: id(1) };
      const gone = harness.crons.change(key, () => null);
      expect(await harness.crons.change(key, () => undefined)).toBeUndefined();
      expect(await harness.crons.find(key)).toBeUndefined();
      expect(await harness.crons.next(10)).toEqual([]);
      await gone;
    });

    test("a change that throws, or wants nothing, changes nothing", async () => {
      await put(aCron(1));
      const key = { tenant: "_", cron: id(1) };
      const thrown = harness.crons.change(key, () => {
        throw new TypeError("no");
      });
      await expect(thrown).rejects.toThrow("no");
      expect(await harness.crons.change(key, () => undefined)).toEqual(aCron(1));
      expect(await harness.crons.find(key)).toEqual(aCron(1));
    });
  });
}
