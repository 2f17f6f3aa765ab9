import { ServiceError } from "../model/errors.ts";
import type { PostgresConnections } from "./postgres-connections.ts";

/** The version of the tables. Tables of version 1, which do not store when a snapshot was made, are upgraded. */
const FORMAT = 2;
/** The number of shards of a new cluster if no number is given. */
const DEFAULT_SHARDS = 4;
/** The oldest accepted version of PostgreSQL, 14, as in `server_version_num`. */
const OLDEST_VERSION = 140_000;
/** The key of the advisory lock that is held while tables are created: `heddle` in ASCII. */
const CREATION_LOCK = 0x686564646c65;

/** The id and the number of shards of a cluster, as stored in its database. */
export interface ClusterIdentity {
  /** A UUID that was created together with the tables. */
  readonly id: string;
  readonly shards: number;
}

/** Quotes a name, so that it can be used as an identifier in SQL. */
export const quoteName = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/**
 * Creates the tables of a cluster if they are missing. Checks existing tables, and upgrades those of version 1. Several nodes may call this
 * at the same time.
 * @param options `shards`: the number of shards. Absent: the number of the existing cluster, or 4 for a new cluster. `storedCluster`: the
 * cluster whose data the node has; if there are no tables, none are created
 * @throws ServiceError `config.invalid` if the cluster has another number of shards, or PostgreSQL is too old; `storage.version` for tables
 * of another version; `storage.unavailable`
 */
export async function openOrCreateClusterSchema(
  connections: PostgresConnections,
  schema: string,
  { shards, storedCluster }: { readonly shards?: number; readonly storedCluster?: string },
): Promise<ClusterIdentity> {
  if (!(await hasTables(connections, schema))) {
    if (storedCluster !== undefined) {
      throw new ServiceError(
        "config.invalid",
        `The data of this node is of the cluster ${storedCluster}, and the database has no cluster in the schema ${schema}: restore the ` +
          "database, or name another directory with --data",
      );
    }
    await connections.runScript(creation(schema, shards ?? DEFAULT_SHARDS));
  }
  if ((await readCluster(connections, schema)).format === 1) await connections.runScript(upgrade(schema));
  const cluster = await readIdentity(connections, schema);
  if (shards !== undefined && cluster.shards !== shards) {
    throw new ServiceError(
      "config.invalid",
      `The cluster in the schema ${schema} was made with ${cluster.shards} shards, not ${shards}: the number cannot change. ` +
        "For a second cluster in the same database, choose another schema",
    );
  }
  return cluster;
}

/**
 * Checks the tables of an existing cluster, like {@link openOrCreateClusterSchema}, but creates and upgrades nothing.
 * @throws ServiceError also `config.invalid` if the database contains no cluster in this schema
 */
export async function openExistingClusterSchema(
  connections: PostgresConnections,
  schema: string,
): Promise<ClusterIdentity> {
  if (await hasTables(connections, schema)) return readIdentity(connections, schema);
  throw new ServiceError("config.invalid", `The database has no cluster in the schema ${schema}`);
}

async function hasTables(connections: PostgresConnections, schema: string): Promise<boolean> {
  const [server] = await connections.runScript(
    "SELECT current_setting('server_version_num')::int AS version, current_setting('transaction_read_only') AS read_only, " +
      `to_regclass('${`${quoteName(schema)}.cluster`.replaceAll("'", "''")}') IS NOT NULL AS exists`,
  );
  checkPostgresVersion(server?.["version"] as number);
  if (server?.["read_only"] === "on") {
    throw new ServiceError(
      "storage.unavailable",
      "The PostgreSQL database is read-only: it may be a standby",
    );
  }
  return server?.["exists"] === true;
}

async function readCluster(
  connections: PostgresConnections,
  schema: string,
): Promise<ClusterIdentity & { readonly format: number }> {
  const [stored] = await connections.runScript(
    `SELECT id::text, shards, format FROM ${quoteName(schema)}.cluster`,
  );
  return stored as { readonly id: string; readonly shards: number; readonly format: number };
}

async function readIdentity(connections: PostgresConnections, schema: string): Promise<ClusterIdentity> {
  const { id, shards, format } = await readCluster(connections, schema);
  if (format !== FORMAT) {
    throw new ServiceError(
      "storage.version",
      `The tables of the cluster in the schema ${schema} have the version ${format}; this version of Heddle reads ${FORMAT}`,
    );
  }
  return { id, shards };
}

/** @throws ServiceError `config.invalid` if `version`, as in `server_version_num`, is too old */
export function checkPostgresVersion(version: number): void {
  if (version >= OLDEST_VERSION) return;
  throw new ServiceError(
    "config.invalid",
    `The cluster's database is PostgreSQL ${Math.floor(version / 10_000)}; version ${OLDEST_VERSION / 10_000} or later is needed`,
  );
}

/** The SQL that upgrades tables of version 1. Running processes of an older version of Heddle can continue to use the upgraded tables. */
function upgrade(name: string): string {
  const schema = quoteName(name);
  return `
SELECT pg_advisory_xact_lock(${CREATION_LOCK});
ALTER TABLE ${schema}.snapshots ADD COLUMN IF NOT EXISTS made_at timestamptz;
UPDATE ${schema}.cluster SET format = ${FORMAT} WHERE format = 1;
`;
}

/**
 * The SQL that creates the tables. Vacuuming is set to run often, because the rows of `shards` change all the time, and as many entries are
 * deleted from `log` as are appended.
 */
function creation(name: string, shards: number): string {
  const schema = quoteName(name);
  return `
SELECT pg_advisory_xact_lock(${CREATION_LOCK});
CREATE SCHEMA IF NOT EXISTS ${schema};
CREATE TABLE IF NOT EXISTS ${schema}.cluster (
  single boolean PRIMARY KEY DEFAULT true CHECK (single),
  id uuid NOT NULL DEFAULT gen_random_uuid(),
  shards int NOT NULL,
  format int NOT NULL
);
INSERT INTO ${schema}.cluster (shards, format) VALUES (${shards}, ${FORMAT}) ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS ${schema}.shards (
  shard int PRIMARY KEY,
  epoch bigint NOT NULL DEFAULT 0,
  trimmed_below bigint NOT NULL DEFAULT 1,
  owner text,
  lease_until timestamptz
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
INSERT INTO ${schema}.shards (shard)
  SELECT generate_series(0, shards - 1) FROM ${schema}.cluster ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS ${schema}.nodes (
  id text PRIMARY KEY,
  address text NOT NULL,
  is_draining boolean NOT NULL DEFAULT false,
  lives_until timestamptz NOT NULL
);
CREATE TABLE IF NOT EXISTS ${schema}.log (
  shard int NOT NULL,
  seq bigint NOT NULL,
  epoch bigint NOT NULL,
  batch bytea NOT NULL,
  PRIMARY KEY (shard, seq)
) WITH (
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0,
  toast.autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_cost_delay = 0
);
ALTER TABLE ${schema}.log ALTER COLUMN batch SET STORAGE EXTERNAL;
CREATE TABLE IF NOT EXISTS ${schema}.snapshots (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  shard int NOT NULL,
  seq bigint NOT NULL,
  parts int,
  bytes bigint,
  made_at timestamptz
);
CREATE TABLE IF NOT EXISTS ${schema}.snapshot_parts (
  snapshot uuid NOT NULL,
  part int NOT NULL,
  bytes bytea NOT NULL,
  PRIMARY KEY (snapshot, part)
);
ALTER TABLE ${schema}.snapshot_parts ALTER COLUMN bytes SET STORAGE EXTERNAL;
`;
}
