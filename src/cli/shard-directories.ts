import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ServiceError } from "../model/errors.ts";

const countFile = (data: string): string => join(data, "shards", "count");

/** The data directory of a shard. */
export const shardDirectory = (data: string, shard: number): string => join(data, "shards", String(shard));

/** Into how many shards a data directory is divided; undefined if it is not. */
function storedShardCount(data: string): number | undefined {
  return existsSync(countFile(data)) ? Number(readFileSync(countFile(data), "utf8")) : undefined;
}

/** The directories with databases in a data directory: that of each shard, or the directory itself. */
export function databaseDirectories(data: string): readonly string[] {
  const count = storedShardCount(data);
  return count === undefined
    ? [data]
    : Array.from({ length: count }, (_, shard) => shardDirectory(data, shard));
}

/** Makes a directory a data directory that is divided into as many shards as another one. */
export function copyShardCount(data: string, target: string): void {
  if (existsSync(countFile(data))) copyFileSync(countFile(data), countFile(target));
}

/**
 * Divides a new data directory into `count` shards, for good: what is stored in a shard is found by the number of all of them. Without `count`,
 * the data is that of one process.
 * @throws ServiceError `config.invalid` if the directory has data that is divided otherwise
 */
export function prepareShards(data: string, count: number | undefined): void {
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
