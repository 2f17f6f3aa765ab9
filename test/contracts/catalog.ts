import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { AssistantFilter, AssistantRecord } from "../../src/model/assistant.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { RunRecord } from "../../src/model/run.ts";
import { newThreadRecord } from "../../src/model/thread.ts";
import type { RunSearch } from "../../src/ports/catalog.ts";
import { all, aRun, id, threadKey, Writer } from "../storage/samples.ts";
import type { Harness } from "./harness.ts";

/** The contract of every catalog; run for each storage. */
export function catalogContract(
  name: string,
  open: () => Promise<Harness>,
  supports: { readonly reopen: boolean },
): void {
  describe(`catalog on ${name}`, () => {
    let harness: Harness;
    beforeEach(async () => {
      harness = await open();
    });
    afterEach(() => harness.close());

    const assistant = (n: number, metadata: JsonObject = {}, more: Partial<AssistantRecord> = {}) => ({
      assistant_id: id(n),
      graph_id: n % 2 === 0 ? "even" : "odd",
      version: 1,
      name: `assistant ${n}`,
      description: null,
      config: {},
      context: {},
      metadata,
      created_at: n,
      updated_at: n,
      ...more,
    });
    const put = (...made: readonly AssistantRecord[]): Promise<void> =>
      harness.catalog.transact(
        "_",
        made.map((one) => ({ kind: "assistant.put", assistant: one })),
      );
    const list = async (filter: AssistantFilter = {}, tenant = "_") =>
      (await all(harness.catalog.assistants(tenant, filter))).map((one) => one.created_at);

    test("an assistant comes back as it was last written", async () => {
      expect(await harness.catalog.assistant("_", id(1))).toBeUndefined();
      await put(assistant(1));
      const changed = assistant(1, { changed: true }, { version: 2 });
      await put(changed);
      expect(await harness.catalog.assistant("_", id(1))).toEqual(changed);
      expect(await harness.catalog.assistant("other", id(1))).toBeUndefined();
      expect(await list()).toEqual([1]);
    });

    test("assistants are listed newest first, by graph, name and metadata", async () => {
      await put(...[5, 1, 40, 3, 2].map((n) => assistant(n, { n, nested: { tags: ["a", n], deep: { n } } })));
      expect(await list()).toEqual([40, 5, 3, 2, 1]);
      expect(await list({ graph_id: "even" })).toEqual([40, 2]);
      expect(await list({ graph_id: "odd", name: "T 3" })).toEqual([3]);
      expect(await list({ metadata: { n: 3 } })).toEqual([3]);
      expect(await list({ metadata: { nested: { deep: { n: 5 } } } })).toEqual([5]);
      expect(await list({ metadata: { nested: { tags: ["a", 2] } } })).toEqual([2]);
      expect(await list({ metadata: { toString: 1 } })).toEqual([]);
      expect(await list({ name: "ASSISTANT" })).toEqual([40, 5, 3, 2, 1]);
      expect(await list({ name: "nobody" })).toEqual([]);
      expect(await list({}, "other")).toEqual([]);
    });

    test("an assistant that is deleted, or made anew at another time, is listed once or not at all", async () => {
      await put(assistant(1), assistant(2));
      // Concurrent: none sees the other's result.
      await Promise.all([
        put(assistant(1, {}, { created_at: 10 })),
        put(assistant(1, {}, { created_at: 20 })),
      ]);
      expect(await list()).toEqual([20, 2]);
      await harness.catalog.transact("_", [
        { kind: "assistant.delete", assistant: id(1) },
        { kind: "assistant.delete", assistant: id(77) },
      ]);
      expect(await list()).toEqual([2]);
    });

    test("runs of all threads are found in pages, while they exist", async () => {
      const search = (more: Partial<RunSearch> = {}, tenant = "_") =>
        harness.catalog.searchRuns(tenant, { limit: 10, sort_order: "desc", keep: () => true, ...more });
      const found = async (more?: Partial<RunSearch>, tenant?: string) =>
        (await search(more, tenant)).runs.map((run) => run.created_at - 1_000);
      const [one, two, other] = [threadKey(1), threadKey(2), threadKey(3, "other")].map(
        (key) => new Writer(() => harness.journal, key),
      ) as [Writer, Writer, Writer];
      const hidden = new Writer(
        () => harness.journal,
        threadKey(4),
        newThreadRecord(id(4), 1_000, { temporary: "free" }),
      );
      const error = { error: "TypeError", message: "No such file" };
      const admit = (writer: Writer, n: number, order: number, more: Partial<RunRecord> = {}) =>
        writer.append({ runs: [aRun(writer.key, n, { order, ...more })], thread: { next_run: order + 1 } });
      await admit(one, 11, 1);
      await admit(two, 12, 1, { status: "error", error });
      await admit(one, 13, 2, { metadata: { team: "red" } });
      await admit(one, 14, 3, { due: 99_000 });
      await admit(other, 15, 1);
      await admit(hidden, 16, 1, { status: "error", error });
      await one.append({
        runs: [aRun(one.key, 11, { order: 1, status: "timeout" })],
        thread: { active: id(13), delayed: [{ run: id(14), due: 99_000 }] },
      });
      expect(await found()).toEqual([14, 13, 12, 11]);
      expect(await found({}, "other")).toEqual([15]);
      expect(await found({ sort_order: "asc", limit: 2 })).toEqual([11, 12]);
      expect(await found({ status: "error" })).toEqual([12]);
      expect(await found({ status: "timeout" })).toEqual([11]);
      expect(await found({ status: "running" })).toEqual([14, 13]);
      expect(await found({ error: "such FILE" })).toEqual([12]);
      expect(await found({ thread_id: one.key.thread })).toEqual([14, 13, 11]);
      expect(await found({ created_after: 1_012, created_before: 1_014 })).toEqual([13, 12]);
      expect(await found({ metadata: { team: "red" } })).toEqual([13]);
      expect(await found({ keep: ({ run_id }) => run_id !== id(13) })).toEqual([14, 12, 11]);
      for (const more of [{}, { thread_id: one.key.thread }]) {
        const { runs, next = "" } = await search({ ...more, limit: 2 });
        const rest = await search({ ...more, limit: 2, cursor: next });
        expect([...runs, ...rest.runs].map((run) => run.created_at - 1_000)).toEqual(await found(more));
        expect(rest.next).toBeUndefined();
      }
      await one.append({ forget: [id(11)] });
      expect(await found()).toEqual([14, 13, 12]);
      const { epoch, seq } = two.record;
      await harness.journal.remove(two.key, { epoch, seq });
      expect(await found()).toEqual([14, 13]);
      expect(await found({ status: "error" })).toEqual([]);
      if (!supports.reopen) return;
      await harness.reopen();
      expect(await found()).toEqual([14, 13]);
    });

    test("an assistant has its versions, newest first, until it is deleted", async () => {
      const versions = async (n: number, tenant = "_") =>
        (await all(harness.catalog.versions(tenant, id(n)))).map(({ version }) => version);
      const revise = (n: number, version: number) => {
        const { updated_at: _, ...rest } = assistant(n, { of: n }, { version });
        return harness.catalog.transact("_", [
          { kind: "assistant.put", assistant: assistant(n, {}, { version }) },
          { kind: "assistant.version", version: rest },
        ]);
      };
      expect(await versions(1)).toEqual([]);
      for (let version = 1; version <= 40; version++) await revise(1, version);
      await revise(2, 1);
      expect(await versions(1)).toEqual(Array.from({ length: 40 }, (_, i) => 40 - i));
      expect(await versions(1, "other")).toEqual([]);
      expect(await harness.catalog.version("_", id(1), 17)).toMatchObject({
        version: 17,
        metadata: { of: 1 },
      });
      expect(await harness.catalog.version("_", id(1), 41)).toBeUndefined();
      await harness.catalog.transact("_", [{ kind: "assistant.delete", assistant: id(1) }]);
      expect([await versions(1), await versions(2)]).toEqual([[], [1]]);
      expect(await harness.catalog.version("_", id(1), 17)).toBeUndefined();
    });

    test("all changes of a transaction are made, in their order", async () => {
      await harness.catalog.transact("_", [
        { kind: "assistant.put", assistant: assistant(1) },
        { kind: "assistant.delete", assistant: id(1) },
        { kind: "assistant.put", assistant: assistant(1, { last: true }) },
        { kind: "assistant.put", assistant: assistant(2) },
      ]);
      await harness.catalog.transact("_", []);
      expect((await harness.catalog.assistant("_", id(1)))?.metadata).toEqual({ last: true });
      expect(await list()).toEqual([2, 1]);
    });

    test("threads are listed by id, page by page, of one tenant", async () => {
      for (let n = 1; n <= 25; n++) {
        await new Writer(() => harness.journal, threadKey(n, n % 5 === 0 ? "five" : "_")).append();
      }
      const found: string[] = [];
      let after: string | undefined;
      for (;;) {
        const page = await harness.catalog.threads("_", { limit: 7, ...(after !== undefined && { after }) });
        after = page.at(-1)?.thread;
        if (after === undefined) break;
        found.push(...page.map((key) => key.thread));
      }
      const expected = Array.from({ length: 25 }, (_, i) => i + 1).filter((n) => n % 5 !== 0);
      expect(found).toEqual(expected.map(id));
      expect(await harness.catalog.threads("five", { limit: 2 })).toEqual([
        threadKey(5, "five"),
        threadKey(10, "five"),
      ]);
      expect(await harness.catalog.threads("fiv", { limit: 2 })).toEqual([]);
      expect(await harness.catalog.threads("_", { limit: 0 })).toEqual([]);
    });

    test.runIf(supports.reopen)("all of it is there after the next open", async () => {
      await put(assistant(1), assistant(2));
      await harness.reopen();
      expect(await list()).toEqual([2, 1]);
      expect(await all(harness.journal.verify())).toEqual([]);
    });
  });
}
