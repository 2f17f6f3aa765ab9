import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { unpackWriteBatch } from "../../src/codec/value-encoding.ts";
import { ServiceError } from "../../src/model/errors.ts";
import type { KeyValueStore, WriteOperation } from "../../src/ports/key-value-store.ts";
import type { ShardLog } from "../../src/ports/shard-log.ts";
import { MemoryShardLog } from "../../src/replication/memory-shard-log.ts";
import { ReplicatedKeyValueStore } from "../../src/replication/replicated-key-value-store.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import { type AppendFault, FaultyShardLog } from "./faulty-shard-log.ts";

const SHARD = 2;
/** Enough faults of appends to exhaust the patience of a node. */
const MANY = 8;
const FENCED = { code: "log.fenced" };
const UNAVAILABLE = { code: "storage.unavailable" };

/** A store that can fail before a write, and lose its last writes in a power cut. */
class FragileStore extends MemoryKeyValueStore {
  readonly written: (readonly WriteOperation[])[] = [];
  failsNext = false;

  override async batch(ops: readonly WriteOperation[], options: { readonly sync: boolean }): Promise<void> {
    if (this.failsNext) {
      this.failsNext = false;
      throw new ServiceError("storage.unavailable", "The disk is full");
    }
    await super.batch(ops, options);
    this.written.push(ops);
  }

  /** The store after a power cut that took its last `lost` writes. */
  async afterPowerCut(lost: number): Promise<FragileStore> {
    const store = new FragileStore();
    await store.open();
    const kept = this.written.slice(0, Math.max(0, this.written.length - lost));
    for (const ops of kept) await store.batch(ops, { sync: false });
    return store;
  }
}

/** A node that owns the shard, or believes so. */
class Node {
  inner = new FragileStore();
  readonly log: FaultyShardLog;
  store: ReplicatedKeyValueStore;
  fenced = 0;
  epoch = 0;
  readonly #shared: MemoryShardLog;
  #now = 0;

  constructor(shared: MemoryShardLog) {
    this.#shared = shared;
    this.log = new FaultyShardLog(shared);
    this.store = this.#own();
  }

  /** Starts again, with a new epoch, over what is left of its store. */
  async restart(lost = 0): Promise<void> {
    await this.log.deliver();
    this.inner = await this.inner.afterPowerCut(lost);
    this.store = this.#own();
  }

  write(id: string): Promise<void> {
    return this.store.batch([
      { key: `w/${id}`, value: Buffer.from(id) },
      { key: "newest", value: Buffer.from(id) },
    ]);
  }

  #own(): ReplicatedKeyValueStore {
    this.epoch = this.#shared.newEpoch(SHARD);
    return new ReplicatedKeyValueStore(
      this.inner,
      this.log,
      { shard: SHARD, epoch: this.epoch },
      {
        clock: { now: () => this.#now, mono: () => this.#now },
        scheduler: {
          soon: (task) => void setImmediate(task),
          after: (ms, task) => {
            this.#now += ms;
            const timer = setImmediate(task);
            return () => clearImmediate(timer);
          },
        },
        random: { bytes: (count) => new Uint8Array(count), float: () => 0.5 },
        patienceMs: 60,
        onFenced: () => this.fenced++,
      },
    );
  }
}

/** The ids of the batches in the log, in order. */
async function logged(log: MemoryShardLog): Promise<string[]> {
  const entries = await log.read(SHARD, 1, Number.MAX_SAFE_INTEGER);
  return entries.flatMap(({ batch }) => {
    const [op] = unpackWriteBatch(batch);
    return op === undefined ? [] : [op.key.slice(2)];
  });
}

async function contents(store: KeyValueStore): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for await (const [key, value] of store.entries({ gte: "", lt: "~" })) found[key] = value.toString();
  return found;
}

