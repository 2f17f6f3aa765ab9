import type { Membership } from "../ports/membership.ts";
import type { ShardLog } from "../ports/shard-log.ts";
import type { ShardSnapshots } from "../ports/shard-snapshots.ts";
import { openSchema } from "./cluster-schema.ts";
import { PostgresConnections, type PostgresDeps, type PostgresOptions } from "./connections.ts";
import { PostgresMembership } from "./postgres-membership.ts";
import { PostgresShardLog } from "./postgres-shard-log.ts";
import { PostgresShardSnapshots } from "./postgres-shard-snapshots.ts";

export interface ClusterOptions extends PostgresOptions {
  /** The number of shards. It is the same for all nodes, and can never be changed. */
  readonly shards: number;
  /** The schema of the tables, which is created if it is missing. Each cluster of a database has its own. Default: `heddle`. */
  readonly schema?: string;
  /** Milliseconds after which a node loses a shard if it does not renew its lease. Default: 3,000. */
  readonly leaseMs?: number;
}

/** What the nodes of a cluster share, in a PostgreSQL database. */
export interface ClusterDatabase {
  /** A UUID that was made with the tables. */
  readonly id: string;
  readonly log: ShardLog;
  readonly membership: Membership;
  readonly snapshots: ShardSnapshots;
  close(): Promise<void>;
}

const LEASE_MS = 3_000;

/**
 * Opens the database of a cluster, and creates its tables if there are none.
 * @throws ServiceError `config.invalid`, `storage.version`, `storage.unavailable`
 */
export async function openClusterDatabase(
  options: ClusterOptions,
  deps: PostgresDeps,
): Promise<ClusterDatabase> {
  const { schema = "heddle", leaseMs = LEASE_MS } = options;
  const connections = await PostgresConnections.create(options, deps);
  const leaseConnections = await PostgresConnections.create({ ...options, connections: 1 }, deps);
  const snapshotConnections = await PostgresConnections.create({ ...options, connections: 1 }, deps);
  const close = async (): Promise<void> => {
    await Promise.all([connections.close(), leaseConnections.close(), snapshotConnections.close()]);
  };
  try {
    const { id } = await openSchema(connections, schema, options.shards);
    return {
      id,
      log: new PostgresShardLog(connections, schema),
      membership: new PostgresMembership(leaseConnections, schema, leaseMs),
      snapshots: new PostgresShardSnapshots(snapshotConnections, schema),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
