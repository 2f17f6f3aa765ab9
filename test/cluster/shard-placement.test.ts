import { expect, test } from "vitest";
import { followedShards, preferredOwner } from "../../src/cluster/shard-placement.ts";
import { ShardLeases } from "../../src/cluster/shard-leases.ts";
import { silentLogger } from "../../src/platform/log.ts";
import { MemoryMembership } from "../../src/replication/memory-membership.ts";
import { MemoryShardLog } from "../../src/replication/memory-shard-log.ts";
import { SimulatedClock } from "../simulation/clock.ts";

const LEASE_MS = 3_000;
const STEP_MS = LEASE_MS / 30;
const SHARDS = 16;

const member = (name: string) => ({ id: `${name}/1`, address: "", isDraining: false });
const preferences = (...names: readonly string[]) =>
  Array.from({ length: SHARDS }, (_, shard) => preferredOwner(shard, names.map(member))?.id);

/** A cluster whose nodes renew at every step, as they do while shards move. */
function cluster() {
  const clock = new SimulatedClock();
  const membership = new MemoryMembership(new MemoryShardLog(), clock, LEASE_MS);
  const living = new Map<string, ShardLeases>();
  /** Each shard that a node has taken, with the time. */
  const taken: { readonly shard: number; readonly node: string; readonly at: number }[] = [];
  /** The most shards that had no owner at once. */
  let mostFree = 0;
  const node = (id: string): ShardLeases =>
    new ShardLeases({
      membership,
      shards: SHARDS,
      leaseMs: LEASE_MS,
      clock,
      scheduler: { soon: () => undefined, after: () => () => undefined },
      logger: silentLogger,
      node: () => ({ id, address: "" }),
      canTakeShards: ({ isDraining }) => !isDraining,
      isServed: () => true,
      isPrepared: () => true,
      prepare: () => undefined,
      release: async () => undefined,
      acquired: ({ shard }) => void taken.push({ shard, node: id, at: clock.mono() }),
      lost: () => undefined,
      renewed: () => undefined,
    });
  const ownersNow = async () => (await membership.view()).owners.map((one) => one.node);
  return {
    membership,
    taken,
    owners: ownersNow,
    async join(id: string): Promise<void> {
      const leases = living.get(id) ?? node(id);
      living.set(id, leases);
      await leases.start();
    },
    /** Stops renewing a node, as a crash or a pause does. Returns what it goes on with. */
    pause(id: string): () => void {
      const paused = living.get(id) as ShardLeases;
      living.delete(id);
      return () => void living.set(id, paused);
    },
    async pass(leases: number): Promise<void> {
      mostFree = 0;
      for (let step = 0; step < leases * 30; step++) {
        clock.advance(STEP_MS);
        // oxlint-disable-next-line no-await-in-loop -- in order
        for (const leases of living.values()) await leases.renewNow();
        // oxlint-disable-next-line no-await-in-loop -- moves that began end
        await new Promise((resolve) => setImmediate(resolve));
        // oxlint-disable-next-line no-await-in-loop -- in order
        mostFree = Math.max(mostFree, SHARDS - (await ownersNow()).length);
      }
    },
    get mostFree() {
      return mostFree;
    },
  };
}

test("rendezvous hashing divides shards, and a node that joins only takes some of the others", () => {
  const [two, three] = [preferences("a", "b"), preferences("a", "b", "c")];
  for (const name of ["a", "b", "c"])
    expect(three.filter((one) => one === `${name}/1`).length).toBeGreaterThanOrEqual(SHARDS / 8);
  for (const [shard, owner] of three.entries()) if (owner !== "c/1") expect(owner).toBe(two[shard]);
  expect(preferences("b", "a", "c")).toEqual(preferences("c", "b", "a"));
  expect(preferredOwner(0, [])).toBeUndefined();
});

test("names that differ in their last character only have different shards", () => {
  const names = ["a", "b"].map((last) => `${"n".repeat(32)}${last}`);
  expect(new Set(preferences(...names)).size).toBe(2);
});