describe("an append", () => {
  test.each<[AppendFault[], string[]]>([
    [["lost"], ["a", "b"]],
    [["before"], ["a", "b"]],
    [["late"], ["a", "b"]],
    [
      ["before", "late", "lost"],
      ["a", "b"],
    ],
  ])("with the faults %j is repeated until it is answered, and stored once", async (faults, expected) => {
    const log = new MemoryShardLog();
    const node = new Node(log);
    await node.store.open();
    node.log.faults.push(...faults);
    await node.write("a");
    await node.write("b");
    expect(await logged(log)).toEqual(expected);
    expect(await contents(node.store)).toEqual({ newest: "b", "w/a": "a", "w/b": "b" });
  });

  test("that stays without an answer fails, and so does every later one, until the store is opened again", async () => {
    const log = new MemoryShardLog();
    const node = new Node(log);
    await node.store.open();
    node.log.isDown = true;
    await expect(node.write("a")).rejects.toMatchObject(UNAVAILABLE);
    await expect(node.write("b")).rejects.toMatchObject(UNAVAILABLE);
    await expect(node.store.probe()).rejects.toMatchObject(UNAVAILABLE);
    expect(await node.store.get("newest")).toBeUndefined();
    node.log.isDown = false;
    await node.store.close();
    await node.store.open();
    await node.write("c");
    expect(await node.store.get("newest")).toEqual(Buffer.from("c"));
  });

  test("that was stored without an answer is not taken for another owner's", async () => {
    const log = new MemoryShardLog();
    const node = new Node(log);
    await node.store.open();
    node.log.faults.push("lost", ...Array.from({ length: MANY }, () => "before" as const));
    await expect(node.write("a")).rejects.toMatchObject(UNAVAILABLE);
    node.log.faults.length = 0;
    await expect(node.write("b")).rejects.toMatchObject(UNAVAILABLE);
    await node.store.close();
    await node.store.open();
    expect(node.fenced).toBe(0);
    expect(await contents(node.store)).toEqual({ newest: "a", "w/a": "a" });
  });

  test("that arrives after the store was opened again is refused", async () => {
    const log = new MemoryShardLog();
    const node = new Node(log);
    await node.store.open();
    node.log.faults.push(...Array.from({ length: MANY }, () => "late" as const));
    await expect(node.write("a")).rejects.toMatchObject(UNAVAILABLE);
    node.log.faults.length = 0;
    await node.store.close();
    await node.store.open();
    await node.log.deliver();
    await node.write("b");
    expect(await logged(log)).toEqual(["b"]);
  });

  test("that the log has and the store has not, is applied when the store is opened", async () => {
    const log = new MemoryShardLog();
    const node = new Node(log);
    await node.store.open();
    node.inner.failsNext = true;
    await expect(node.write("a")).rejects.toMatchObject(UNAVAILABLE);
    await node.store.close();
    await node.store.open();
    expect(await contents(node.store)).toEqual({ newest: "a", "w/a": "a" });
    expect(await logged(log)).toEqual(["a"]);
  });

  test("that was stored without an answer is applied, even if the store cannot be opened again at first", async () => {
    const node = new Node(new MemoryShardLog());
    await node.store.open();
    node.log.faults.push("lost", ...Array.from({ length: MANY }, () => "before" as const));
    await expect(node.write("a")).rejects.toMatchObject(UNAVAILABLE);
    node.log.faults.length = 0;
    await node.store.close();
    node.log.isDown = true;
    await expect(node.store.open()).rejects.toMatchObject(UNAVAILABLE);
    node.log.isDown = false;
    await node.store.probe();
    await node.store.open();
    expect(await contents(node.store)).toEqual({ newest: "a", "w/a": "a" });
  });

  test("that was stored without an answer, and cannot be applied, does not keep the store from being opened again", async () => {
    const node = new Node(new MemoryShardLog());
    await node.store.open();
    node.log.faults.push("lost", ...Array.from({ length: MANY }, () => "before" as const));
    await expect(node.write("a")).rejects.toMatchObject(UNAVAILABLE);
    node.log.faults.length = 0;
    node.inner.failsNext = true;
    await expect(node.store.probe()).rejects.toMatchObject(UNAVAILABLE);
    node.inner.failsNext = true;
    await node.store.probe();
    node.inner.failsNext = false;
    await node.store.close();
    await node.store.open();
    expect(await contents(node.store)).toEqual({ newest: "a", "w/a": "a" });
  });

  test("ends when the store is closed, without waiting for the end of its patience", async () => {
    const node = new Node(new MemoryShardLog());
    await node.store.open();
    node.log.isDown = true;
    const written = node.write("a").catch((error: unknown) => error);
    await node.store.close();
    expect(await written).toMatchObject(UNAVAILABLE);
  });
});

