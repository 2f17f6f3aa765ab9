import type { Logger } from "../ports/logger.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { ShardLog } from "../ports/shard-log.ts";
import type { ShardSnapshots } from "../ports/shard-snapshots.ts";
import { type FollowedDatabase, ShardFollower } from "../replication/shard-follower.ts";

interface ShardFollowersDeps {
  readonly log: ShardLog;
  readonly store: ShardSnapshots;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  /** Opens the copy of a shard on this node. Rejects with `storage.locked` while a process serves the shard. */
  open(shard: number): Promise<FollowedDatabase>;
}

/** The shards of other nodes that this node follows. */
export class ShardFollowers {
  readonly #deps: ShardFollowersDeps;
  readonly #followers = new Map<number, ShardFollower>();
  /** The followers that are being stopped. Until they have, their databases are open. */
  readonly #stopping = new Map<number, Promise<void>>();

  constructor(deps: ShardFollowersDeps) {
    this.#deps = deps;
  }

  /** The numbers of the shards. */
  get shards(): readonly number[] {
    return [...this.#followers.keys()];
  }

  /** The position in the log that each shard's copy has; without those that have not followed the log yet. */
  get positions(): { readonly [shard: number]: number } {
    return Object.fromEntries(
      [...this.#followers].flatMap(([shard, { position }]) =>
        position === undefined ? [] : [[shard, position]],
      ),
    );
  }

  /** Follows these shards, and no others. A shard whose follower is still being stopped is left to a later call. */
  follow(shards: readonly number[]): void {
    for (const shard of this.shards) if (!shards.includes(shard)) void this.stop(shard);
    const { open, ...deps } = this.#deps;
    for (const shard of shards) {
      if (this.#followers.has(shard) || this.#stopping.has(shard)) continue;
      this.#followers.set(shard, new ShardFollower({ ...deps, shard, open: () => open(shard) }));
    }
  }

  /** Stops following a shard. Resolves when its copy is closed. Undefined if this node does not follow the shard. */
  stop(shard: number): Promise<void> | undefined {
    const follower = this.#followers.get(shard);
    if (follower === undefined) return this.#stopping.get(shard);
    this.#followers.delete(shard);
    const stopped = follower.stop().finally(() => this.#stopping.delete(shard));
    this.#stopping.set(shard, stopped);
    return stopped;
  }

  /** Follows no shard any more. Resolves when all copies are closed. */
  async close(): Promise<void> {
    this.follow([]);
    await Promise.all(this.#stopping.values());
  }
}
