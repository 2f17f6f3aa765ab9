import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Delivery, createDelivery, type NewDelivery } from "../../src/model/webhook-delivery.ts";
import type { RunRecord } from "../../src/model/run.ts";
import type { OutboxEntry } from "../../src/ports/outbox.ts";
import { all, aRun, id, kwargs, threadKey, Writer } from "../storage/samples.ts";
import type { Harness, Supports } from "./harness.ts";

const A = "https://a.test/hook?key=1";
const B = "http://b.test:8080/";

/** The contract of every journal and its outbox for webhooks; run for each storage. */
export function outboxContract(name: string, open: () => Promise<Harness>, supports: Supports): void {
  describe(`outbox on ${name}`, () => {
    let harness: Harness;
    beforeEach(async () => {
      harness = await open();
    });
    afterEach(() => harness.close());

    const ended = (writer: Writer, n: number): RunRecord =>
      aRun(writer.key, n, { status: "success", ended_at: 2_000, kwargs: kwargs({ n }) });
    const item = (run: RunRecord, url: string, due = 2_000): NewDelivery =>
      createDelivery({ run, values: { n: run.order }, waiting: null }, url, due);

    /** A thread with one run that ends with a pending webhook. */
    async function owing(n: number, url = A, due = 2_000, tenant = "_"): Promise<Writer> {
      const one = new Writer(() => harness.journal, threadKey(n, tenant));
      const run = aRun(one.key, n);
      await one.append();
      await one.start(run);
      await one.settle(run, { outbox: [item(ended(one, n), url, due)] });
      return one;
    }
    const at = (n: number, tenant = "_") => ({ tenant, id: id(n) });
    const ids = (owed: readonly OutboxEntry[]) => owed.map((one) => one.id);
    const change = (n: number, more: Partial<Delivery> | null) =>
      harness.outbox.change(at(n), (now) => more && { ...now, ...more }, { durable: true });

    test("what an append owes is there, whole, and named by its lane", async () => {
      const one = await owing(1);
      const { outbox } = harness;
      const { delivery, content } = item(ended(one, 1), A);
      expect(await outbox.find(at(1))).toEqual(delivery);
      expect(await outbox.content(at(1))).toEqual(content);
      expect(await all(outbox.targets())).toEqual(["a.test"]);
      expect(await outbox.pending("a.test", 10)).toEqual([{ ...at(1), delivery }]);
      expect(await all(harness.journal.verify())).toEqual([]);
    });

    test("an append that is refused owes nothing", async () => {
      const one = new Writer(() => harness.journal, threadKey(1));
      await one.append();
      const stale = new Writer(() => harness.journal, one.key);
      const refused = stale.append({ outbox: [item(ended(one, 1), A)] });
      await expect(refused).rejects.toMatchObject({ code: "journal.conflict" });
      expect(await harness.outbox.find(at(1))).toBeUndefined();
      expect(await all(harness.outbox.targets())).toEqual([]);
    });

    test("the listener is told of the lane once it can be read", async () => {
      const told: Promise<readonly string[]>[] = [];
      harness.outbox.watch((lane) => {
        told.push(harness.outbox.pending(lane, 10).then(ids));
      });
      await owing(1);
      expect(await Promise.all(told)).toEqual([[id(1)]]);
      await change(1, { due: 5_000 });
      expect(await Promise.all(told)).toEqual([[id(1)], [id(1)]]);
      await change(1, { status: "dead" });
      expect(told).toHaveLength(2);
    });

    test("a thread that is removed takes nothing of it along", async () => {
      const one = await owing(1);
      await harness.journal.remove(one.key, one.record);
      expect(ids(await harness.outbox.pending("a.test", 10))).toEqual([id(1)]);
      expect((await harness.outbox.content(at(1)))?.values).toEqual({ n: 1 });
    });

    test("lanes are apart, and each is in the order of its times, whoever owns what", async () => {
      await owing(1, A, 3_000);
      await owing(2, B, 1_000);
      await owing(3, A, 2_000, "other/tenant");
      await owing(4, "/own", 2_000);
      const { outbox } = harness;
      expect((await all(outbox.targets())).toSorted()).toEqual(["", "a.test", "b.test:8080"]);
      expect(await outbox.pending("a.test", 10)).toMatchObject([at(3, "other/tenant"), at(1)]);
      expect(ids(await outbox.pending("a.test", 1))).toEqual([id(3)]);
      expect(ids(await outbox.pending("b.test:8080", 10))).toEqual([id(2)]);
      expect(ids(await outbox.pending("", 10))).toEqual([id(4)]);
      expect(await outbox.pending("nowhere.test", 10)).toEqual([]);
    });

    test("a change moves it, a deletion leaves nothing", async () => {
      await owing(1, A, 2_000);
      await owing(2, A, 3_000);
      const { outbox } = harness;
      const later = await change(1, { due: 9_000, attempts: 1 });
      expect(later).toMatchObject({ due: 9_000, attempts: 1 });
      expect(await outbox.find(at(1))).toEqual(later);
      expect(ids(await outbox.pending("a.test", 10))).toEqual([id(2), id(1)]);
      await change(2, { status: "dead", due: 8_000 });
      expect(ids(await outbox.pending("a.test", 10))).toEqual([id(1)]);
      expect(ids(await outbox.dead(10))).toEqual([id(2)]);
      expect(await change(1, null)).toBeUndefined();
      await change(2, null);
      expect(await outbox.find(at(1))).toBeUndefined();
      expect(await outbox.content(at(1))).toBeUndefined();
      expect([await all(outbox.targets()), await outbox.dead(10)]).toEqual([[], []]);
      expect(await all(harness.journal.verify())).toEqual([]);
    });

    test("changes see one another before they are stored", async () => {
      await owing(1);
      const made = [
        change(1, { attempts: 1 }),
        harness.outbox.change(at(1), (now) => ({ ...now, attempts: now.attempts + 1 }), { durable: false }),
        harness.outbox.change(at(1), () => undefined, { durable: false }),
        change(1, null),
        harness.outbox.change(at(1), () => expect.fail("there is none any more"), { durable: true }),
      ];
      expect((await Promise.all(made)).map((now) => now?.attempts)).toEqual([1, 2, 2, undefined, undefined]);
      expect(await harness.outbox.find(at(1))).toBeUndefined();
    });

    test("a list has the newest run first, the pending before the dead, each tenant its own", async () => {
      for (const n of [1, 2, 3, 4]) await owing(n);
      await owing(5, A, 2_000, "other");
      await change(3, { status: "dead" });
      const list = async (query: object) =>
        (await harness.outbox.list("_", { limit: 10, offset: 0, ...query })).map((one) => one.id);
      expect(await list({})).toEqual([4, 2, 1, 3].map(id));
      expect(await list({ status: "pending" })).toEqual([4, 2, 1].map(id));
      expect(await list({ status: "dead" })).toEqual([id(3)]);
      expect(await list({ limit: 2, offset: 1 })).toEqual([2, 1].map(id));
      expect(await list({ limit: 2, offset: 2 })).toEqual([1, 3].map(id));
      expect(await list({ offset: 9 })).toEqual([]);
    });

    test("one that changes its status is there all the time", async () => {
      await owing(1);
      const { outbox } = harness;
      for (let n = 0; n < 20; n++) {
        const changed = change(1, { status: n % 2 === 0 ? "dead" : "pending" });
        const found = await Promise.all(Array.from({ length: 5 }, () => outbox.find(at(1))));
        expect(found.map((one) => one?.id)).toEqual(Array(5).fill(id(1)));
        await changed;
      }
    });

    test("they are counted, of all owners, as far as is asked", async () => {
      const { outbox } = harness;
      expect(await outbox.count(10)).toEqual({ pending: 0, dead: 0 });
      for (const n of [1, 2, 3]) await owing(n, n === 2 ? B : A);
      await owing(4, A, 2_000, "other");
      await change(3, { status: "dead" });
      expect(await outbox.count(10)).toEqual({ pending: 3, dead: 1 });
      expect(await outbox.count(2)).toEqual({ pending: 2, dead: 1 });
      await change(3, null);
      expect(await outbox.count(10)).toEqual({ pending: 3, dead: 0 });
    });

    test.runIf(supports.reopen)("the next open finds it as it was", async () => {
      await owing(1);
      await owing(2, B);
      await change(1, { due: 7_000, attempts: 2 });
      await harness.reopen();
      expect((await all(harness.outbox.targets())).toSorted()).toEqual(["a.test", "b.test:8080"]);
      expect(await harness.outbox.find(at(1))).toMatchObject({ due: 7_000, attempts: 2 });
      expect((await harness.outbox.content(at(2)))?.run.run_id).toBe(id(2));
    });
  });
}