test("a node that joins gets its shares one by one, after three leases, and then nothing moves any more", async () => {
  const { join, pass, taken, owners, ...rest } = cluster();
  await join("a/1");
  await pass(3);
  await join("b/1");
  await pass(2.9);
  expect(new Set(await owners())).toEqual(new Set(["a/1"]));
  const before = taken.length;
  await pass(8);
  expect(await owners()).toEqual(preferences("a", "b"));
  const moved = taken.slice(before);
  expect(moved.length).toBe(preferences("a", "b").filter((one) => one === "b/1").length);
  expect(new Set(moved.map(({ at }) => at)).size).toBe(moved.length);
  await join("c/1");
  await pass(10);
  expect(await owners()).toEqual(preferences("a", "b", "c"));
  const all = taken.length;
  await pass(20);
  expect([taken.length, { ...rest }.mostFree]).toEqual([all, 0]);
});

test("the shards of a dead node are divided among the others, and its successor gets them back once", async () => {
  const nodes = cluster();
  for (const id of ["a/1", "b/1", "c/1"])
    // oxlint-disable-next-line no-await-in-loop -- one joins after the other
    await nodes.join(id);
  await nodes.pass(12);
  expect(await nodes.owners()).toEqual(preferences("a", "b", "c"));
  nodes.pause("c/1");
  await nodes.pass(2);
  expect(await nodes.owners()).toEqual(preferences("a", "b"));
  const before = nodes.taken.length;
  await nodes.join("c/2");
  await nodes.pass(12);
  const back = (await nodes.owners()).flatMap((node, shard) => (node === "c/2" ? [shard] : []));
  expect(back).toEqual(preferences("a", "b", "c").flatMap((node, shard) => (node === "c/1" ? [shard] : [])));
  expect(nodes.taken.slice(before).map(({ shard }) => shard)).toEqual(back);
});

test("a node that is paused again and again gets its shards back only after it has lived for three leases", async () => {
  const nodes = cluster();
  await nodes.join("a/1");
  await nodes.join("b/1");
  await nodes.pass(12);
  const count = nodes.taken.length;
  const shares = preferences("a", "b").filter((one) => one === "b/1").length;
  for (let pause = 0; pause < 5; pause++) {
    const goOn = nodes.pause("b/1");
    // oxlint-disable-next-line no-await-in-loop -- in order
    await nodes.pass(1.5);
    goOn();
    // oxlint-disable-next-line no-await-in-loop -- in order
    await nodes.pass(1.5);
  }
  // They were taken over once. Since then, the node has not lived for long enough between two pauses.
  expect(nodes.taken.length).toBe(count + shares);
  await nodes.pass(12);
  expect(await nodes.owners()).toEqual(preferences("a", "b"));
  expect(nodes.taken.length).toBe(count + 2 * shares);
});

test("each shard is followed by the node that would own it without its owner", () => {
  const names = ["a", "b", "c"];
  const nodes = names.map(member);
  const owners = preferences(...names).map((node, shard) => ({ shard, epoch: 1, node: node as string }));
  const isAble = ({ isDraining }: { readonly isDraining: boolean }) => !isDraining;
  const followedBy = (id: string, all = nodes) => followedShards({ nodes: all, owners }, id, isAble);
  for (const { shard, node } of owners) {
    const followers = nodes.filter(({ id }) => followedBy(id).includes(shard)).map(({ id }) => id);
    const rest = nodes.filter(({ id }) => id !== node);
    expect(followers).toEqual([preferredOwner(shard, rest)?.id]);
  }
  // A node that drains takes no shards, so it follows none, and the last other node follows all of its shards.
  const draining = nodes.map((one) => ({ ...one, isDraining: one.id === "c/1" }));
  expect(followedBy("c/1", draining)).toEqual([]);
  const ofDraining = owners.filter(({ node }) => node === "c/1").map(({ shard }) => shard);
  expect([...followedBy("a/1", draining), ...followedBy("b/1", draining)]).toEqual(
    expect.arrayContaining(ofDraining),
  );
});
