/**
 * Contracts of the ports that an adapter for a cluster's database implements. Each is a list of checks for any test
 * runner:
 *
 *     for (const { title, run } of shardLogContract) test(title, async () => run(await makeHarness()));
 */
export type { ContractCheck } from "./contracts/contract.ts";
export { membershipContract, type MembershipHarness } from "./contracts/membership.ts";
export { shardLogContract, type ShardLogHarness } from "./contracts/shard-log.ts";
export { shardSnapshotsContract, type ShardSnapshotsHarness } from "./contracts/shard-snapshots.ts";
export type { ClusterMember, ClusterNode, ClusterView, Membership, ShardLease } from "./ports/membership.ts";
export type { ShardSnapshot, ShardSnapshots } from "./ports/shard-snapshots.ts";
export type { LogEntry, ShardLog } from "./ports/shard-log.ts";
export { ServiceError, type ErrorCode } from "./model/errors.ts";
