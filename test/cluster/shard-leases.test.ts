import { expect, test } from "vitest";
import { ShardLeases } from "../../src/cluster/shard-leases.ts";
import { ServiceError } from "../../src/model/errors.ts";
import { silentLogger } from "../../src/platform/log.ts";
import type { ClusterView, Membership } from "../../src/ports/membership.ts";
import { MemoryMembership } from "../../src/replication/memory-membership.ts";
import { MemoryShardLog } from "../../src/replication/memory-shard-log.ts";
import { SimulatedClock } from "../simulation/clock.ts";

const LEASE_MS = 3_000;
const SHARDS = 2;

function cluster() {
  const clock = new SimulatedClock();
  const shared = new MemoryMembership(new MemoryShardLog(), clock, LEASE_MS);
  /** The shards for which no node has prepared. */
  const unprepared = new Set<number>();
  /** A node that renews when the test says so. */
  const node = (id: string, membership: Membership = shared) => {
    const events: string[] = [];
    let preparing: number | undefined;
    let last: { readonly view: ClusterView; readonly validUntil: number } | undefined;
    const leases = new ShardLeases({
      membership,
      shards: SHARDS,
      leaseMs: LEASE_MS,
      clock,
      scheduler: { soon: () => undefined, after: () => () => undefined },
      logger: silentLogger,
      node: () => ({ id, address: "" }),
      canTakeShards: ({ isDraining }) => !isDraining,
      isServed: () => true,
      isPrepared: (shard) => !unprepared.has(shard),
      prepare: (shard) => void (preparing = shard),
      release: async (shard) => void events.push(`released ${shard}`),
      acquired: ({ shard, epoch }) => void events.push(`got ${shard} in epoch ${epoch}`),
      lost: (shard) => void events.push(`lost ${shard}`),
      renewed: (view, validUntil) => (last = { view, validUntil }),
    });
    const owners = () => last?.view.owners.map((one) => `${one.shard}: ${one.node}`);
    return {
      leases,
      events,
      owners,
      preparing: () => preparing,
      isValid: () => clock.mono() < (last?.validUntil ?? 0),
    };
  };
  return { clock, shared, node, unprepared };
}

/** Waits until a move that the last renewal began has ended. */
async function settled(leases: ShardLeases): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
  await leases.renewNow();
}

test("a node takes what is free, and another one that whose lease has ended", async () => {
  const { clock, node } = cluster();
  const [a, b] = [node("a"), node("b")];
  await a.leases.start();
  expect(a.events).toEqual(["got 0 in epoch 1", "got 1 in epoch 1"]);
  await b.leases.start();
  expect([b.events, b.owners()]).toEqual([[], ["0: a", "1: a"]]);
  clock.advance(LEASE_MS);
  expect(a.isValid()).toBe(false);
  await b.leases.renewNow();
  expect(b.events).toEqual(["got 0 in epoch 2", "got 1 in epoch 2"]);
  expect(b.owners()).toEqual(["0: b", "1: b"]);
  await a.leases.renewNow();
  expect(a.events.slice(2)).toEqual(["lost 0", "lost 1"]);
});

test("leases that are renewed stay, and are relied on for less than their time", async () => {
  const { clock, node } = cluster();
  const [a, b] = [node("a"), node("b")];
  await a.leases.start();
  for (let i = 0; i < 9; i++) {
    clock.advance(LEASE_MS / 3);
    // oxlint-disable-next-line no-await-in-loop -- in order
    await Promise.all([a.leases.renewNow(), b.leases.renewNow()]);
  }
  expect([a.events.length, b.events.length, a.isValid()]).toEqual([2, 0, true]);
  clock.advance(LEASE_MS - 1);
  expect(a.isValid()).toBe(false);
  await b.leases.renewNow();
  expect(b.events).toEqual([]);
});

test("a shard that was lost is left to others for the time of a lease", async () => {
  const { clock, shared, node } = cluster();
  const a = node("a");
  await a.leases.start();
  clock.advance(LEASE_MS);
  const epoch = (await shared.take("b", 0)) as number;
  await a.leases.renewNow();
  await shared.give("b", { shard: 0, epoch });
  await a.leases.renewNow();
  expect(a.events.slice(2)).toEqual(["lost 0"]);
  clock.advance(LEASE_MS);
  await a.leases.renewNow();
  expect(a.events.slice(3)).toEqual(["got 0 in epoch 3"]);
});

test("a shard is taken anew with a new epoch, but not from another node", async () => {
  const { clock, shared, node } = cluster();
  const a = node("a");
  await a.leases.start();
  expect(await a.leases.retake(0)).toEqual({ shard: 0, epoch: 2 });
  await a.leases.renewNow();
  expect(a.events).toHaveLength(2);
  clock.advance(LEASE_MS);
  await shared.take("b", 1);
  expect(await a.leases.retake(1)).toBeUndefined();
  expect(a.events.slice(2)).toEqual(["lost 1"]);
});

