import { deepEqual, equal, notEqual, rejects } from "node:assert/strict";
import type { ClusterMember, ClusterNode, ClusterView, Membership, ShardLease } from "../ports/membership.ts";
import type { ShardLog } from "../ports/shard-log.ts";
import { defineContract } from "./contract.ts";

/** The membership of a new cluster with at least three shards: 0, 1 and 2. The checks access it as two different nodes. */
export interface MembershipHarness {
  readonly membership: Membership;
  /** The membership of the same cluster, as another node sees it. */
  readonly other: Membership;
  /** The log of the cluster to which `membership` and `other` belong. */
  readonly log: ShardLog;
  /** The length of a lease in milliseconds. */
  readonly leaseMs: number;
  /** Lets at least `ms` milliseconds pass on the clock that measures leases, and at most a tenth of a lease more. */
  pass(ms: number): Promise<void>;
}

const A: ClusterNode = { id: "a", address: "http://a:2024" };
const B: ClusterNode = { id: "b", address: "http://b:2024" };

const member = (node: ClusterNode): ClusterMember => ({ ...node, isDraining: false });

async function taken(membership: Membership, node: ClusterNode, shard: number): Promise<ShardLease> {
  const epoch = await membership.take(node.id, shard);
  if (epoch === undefined) throw new Error(`shard ${shard} was not given to ${node.id}`);
  return { shard, epoch };
}

const owners = (view: ClusterView): string[] => view.owners.map(({ shard, node }) => `${shard}:${node}`);

