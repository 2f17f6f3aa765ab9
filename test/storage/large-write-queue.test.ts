import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Committer } from "../../src/storage/committer.ts";
import { GatedKeyValueStore } from "./gated-key-value-store.ts";
import { deps, Timers, turns } from "./support.ts";

const LIMITS = { large: 1_000, most: 3_000 };
/** The size of a write in these tests: its content is its size. */
const itself = (bytes: number): number => bytes;
let kv: GatedKeyValueStore;
let committer: Committer;
let timers: Timers;
/** The names of the stored writes in order; those of one batch together. */
const batches = (): string[] => kv.batches.map(({ ops }) => ops.map(({ key }) => key).join(" "));
let outcomes: Map<string, "stored" | "failed">;

beforeEach(async () => {
  kv = new GatedKeyValueStore();
  await kv.open();
  kv.free = false;
  outcomes = new Map();
  timers = new Timers();
  committer = new Committer(
    kv,
    { ...deps, scheduler: timers, largeWrites: LIMITS },
    { failed: () => undefined, reopened: async () => undefined, healed: () => undefined },
  );
});

afterEach(async () => {
  kv.free = true;
  await committer.close();
});

/** Submits a write of a thread; `thread` null: a write without a thread. */
function submit(name: string, thread: string | null, bytes: number): void {
  committer.submit({
    ops: [{ key: name, value: Buffer.alloc(bytes) }],
    durable: true,
    ...(thread !== null && { thread }),
    stored: () => outcomes.set(name, "stored"),
    failed: () => outcomes.set(name, "failed"),
  });
}

/** Stores everything, batch by batch. */
async function storeAll(): Promise<void> {
  kv.free = true;
  await kv.pass();
  await turns(30);
}

/** Keeps a batch in flight, so that further writes are queued. */
async function occupy(): Promise<void> {
  submit("first", null, 10);
  await kv.arrival();
}

describe("large writes", () => {
  test("are overtaken by the small ones of other threads, and alternate with them", async () => {
    await occupy();
    for (const name of ["A", "B", "C"]) submit(name, `t/t/${name}/`, 2_000_000);
    submit("x", "t/t/x/", 10);
    submit("y", "t/t/y/", 10);
    await kv.pass();
    await kv.arrival();
    submit("z", "t/t/z/", 10);
    await storeAll();
    expect(batches()).toEqual(["first", "A", "x y z", "B", "C"]);
  });

  test("do not overtake what was submitted before them, not of their thread, and not of another", async () => {
    await occupy();
    submit("small", "t/t/A/", 10);
    // More of it than one batch takes.
    for (let i = 0; i < 3; i++) submit(`other${i}`, null, 700_000);
    submit("A", "t/t/A/", 5_000);
    await storeAll();
    expect(batches()).toEqual(["first", "small other0", "other1", "other2", "A"]);
  });

  test("are not overtaken by later writes of their thread, however small, nor by its deletion", async () => {
    await occupy();
    submit("A1", "t/t/A/", 2_000_000);
    submit("A2", "t/t/A/", 10);
    submit("B", "t/t/B/", 10);
    submit("A3", "t/t/A/", 2_000_000);
    submit("A4", "t/t/A/", 10);
    await storeAll();
    const order = batches().join(" ").split(" ");
    expect(order.filter((name) => name.startsWith("A"))).toEqual(["A1", "A2", "A3", "A4"]);
    expect(order.indexOf("B")).toBeLessThan(order.indexOf("A2"));
  });

  test("a large write that names no thread keeps its place", async () => {
    await occupy();
    submit("item1", null, 2_000_000);
    submit("item2", null, 10);
    await storeAll();
    expect(batches()).toEqual(["first", "item1", "item2"]);
  });

  test("of one tenant take turns with those of others", async () => {
    await occupy();
    for (const name of ["a1", "a2", "a3", "a4"]) submit(name, `a/t/${name}/`, 2_000_000);
    submit("b1", "b/t/b1/", 2_000_000);
    submit("b2", "b/t/b2/", 2_000_000);
    await storeAll();
    expect(batches()).toEqual(["first", "a1", "b1", "a2", "b2", "a3", "a4"]);
  });

  test("pause once after another tenant's small write, for the next one of that tenant", async () => {
    await occupy();
    for (const name of ["a1", "a2", "a3"]) submit(name, `a/t/${name}/`, 2_000_000);
    submit("b1", "b/t/b/", 10);
    kv.free = true;
    await kv.pass();
    await turns(30);
    expect(batches()).toEqual(["first", "a1", "b1"]);
    expect(timers.pauses).toHaveLength(1);
    submit("b2", "b/t/b/", 10);
    await turns(30);
    expect(batches().slice(3)).toEqual(["b2"]);
    submit("a4", "a/t/a4/", 2_000_000);
    await turns(30);
    expect(batches().slice(4)).toEqual([]);
    await timers.fire();
    await turns(30);
    expect(batches().slice(4)).toEqual(["a2", "a3", "a4"]);
    expect(timers.pauses).toHaveLength(1);
  });

  test("pause although the next one is not queued yet when the other tenant's small write is stored", async () => {
    await occupy();
    submit("a1", "a/t/a1/", 2_000_000);
    submit("b1", "b/t/b/", 10);
    kv.free = true;
    await kv.pass();
    await turns(30);
    submit("a2", "a/t/a2/", 2_000_000);
    await turns(30);
    submit("b2", "b/t/b/", 10);
    await turns(30);
    expect(batches()).toEqual(["first", "a1", "b1", "b2"]);
    await timers.fire();
    await turns(30);
    expect(batches().slice(4)).toEqual(["a2"]);
  });

  test("do not pause for the small writes of their own tenant", async () => {
    await occupy();
    for (const name of ["a1", "a2", "a3"]) submit(name, `a/t/${name}/`, 2_000_000);
    submit("a4", "a/t/a4/", 10);
    await storeAll();
    expect(batches()).toEqual(["first", "a1", "a4", "a2", "a3"]);
    expect(timers.pauses).toEqual([]);
  });

  test("share a batch where they are small enough", async () => {
    await occupy();
    for (const name of ["A", "B", "C"]) submit(name, `t/t/${name}/`, 400_000);
    await storeAll();
    expect(batches()).toEqual(["first", "A B", "C"]);
  });

  test("are refused with all others when a write fails, and are accepted again afterwards", async () => {
    await occupy();
    submit("A", "t/t/A/", 2_000);
    submit("x", "t/t/x/", 10);
    const waiting = committer.waitForLargeWriteBudget("t", 5_000, itself);
    expect(waiting).toBeUndefined();
    await kv.pass(new Error("disk"));
    await turns(30);
    expect(Object.fromEntries(outcomes)).toEqual({ first: "failed", A: "failed", x: "failed" });
    expect(committer.refusal).toBeDefined();
  });
});