test("a node that drains gives up one shard after the other, and takes none until told otherwise", async () => {
  const { clock, shared, node } = cluster();
  const [a, b] = [node("a"), node("b")];
  await a.leases.start();
  await b.leases.start();
  await shared.setDraining("a", true);
  await a.leases.renewNow();
  await settled(a.leases);
  expect(a.events.slice(2)).toEqual(["released 0"]);
  await a.leases.renewNow();
  expect([a.events.length, b.events]).toEqual([3, []]);
  await b.leases.renewNow();
  await a.leases.renewNow();
  await settled(a.leases);
  await b.leases.renewNow();
  expect(a.events.slice(3)).toEqual(["released 1"]);
  expect(b.events).toEqual(["got 0 in epoch 2", "got 1 in epoch 2"]);
  await b.leases.stop();
  await a.leases.renewNow();
  expect(a.events).toHaveLength(4);
  await shared.setDraining("a", false);
  clock.advance(LEASE_MS);
  await a.leases.renewNow();
  expect(a.events.slice(4)).toEqual(["got 0 in epoch 3", "got 1 in epoch 3"]);
});

test("a node gives up a shard once the next owner has prepared, which it does until it owns the shard", async () => {
  const { shared, node, unprepared } = cluster();
  const [a, b] = [node("a"), node("b")];
  await a.leases.start();
  await b.leases.start();
  unprepared.add(0);
  await shared.setDraining("a", true);
  await a.leases.renewNow();
  await settled(a.leases);
  expect([a.events.slice(2), a.preparing()]).toEqual([[], undefined]);
  await b.leases.renewNow();
  expect(b.preparing()).toBe(0);
  unprepared.delete(0);
  await a.leases.renewNow();
  await settled(a.leases);
  expect(a.events.slice(2)).toEqual(["released 0"]);
  // The shard has no owner for a moment.
  await a.leases.renewNow();
  expect([a.preparing(), b.preparing()]).toEqual([undefined, 0]);
  await b.leases.renewNow();
  expect(b.events).toEqual(["got 0 in epoch 2"]);
  expect(b.preparing()).toBe(1);
});

test("a node ends the preparation for a shard that stays where it is", async () => {
  const { shared, node, unprepared } = cluster();
  const [a, b] = [node("a"), node("b")];
  await a.leases.start();
  await b.leases.start();
  unprepared.add(0);
  await shared.setDraining("a", true);
  await b.leases.renewNow();
  expect(b.preparing()).toBe(0);
  await shared.setDraining("a", false);
  await b.leases.renewNow();
  expect(b.preparing()).toBeUndefined();
});

test("a node that drains keeps its shards while no other could take them", async () => {
  const { shared, node } = cluster();
  const [a, b] = [node("a"), node("b")];
  await a.leases.start();
  await shared.setDraining("a", true);
  await a.leases.renewNow();
  await settled(a.leases);
  await b.leases.start();
  await shared.setDraining("b", true);
  await a.leases.renewNow();
  await settled(a.leases);
  expect(a.events).toHaveLength(2);
  await shared.setDraining("b", false);
  await a.leases.renewNow();
  await settled(a.leases);
  expect(a.events.slice(2)).toEqual(["released 0"]);
});

test("a node that stops drains, and what it leaves behind is free at once", async () => {
  const { node } = cluster();
  const [a, b] = [node("a"), node("b")];
  await a.leases.start();
  await b.leases.start();
  await a.leases.startStopping();
  await settled(a.leases);
  await b.leases.renewNow();
  expect(b.events).toEqual(["got 0 in epoch 2"]);
  await a.leases.stop();
  await b.leases.renewNow();
  expect(b.events.slice(1)).toEqual(["got 1 in epoch 2"]);
});

test("without the database a node does not start; later it goes on trying", async () => {
  const { clock, shared, node } = cluster();
  let isGone = true;
  const renew: Membership["renew"] = async (...renewed) => {
    if (isGone) throw new ServiceError("storage.unavailable", "gone");
    return shared.renew(...renewed);
  };
  const take: Membership["take"] = (...taken) => shared.take(...taken);
  const a = node("a", Object.assign(Object.create(shared) as Membership, { renew, take }));
  await expect(a.leases.start()).rejects.toThrow("gone");
  isGone = false;
  await a.leases.start();
  isGone = true;
  clock.advance(LEASE_MS);
  await a.leases.renewNow();
  expect(a.isValid()).toBe(false);
  isGone = false;
  await a.leases.renewNow();
  expect([a.events.length, a.isValid()]).toEqual([2, true]);
});

test("a node serves the shards that it took before the database stopped answering", async () => {
  const { clock, shared, node } = cluster();
  await shared.take("b", 0);
  await shared.take("b", 1);
  let isGone = false;
  const renew: Membership["renew"] = (...renewed) => shared.renew(...renewed);
  const take: Membership["take"] = async (id, shard) => {
    if (isGone && shard === 1) throw new ServiceError("storage.unavailable", "gone");
    return shared.take(id, shard);
  };
  const a = node("a", Object.assign(Object.create(shared) as Membership, { renew, take }));
  await a.leases.start();
  isGone = true;
  clock.advance(LEASE_MS);
  await a.leases.renewNow();
  expect(a.events).toEqual(["got 0 in epoch 2"]);
  isGone = false;
  await a.leases.renewNow();
  expect(a.events).toEqual(["got 0 in epoch 2", "got 1 in epoch 2"]);
  expect(a.owners()).toEqual(["0: a", "1: a"]);
});
