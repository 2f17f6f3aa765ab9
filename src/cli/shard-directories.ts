import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ServiceError } from "../model/errors.ts";

const countFile = (data: string): string => join(data, "shards", "count");

/** The data directory of a shard. */
export const shardDirectory = (data: string, shard: number): string => join(data, "shards", String(shard));

/** The number of shards into which a data directory is divided; undefined if it is not divided. */
function storedShardCount(data: string): number | undefined {
  return existsSync(countFile(data)) ? Number(readFileSync(countFile(data), "utf8")) : undefined;
}

/**
 * Divides a new data directory into `count` shards. The number can never change, because the shard of a record is computed from it. Without
 * `count`, the directory is not divided: one process serves it.
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