describe("the budget of large writes", () => {
  test("makes large writes wait while too many bytes are queued, and never small ones", async () => {
    await occupy();
    expect(committer.waitForLargeWriteBudget("t", 5_000, itself)).toBeUndefined();
    submit("A", "t/t/A/", 5_000);
    expect(committer.waitForLargeWriteBudget("t", 999, itself)).toBeUndefined();
    let hasSpace = false;
    void committer.waitForLargeWriteBudget("t", 1_000, itself)?.then(() => (hasSpace = true));
    await turns();
    expect(hasSpace).toBe(false);
    await storeAll();
    expect(hasSpace).toBe(true);
  });

  test("admits one after the other, the tenants in turns", async () => {
    await occupy();
    submit("A", "t/t/A/", 5_000);
    const order: string[] = [];
    const wait = (name: string, tenant: string): void => {
      void committer.waitForLargeWriteBudget(tenant, 5_000, itself)?.then(() => {
        order.push(name);
        submit(name, `${tenant}/t/${name}/`, 5_000);
      });
    };
    for (const name of ["a1", "a2", "a3"]) wait(name, "a");
    wait("b1", "b");
    await turns();
    expect(order).toEqual([]);
    await kv.pass();
    await kv.arrival();
    await kv.pass();
    await kv.arrival();
    expect(order).toEqual(["a1"]);
    await storeAll();
    expect(order).toEqual(["a1", "b1", "a2", "a3"]);
    expect(batches()).toEqual(["first", "A", "a1", "b1", "a2", "a3"]);
  });

  test("a store closes only when the writes that wait for it are stored", async () => {
    await occupy();
    submit("A", "t/t/A/", 5_000);
    void committer.waitForLargeWriteBudget("t", 5_000, itself)?.then(() => submit("B", "t/t/B/", 5_000));
    const closed = committer.close();
    await storeAll();
    await closed;
    expect(batches()).toEqual(["first", "A", "B"]);
    expect(outcomes.get("B")).toBe("stored");
  });

  test("a failed write releases all that wait for it", async () => {
    await occupy();
    submit("A", "t/t/A/", 5_000);
    let refusal: unknown;
    void committer.waitForLargeWriteBudget("t", 5_000, itself)?.then(() => (refusal = committer.refusal));
    await kv.pass(new Error("disk"));
    await turns(30);
    expect(refusal).toMatchObject({ code: "storage.unavailable" });
  });
});
