import type { ShardFigures, ShardStatus } from "../ports/shard-metrics.ts";
import { type AnswersOfShards, presentAnswers } from "./read-all-shards.ts";

/**
 * The state of a shard in `/info`. If `up` is false, the shard's process has not answered, and nothing else is known of
 * the shard.
 */
type ShardEntry =
  | ({ readonly shard: number; readonly up: true } & ShardStatus)
  | { readonly shard: number; readonly up: false };

/** The state of a server with several processes. */
export interface MergedStatus {
  /** The sums of the figures of all shards that have answered. */
  readonly totals: ShardFigures;
  readonly shards: readonly ShardEntry[];
}

export function mergeStatuses(answers: AnswersOfShards<ShardStatus>): MergedStatus {
  const present = presentAnswers(answers);
  const sum = (name: keyof ShardFigures): number =>
    present.reduce((total, status) => total + (status[name] ?? 0), 0);
  return {
    totals: {
      runs_running: sum("runs_running"),
      runs_queued: sum("runs_queued"),
      actors_live: sum("actors_live"),
      connections: sum("connections"),
      memory_bytes: sum("memory_bytes"),
      storage_bytes: present.some(({ storage_bytes }) => storage_bytes !== null)
        ? sum("storage_bytes")
        : null,
    },
    shards: Array.from(answers, ([shard, status]) =>
      status === undefined ? { shard, up: false } : { shard, up: true, ...status },
    ),
  };
}
