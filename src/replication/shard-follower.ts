import { ServiceError, withCauses } from "../model/errors.ts";
import type { ReplaceableKeyValueStore } from "../ports/key-value-store.ts";
import type { Logger } from "../ports/logger.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { ShardLog } from "../ports/shard-log.ts";
import type { ShardSnapshots } from "../ports/shard-snapshots.ts";
import { LogApplier } from "./log-applier.ts";
import { restoreIfNeeded } from "./shard-snapshot-restore.ts";

/** Milliseconds between two reads of the log. */
const FOLLOW_MS = 250;
/** Milliseconds before a failed follower begins again. The delay doubles with each failure, up to LONGEST_DELAY_MS. */
const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 60_000;

/** An open database that a follower fills. */
export interface FollowedDatabase {
  readonly kv: ReplaceableKeyValueStore;
  close(): Promise<void>;
}

export interface ShardFollowerDeps {
  readonly shard: number;
  readonly log: ShardLog;
  readonly store: ShardSnapshots;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  /** Opens the database. Rejects with `storage.locked` while another process has it. */
  open(): Promise<FollowedDatabase>;
}

/**
 * Keeps a copy of a shard that another node owns: applies the shard's log to a database of this node. So if that node dies, this node lacks
 * only the last entries of the log. A follower that fails begins again.
 */
export class ShardFollower {
  readonly #deps: ShardFollowerDeps;
  readonly #stop = new AbortController();
  readonly #ended: Promise<void>;
  #wake: () => void = () => undefined;
  #position: number | undefined;
  #isFailing = false;

  constructor(deps: ShardFollowerDeps) {
    this.#deps = deps;
    this.#ended = this.#run();
  }

  /** The position of the last log entry that the database has; undefined until it has followed the log for the first time. */
  get position(): number | undefined {
    return this.#position;
  }

  /** Stops following. Resolves when the database is closed. */
  stop(): Promise<void> {
    this.#stop.abort();
    this.#wake();
    return this.#ended;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    for (let delay = FIRST_DELAY_MS; !signal.aborted; delay = Math.min(2 * delay, LONGEST_DELAY_MS)) {
      try {
        await this.#follow();
      } catch (cause) {
        if (!signal.aborted) this.#failed(cause);
      }
      if (!signal.aborted) await this.#pause(delay);
    }
  }

  async #follow(): Promise<void> {
    const { shard, log, store, logger } = this.#deps;
    const { signal } = this.#stop;
    const database = await this.#deps.open();
    try {
      const applier = new LogApplier(database.kv, log, shard);
      await applier.readPosition();
      const onProgress = (): void => signal.throwIfAborted();
      await restoreIfNeeded(database.kv, applier, { shard, log, store, logger, onProgress });
      while (!signal.aborted) {
        await applier.follow(onProgress);
        this.#position = applier.applied;
        this.#isFailing = false;
        await this.#pause(FOLLOW_MS);
      }
    } finally {
      await database.close();
    }
  }

  #failed(cause: unknown): void {
    const isLocked = cause instanceof ServiceError && cause.code === "storage.locked";
    if (isLocked || this.#isFailing) return;
    this.#isFailing = true;
    const { logger, shard } = this.#deps;
    logger.warn("a shard of another node cannot be followed; it is tried again", {
      shard,
      error: withCauses(cause),
    });
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#deps.scheduler.after(ms, resolve, true);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
  }
}