describe("another owner", () => {
  test("takes over what was acknowledged, and the former one is refused from then on, also after it is opened again", async () => {
    const log = new MemoryShardLog();
    const [former, next] = [new Node(log), new Node(log)];
    await former.restart();
    await former.store.open();
    await former.write("a");
    await next.restart();
    await next.store.open();
    await expect(former.write("b")).rejects.toMatchObject(FENCED);
    await expect(former.write("b")).rejects.toMatchObject(FENCED);
    await former.store.close();
    await expect(former.store.open()).rejects.toMatchObject(FENCED);
    expect(former.fenced).toBe(1);
    await next.write("c");
    expect(await logged(log)).toEqual(["a", "c"]);
    expect(await contents(next.store)).toEqual({ newest: "c", "w/a": "a", "w/c": "c" });
  });

  test("that gets its epoch between the append of the former one and its answer has that append", async () => {
    const log = new MemoryShardLog();
    const [next, former] = [new Node(log), new Node(log)];
    await former.store.open();
    former.log.faults.push("lost");
    former.log.whenLost = async () => {
      await next.restart();
      await next.store.open();
    };
    await former.write("a");
    expect(await contents(next.store)).toEqual({ newest: "a", "w/a": "a" });
    await expect(former.write("b")).rejects.toMatchObject(FENCED);
  });
});

describe("a log that has lost entries", () => {
  test.each([
    ["is shorter than what the database has", 0],
    ["has another entry where the database ends", 1],
  ])("and %s is refused", async (_, more) => {
    const node = new Node(new MemoryShardLog());
    await node.store.open();
    await node.write("a");
    await node.store.close();

    const older = new MemoryShardLog();
    for (let i = 0; i < 5; i++) older.newEpoch(SHARD);
    if (more > 0) for (let seq = 1; seq <= 3; seq++) await older.append(SHARD, seq, 5, Buffer.from([0x90]));
    const deps = {
      clock: { now: () => 0, mono: () => 0 },
      scheduler: { soon: () => {}, after: () => () => {} },
      random: { bytes: (count: number) => new Uint8Array(count), float: () => 0 },
    };
    const store = new ReplicatedKeyValueStore(node.inner, older, { shard: SHARD, epoch: 5 }, deps);
    await expect(store.open()).rejects.toMatchObject({ code: "journal.damaged" });
  });
});

describe("a store whose process does not own the shard yet", () => {
  /** A store that follows the log of another node, and gets the shard when told. */
  function following(shared: MemoryShardLog, log: ShardLog = shared) {
    const inner = new FragileStore();
    let own: (epoch: number) => void = () => undefined;
    const epoch = new Promise<number>((resolve) => (own = resolve));
    let caughtUp = 0;
    const store = new ReplicatedKeyValueStore(
      inner,
      log,
      { shard: SHARD, epoch },
      {
        clock: { now: () => 0, mono: () => 0 },
        scheduler: {
          soon: (task) => void setImmediate(task),
          after: (_, task) => {
            const timer = setImmediate(task);
            return () => clearImmediate(timer);
          },
        },
        random: { bytes: (count) => new Uint8Array(count), float: () => 0.5 },
        onCaughtUp: () => caughtUp++,
      },
    );
    return { inner, store, own: () => own(shared.newEpoch(SHARD)), caughtUp: () => caughtUp };
  }

  test("applies what the owner appends, appends nothing, and takes the shard over when it owns it", async () => {
    const log = new MemoryShardLog();
    const owner = new Node(log);
    await owner.store.open();
    await owner.write("a");
    const next = following(log);
    const opened = next.store.open();
    await expect.poll(() => next.caughtUp()).toBeGreaterThan(0);
    await owner.write("b");
    await expect.poll(() => contents(next.inner)).toEqual({ newest: "b", "w/a": "a", "w/b": "b" });
    await owner.write("c");
    const before = await log.last(SHARD);
    next.own();
    await opened;
    expect(await log.last(SHARD)).toBe(before + 1);
    await next.store.batch([{ key: "w/d", value: Buffer.from("d") }]);
    expect(await contents(next.store)).toEqual({
      newest: "c",
      "w/a": "a",
      "w/b": "b",
      "w/c": "c",
      "w/d": "d",
    });
    await expect(owner.write("e")).rejects.toMatchObject(FENCED);
    expect(await logged(log)).toEqual(["a", "b", "c", "d"]);
  });

  test("cannot be opened while the log does not answer", async () => {
    const shared = new MemoryShardLog();
    const log = new FaultyShardLog(shared);
    log.isDown = true;
    const next = following(shared, log);
    await expect(next.store.open()).rejects.toMatchObject(UNAVAILABLE);
    expect(next.caughtUp()).toBe(0);
  });
});

type Step =
  | { readonly kind: "write"; readonly node: number; readonly faults: readonly AppendFault[] }
  | { readonly kind: "reopen"; readonly node: number; readonly faults: readonly AppendFault[] }
  | { readonly kind: "take"; readonly node: number; readonly lost: number }
  | { readonly kind: "fail-apply"; readonly node: number }
  | { readonly kind: "deliver"; readonly node: number };