/** The contract of every {@link Membership}. */
export const membershipContract = defineContract<MembershipHarness>({
  "a new cluster has no nodes and no owners": async ({ membership }) => {
    deepEqual(await membership.renew(A, []), { nodes: [member(A)], owners: [], kept: [] });
  },

  "a node sees the living nodes and the owners": async ({ membership, other }) => {
    await membership.renew(B, []);
    const first = await taken(membership, B, 2);
    const second = await taken(other, A, 0);
    deepEqual(await other.renew(A, [second]), {
      nodes: [member(A), member(B)],
      owners: [
        { ...second, node: "a" },
        { ...first, node: "b" },
      ],
      kept: [second],
    });
  },

  "a view is what a node sees, and makes no node of the one that looks": async ({ membership, other }) => {
    deepEqual(await membership.view(), { nodes: [], owners: [] });
    await membership.renew(A, []);
    const lease = await taken(membership, A, 1);
    deepEqual(await other.view(), { nodes: [member(A)], owners: [{ ...lease, node: "a" }] });
  },

  "a node can change its address": async ({ membership, other }) => {
    await membership.renew(A, []);
    const moved = { ...A, address: "http://elsewhere:2024" };
    await membership.renew(moved, []);
    deepEqual((await other.renew(B, [])).nodes, [member(moved), member(B)]);
  },

  "a shard that has an owner is not given to another node": async ({ membership, other }) => {
    await membership.renew(A, []);
    await taken(membership, A, 0);
    equal(await other.take("b", 0), undefined);
    notEqual(await other.take("b", 1), undefined);
  },

  "of nodes that ask at once, one gets the shard": async ({ membership, other }) => {
    for (const shard of [0, 1, 2]) {
      const epochs = await Promise.all(
        Array.from({ length: 8 }, (_, i) => (i % 2 === 0 ? membership : other).take(`node${i}`, shard)),
      );
      equal(epochs.filter((epoch) => epoch !== undefined).length, 1);
    }
  },

  "every lease of a shard has a higher epoch": async ({ membership }) => {
    const first = await taken(membership, A, 0);
    const second = await taken(membership, A, 0);
    await membership.give("a", second);
    const third = await taken(membership, B, 0);
    equal(first.epoch < second.epoch && second.epoch < third.epoch, true);
  },

  "a new epoch stops the appends of the one before": async ({ membership, other, log, leaseMs, pass }) => {
    const first = await taken(membership, A, 0);
    await log.append(0, 1, first.epoch, new Uint8Array(1));
    await pass(leaseMs);
    const second = await taken(other, B, 0);
    await rejects(log.append(0, 2, first.epoch, new Uint8Array(1)), { code: "log.fenced" });
    await log.append(0, 2, second.epoch, new Uint8Array(1));
  },

  "a lease ends by itself, and then the shard can be taken": async ({ membership, other, leaseMs, pass }) => {
    const former = await taken(membership, A, 0);
    await pass(leaseMs / 2);
    equal(await other.take("b", 0), undefined);
    await pass(leaseMs / 2);
    const next = await taken(other, B, 0);
    deepEqual((await membership.renew(A, [former])).kept, []);
    deepEqual((await other.renew(B, [next])).kept, [next]);
  },

  "renewing extends all leases of a node": async ({ membership, other, leaseMs, pass }) => {
    const leases = [await taken(membership, A, 0), await taken(membership, A, 1)];
    for (let i = 0; i < 4; i++) {
      await pass(leaseMs / 2);
      deepEqual((await membership.renew(A, leases)).kept, leases);
      for (const { shard } of leases) equal(await other.take("b", shard), undefined);
    }
  },

  "only the leases that are named are extended": async ({ membership, other, leaseMs, pass }) => {
    const [first] = [await taken(membership, A, 0), await taken(membership, A, 1)];
    await pass(leaseMs / 2);
    await membership.renew(A, [first]);
    await pass(leaseMs / 2);
    const view = await other.renew(B, []);
    deepEqual(owners(view), ["0:a"]);
  },

  "a lease that has ended is extended if nobody has taken the shard": async ({
    membership,
    other,
    leaseMs,
    pass,
  }) => {
    const lease = await taken(membership, A, 0);
    await pass(2 * leaseMs);
    deepEqual(owners(await other.renew(B, [])), []);
    const view = await membership.renew(A, [lease]);
    deepEqual([view.kept, owners(view)], [[lease], ["0:a"]]);
    equal(await other.take("b", 0), undefined);
  },

  "an earlier lease of the same node is not extended": async ({ membership }) => {
    const first = await taken(membership, A, 0);
    const second = await taken(membership, A, 0);
    deepEqual((await membership.renew(A, [first])).kept, []);
    deepEqual((await membership.renew(A, [second])).kept, [second]);
  },

  "a lease that was given up can be taken at once, and is not extended": async ({ membership, other }) => {
    const former = await taken(membership, A, 0);
    await membership.give("a", former);
    deepEqual(await membership.renew(A, [former]), { nodes: [member(A)], owners: [], kept: [] });
    await taken(other, B, 0);
  },

  "only its owner gives a lease up": async ({ membership, other, leaseMs, pass }) => {
    const former = await taken(membership, A, 0);
    await other.give("b", former);
    equal(await other.take("b", 0), undefined);
    await pass(leaseMs);
    const next = await taken(other, B, 0);
    await membership.give("a", former);
    deepEqual((await other.renew(B, [next])).kept, [next]);
  },

  "a node that does not renew is no longer a living one": async ({ membership, other, leaseMs, pass }) => {
    await membership.renew(A, []);
    await pass(leaseMs / 2);
    deepEqual((await other.renew(B, [])).nodes, [member(A), member(B)]);
    await pass(leaseMs / 2);
    deepEqual((await other.renew(B, [])).nodes, [member(B)]);
    await membership.renew(A, []);
    deepEqual((await other.renew(B, [])).nodes, [member(A), member(B)]);
  },

  "a node drains until it is told otherwise, whatever it renews": async ({ membership, other }) => {
    await membership.renew(A, []);
    await membership.renew(B, []);
    equal(await other.setDraining("a", true), true);
    const draining = [{ ...A, isDraining: true }, member(B)];
    deepEqual((await other.view()).nodes, draining);
    deepEqual((await membership.renew(A, [])).nodes, draining);
    deepEqual((await membership.renew(B, [])).nodes, draining);
    equal(await other.setDraining("a", false), true);
    deepEqual((await membership.renew(A, [])).nodes, [member(A), member(B)]);
  },

  "only a living node can be told to drain, and one that has left begins anew": async ({
    membership,
    other,
    leaseMs,
    pass,
  }) => {
    equal(await other.setDraining("a", true), false);
    await membership.renew(A, []);
    equal(await other.setDraining("a", true), true);
    await membership.leave("a");
    equal(await other.setDraining("a", true), false);
    deepEqual((await membership.renew(A, [])).nodes, [member(A)]);
    await pass(leaseMs);
    equal(await other.setDraining("a", true), false);
  },

  "a node that leaves is gone at once, with its leases": async ({ membership, other }) => {
    await membership.renew(A, []);
    await taken(membership, A, 0);
    await taken(membership, A, 1);
    const lease = await taken(other, B, 2);
    await membership.leave("a");
    deepEqual(await other.renew(B, [lease]), {
      nodes: [member(B)],
      owners: [{ ...lease, node: "b" }],
      kept: [lease],
    });
    await taken(other, B, 0);
  },
});
