import type { ShardLog } from "../ports/shard-log.ts";
import { openSchema } from "./cluster-schema.ts";
import { PostgresConnections, type PostgresDeps, type PostgresOptions } from "./connections.ts";
import { PostgresShardLog } from "./postgres-shard-log.ts";

export interface ClusterOptions extends PostgresOptions {
  /** The number of shards: the same for all nodes, and for good. */
  readonly shards: number;
  /** The schema of the tables, which is created if it is missing. Each cluster of a database has its own. Default: `heddle`. */
  readonly schema?: string;
}

/** What the nodes of a cluster share, in a PostgreSQL database. */
export interface ClusterDatabase {
  /** A UUID that was made with the tables. */
  readonly id: string;
  readonly log: ShardLog;
  close(): Promise<void>;
}

/**
 * Opens the database of a cluster, and creates its tables if there are none.
 * @throws ServiceError `config.invalid`, `storage.version`, `storage.unavailable`
 */
export async function openClusterDatabase(
  options: ClusterOptions,
  deps: PostgresDeps,
): Promise<ClusterDatabase> {
  const { schema = "heddle" } = options;
  const connections = await PostgresConnections.create(options, deps);
  try {
    const { id } = await openSchema(connections, schema, options.shards);
    return {
      id,
      log: new PostgresShardLog(connections, schema),
      close: () => connections.close(),
    };
  } catch (error) {
    await connections.close();
    throw error;
  }
}
