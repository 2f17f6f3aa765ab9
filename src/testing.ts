/**
 * Contract tests for an adapter that connects Heddle to another database: as its storage (`KeyValueStore`), or for clusters. Each contract is
 * a list of checks of one port (an interface that the adapter implements), and works with any test runner:
 *
 *     for (const { title, run } of keyValueStoreContract) test(title, async () => run(await makeHarness()));
 */
export type { ContractCheck } from "./contracts/contract.ts";
export { keyValueStoreContract, type KeyValueStoreHarness } from "./contracts/key-value-store-contract.ts";
export { membershipContract, type MembershipHarness } from "./contracts/membership-contract.ts";
export { shardLogContract, type ShardLogHarness } from "./contracts/shard-log-contract.ts";
export { shardSnapshotsContract, type ShardSnapshotsHarness } from "./contracts/shard-snapshots-contract.ts";
export type { KeyValueEntry, KeyValueStore, ScanRange, WriteOperation } from "./ports/key-value-store.ts";
export type { ClusterMember, ClusterNode, ClusterView, Membership, ShardLease } from "./ports/membership.ts";
export type { ShardSnapshot, ShardSnapshots } from "./ports/shard-snapshots.ts";
export type { LogEntry, LogExtent, ShardLog } from "./ports/shard-log.ts";
export { ServiceError, type ErrorCode } from "./model/errors.ts";
