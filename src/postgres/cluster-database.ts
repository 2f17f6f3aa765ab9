import type { Membership } from "../ports/membership.ts";
import type { ShardLog } from "../ports/shard-log.ts";
import type { ShardSnapshots } from "../ports/shard-snapshots.ts";
import {
  type ClusterIdentity,
  openExistingClusterSchema,
  openOrCreateClusterSchema,
} from "./cluster-schema.ts";
import { PostgresConnections, type PostgresDeps, type PostgresOptions } from "./postgres-connections.ts";
import { PostgresMembership } from "./postgres-membership.ts";
import { PostgresShardLog } from "./postgres-shard-log.ts";
import { PostgresShardSnapshots } from "./postgres-shard-snapshots.ts";

export interface ClusterDatabaseOptions extends PostgresOptions {
  /**
   * The number of shards. It is the same for all nodes of the cluster, and can never be changed. Default: the number of the existing
   * cluster, or 4 for a new cluster.
   */
  readonly shards?: number;
  /**
   * The PostgreSQL schema of the tables, which is created if it is missing. Several clusters in one database need different schemas.
   * Default: `heddle`.
   */
  readonly schema?: string;
  /** The id of the cluster whose data the node has. If the database contains no cluster in the schema, none is made. */
  readonly storedCluster?: string;
  /** Milliseconds after which a node of the cluster loses a shard if it does not renew the lease. Default: 3000. */
  readonly leaseMs?: number;
}

/** The PostgreSQL database that all nodes of a cluster share. It contains the logs and snapshots of the shards, and their leases. */
export interface ClusterDatabase extends ClusterIdentity {
  readonly log: ShardLog;
  readonly membership: Membership;
  readonly snapshots: ShardSnapshots;
  close(): Promise<void>;
}

export const DEFAULT_LEASE_MS = 3_000;

/**
 * Opens the database of a cluster. Creates its tables if there are none, and upgrades tables of an older version.
 * @throws ServiceError `config.invalid`, `storage.version`, `storage.unavailable`
 */
export function openOrCreateClusterDatabase(
  options: ClusterDatabaseOptions,
  deps: PostgresDeps,
): Promise<ClusterDatabase> {
  return open(options, deps, (connections, schema) =>
    openOrCreateClusterSchema(connections, schema, options),
  );
}

/**
 * Opens the database of an existing cluster, like {@link openOrCreateClusterDatabase}, but creates and upgrades no tables.
 * @throws ServiceError also `config.invalid` if the database contains no cluster in this schema
 */
export const openExistingClusterDatabase = (
  options: Omit<ClusterDatabaseOptions, "shards">,
  deps: PostgresDeps,
): Promise<ClusterDatabase> => open(options, deps, openExistingClusterSchema);

async function open(
  options: ClusterDatabaseOptions,
  deps: PostgresDeps,
  identify: (connections: PostgresConnections, schema: string) => Promise<ClusterIdentity>,
): Promise<ClusterDatabase> {
  const { schema = "heddle", leaseMs = DEFAULT_LEASE_MS } = options;
  const connections = await PostgresConnections.create(options, deps);
  const leaseConnections = await PostgresConnections.create({ ...options, connections: 1 }, deps);
  const snapshotConnections = await PostgresConnections.create({ ...options, connections: 1 }, deps);
  const close = async (): Promise<void> => {
    await Promise.all([connections.close(), leaseConnections.close(), snapshotConnections.close()]);
  };
  try {
    return {
      ...(await identify(connections, schema)),
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
