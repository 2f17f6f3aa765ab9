import { expect, test, vi } from "vitest";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import { RUN_INDEX_COMPLETE_KEY } from "../../src/storage/keys.ts";
import { openStorage } from "../../src/storage/open-storage.ts";
import { PRESENT_MARK } from "../../src/storage/stored-records.ts";
import { all, aRun, id, threadKey, Writer } from "./samples.ts";
import { deps } from "./support.ts";

const open = (store: MemoryKeyValueStore) => openStorage({ kind: "key-value", store }, deps);

test.each(["error", "timeout", "interrupted"] as const)(
  "the few runs that ended as %s are found without reading the others, also in data without an index of them",
  async (status) => {
    const kv = new MemoryKeyValueStore();
    const { journal, catalog } = await open(kv);
    const writer = new Writer(() => journal, threadKey(1));
    for (let n = 1; n <= 40; n++) {
      const run = aRun(writer.key, n, { order: n });
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await writer.start(run, {});
      // oxlint-disable-next-line no-await-in-loop -- one append after another
      await writer.settle(run, n === 20 ? { runs: [{ ...run, status, ended_at: 2_000 }] } : {});
    }
    const search = { status, limit: 10, sort_order: "desc", keep: () => true } as const;
    const reads = vi.spyOn(kv, "get");
    const { runs } = await catalog.searchRuns("_", search);
    expect(runs.map(({ run_id }) => run_id)).toEqual([id(20)]);
    expect(reads.mock.calls.length).toBeLessThan(5);

    // As an older version left it, whose only such index was of what failed.
    const keys = (await all(kv.entries({ gte: "", lt: "~" }))).map(([at]) => at);
    const index = keys.filter((at) => at.startsWith("_/ii/")).map((key) => ({ key, value: null }));
    await kv.batch([...index, { key: RUN_INDEX_COMPLETE_KEY, value: PRESENT_MARK }], { sync: true });
    const later = await open(kv);
    expect((await later.catalog.searchRuns("_", search)).runs).toHaveLength(1);
    expect(await all(later.journal.verify())).toEqual([]);
  },
);
