/** The number of characters of a UUID in its canonical form. */
const ID_LENGTH = 36;

/**
 * The number of the shard, below `count`, that has a thread or cron (by its id), a store item (by the first label of
 * its namespace), or an idempotency key. Data is found again by this number, so a new version of this function MUST
 * return the same numbers. Paired ids (`pairedId`) are in one shard: the last digit of an id does not count.
 */
export function shardOf(name: string, count: number): number {
  const length = name.length === ID_LENGTH ? ID_LENGTH - 1 : name.length;
  // FNV-1a. Its low bits depend on the low bits of the characters alone, so the finaliser of MurmurHash3 mixes them.
  let hash = 0x811c9dc5;
  for (let i = 0; i < length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) % count;
}
