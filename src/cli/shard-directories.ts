import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ServiceError } from "../model/errors.ts";

const countFile = (data: string): string => join(data, "shards", "count");

/** The file with the id of the cluster to which a data directory belongs. */
const clusterFile = (data: string): string => join(data, "cluster");

/** The data directory of a shard. */
export const shardDirectory = (data: string, shard: number): string => join(data, "shards", String(shard));

/** The number of shards into which a data directory is divided; undefined if it is not divided. */
function storedShardCount(data: string): number | undefined {
  return existsSync(countFile(data)) ? Number(readFileSync(countFile(data), "utf8")) : undefined;
}

/** The directories of all databases in a data directory: one for each shard, or `data` itself if it is not divided into shards. */
export function databaseDirectories(data: string): readonly string[] {
  refuseClusterData(data);
  const count = storedShardCount(data);
  return count === undefined
    ? [data]
    : Array.from({ length: count }, (_, shard) => shardDirectory(data, shard));
}

/**
 * Copies the file with the number of shards from the data directory `data` to its copy `target`. Does nothing if `data` is not divided into
 * shards.
 */
export function copyShardCount(data: string, target: string): void {
  if (existsSync(countFile(data))) copyFileSync(countFile(data), countFile(target));
}

/**
 * Divides a new data directory into `count` shards. The number can never change, because the shard of a thread is computed from it. If
 * `count` is undefined, the directory is not divided: one process serves it.
 * @throws ServiceError `config.invalid` if the directory has data that is divided into another number of shards, or not divided
 */
export function prepareShards(data: string, count: number | undefined): void {
  refuseClusterData(data);
  const stored = storedShardCount(data);
  if (stored === count) return;
  if (stored !== undefined) {
    const asked = count === undefined ? "" : `, and cannot be served as ${count}`;
    throw new ServiceError(
      "config.invalid",
      `The data in ${data} is divided into ${stored} shards${asked}: start with --shards ${stored}`,
    );
  }
  if (existsSync(join(data, "level"))) {
    throw new ServiceError(
      "config.invalid",
      `The data in ${data} is not divided into shards; start without --shards, or name a new directory with --data`,
    );
  }
  mkdirSync(join(data, "shards"), { recursive: true });
  writeFileSync(countFile(data), `${count}\n`);
}

/**
 * Returns the id of the cluster to which a data directory belongs; undefined if the directory has no data.
 * @throws ServiceError `config.invalid` if the directory has data of a server without a cluster
 */
export function storedClusterOf(data: string): string | undefined {
  if (existsSync(clusterFile(data))) return readFileSync(clusterFile(data), "utf8").trim();
  if (!existsSync(join(data, "level")) && !existsSync(join(data, "shards"))) return undefined;
  throw new ServiceError(
    "config.invalid",
    `The data in ${data} is of a server without a cluster, and cannot become that of a node; name another directory with --data`,
  );
}

/**
 * Marks a new data directory as belonging to a cluster, or checks that it belongs to this cluster.
 * @throws ServiceError `config.invalid` if the directory has data of another cluster or of a server without a cluster
 */
export function prepareClusterData(data: string, cluster: string): void {
  const stored = storedClusterOf(data);
  if (stored === cluster) return;
  if (stored !== undefined) {
    throw new ServiceError(
      "config.invalid",
      `The data in ${data} is of the cluster ${stored}, and the database has the cluster ${cluster}; name another directory with --data`,
    );
  }
  mkdirSync(data, { recursive: true });
  writeFileSync(clusterFile(data), `${cluster}\n`);
}

/**
 * Throws if the data directory is that of a cluster node. Only a node of the cluster may use it, because its data is only a copy of the
 * data in the cluster's database.
 */
function refuseClusterData(data: string): void {
  if (!existsSync(clusterFile(data))) return;
  throw new ServiceError(
    "config.invalid",
    `The data in ${data} is that of a node of a cluster, a copy of what the cluster's database has: start with --cluster; back up the ` +
      "database instead, and delete the directory if it is damaged",
  );
}