const node = fc.nat({ max: 1 });
const faults = fc.oneof(
  fc.array(fc.constantFrom<AppendFault>("none", "before", "lost", "late"), { maxLength: 4 }),
  fc
    .tuple(
      fc.constantFrom<AppendFault>("before", "lost", "late"),
      fc.constantFrom<AppendFault>("before", "late"),
    )
    .map(([first, others]) => [first, ...Array.from({ length: MANY }, () => others)]),
);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("write" as const), node, faults }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("reopen" as const), node, faults }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("take" as const), node, lost: fc.nat({ max: 3 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("fail-apply" as const), node }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("deliver" as const), node }) },
);

describe("two nodes, with faults", () => {
  test.each([
    ["a log that checks epochs", true],
    ["positions alone", false],
  ])("lose nothing, store nothing twice, and never write at the same time: with %s", async (_, isChecked) => {
    const lost: AppendFault[] = ["lost", ...Array.from({ length: MANY }, () => "before" as const)];
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const log = new MemoryShardLog(isChecked);
        const nodes = [new Node(log), new Node(log)];
        const isOpen = [false, false];
        const acknowledged: string[] = [];
        /** Batches that failed, and whether the log had them when their node had opened its store again. */
        const failed = nodes.map(() => new Map<string, boolean | undefined>());
        let owner = 1;
        let id = 0;

        const opened = async (index: number): Promise<void> => {
          const known = nodes[index] as Node;
          isOpen[index] = await known.store.open().then(
            () => true,
            () => false,
          );
          if (!isOpen[index]) return;
          if (!isChecked) owner = index;
          const all = await logged(log);
          for (const [one, was] of failed[index] ?? []) {
            if (was === undefined) failed[index]?.set(one, all.includes(one));
          }
          expect(Object.keys(await contents(known.store)).toSorted()).toEqual(
            [...all.map((one) => `w/${one}`), ...(all.length > 0 ? ["newest"] : [])].toSorted(),
          );
        };

        for (const next of steps) {
          const one = nodes[next.node] as Node;
          one.log.faults.length = 0;
          switch (next.kind) {
            case "write": {
              one.log.faults.push(...next.faults);
              const name = String(id++);
              try {
                await one.write(name);
                acknowledged.push(name);
                expect(next.node).toBe(owner);
                expect(await one.store.get("newest")).toEqual(Buffer.from(name));
              } catch (error) {
                if (!(error instanceof ServiceError)) throw error;
                failed[next.node]?.set(name, undefined);
              }
              break;
            }
            case "reopen": {
              one.log.faults.push(...next.faults);
              await one.store.close();
              // The other node may have taken the shard over by an open that failed: its entry was stored, the answer was lost.
              const isSuperseded = (await log.read(SHARD, 1, Number.MAX_SAFE_INTEGER)).some(
                ({ epoch }) => epoch > one.epoch,
              );
              const isCertain =
                next.node === owner && next.faults.length === 0 && !one.inner.failsNext && !isSuperseded;
              await opened(next.node);
              if (isCertain) expect(isOpen[next.node]).toBe(true);
              break;
            }
            case "take": {
              if (isOpen[next.node] === true) await one.store.close();
              await one.restart(next.lost);
              if (isChecked) owner = next.node;
              await opened(next.node);
              break;
            }
            case "fail-apply":
              one.inner.failsNext = true;
              break;
            case "deliver":
              await one.log.deliver();
              break;
          }
        }

        const last = new Node(log);
        await last.store.open();
        for (const each of nodes) await each.log.deliver();
        const all = await logged(log);
        expect(new Set(all).size).toBe(all.length);
        expect(all.filter((one) => acknowledged.includes(one))).toEqual(acknowledged);
        for (const ends of failed) {
          for (const [one, was] of ends)
            if (was !== undefined) expect([one, all.includes(one)]).toEqual([one, was]);
        }
        const found = await contents(last.store);
        expect(Object.keys(found).filter((key) => key !== "newest")).toEqual(
          all.map((one) => `w/${one}`).toSorted(),
        );
        expect(found["newest"]).toBe(all.at(-1));
      }),
      {
        numRuns: 300,
        // An open that fails after its entry was stored.
        examples: [
          [
            [
              { kind: "reopen", node: 0, faults: [] },
              { kind: "reopen", node: 1, faults: lost },
              { kind: "reopen", node: 0, faults: [] },
            ],
          ],
        ],
      },
    );
  });
});
