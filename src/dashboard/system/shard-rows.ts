import { eventLoopLags } from "./metric-series.ts";
import { type MetricsSample, type ProcessSample, SHARD_UP_METRIC } from "./prometheus-metrics.ts";

/** A shard as a row of the table. */
export interface ShardRow {
  readonly shard: string;
  /**
   * The name of the node that owns the shard or, if the shard does not respond, of the last known one; undefined if
   * there is no cluster.
   */
  readonly node: string | undefined;
  /** The figures of the shard's process; undefined if it does not respond. */
  readonly figures: ShardRowFigures | undefined;
}

interface ShardRowFigures {
  /** When the process started, as an ISO timestamp. */
  readonly since: string;
  readonly running: number;
  readonly queued: number;
  /** Resident memory in bytes. */
  readonly memory: number;
  /** The mean event-loop lag since the previous sample, in seconds; null if it is not known. */
  readonly lag: number | null;
}

/** Returns the shards of a server in its latest sample. Empty if the server has only one process. */
export function shardRowsOf(samples: readonly MetricsSample[]): readonly ShardRow[] {
  const now = samples.at(-1);
  if (now === undefined) return [];
  const before = samples.at(-2);
  return now.samples(SHARD_UP_METRIC).map(({ labels, value }): ShardRow => {
    const shard = labels.get("shard") ?? "";
    const process = processOf(now, shard);
    if (value !== 1 || process === undefined)
      return { shard, node: lastNodeOf(samples, shard), figures: undefined };
    const earlier = before && processOf(before, shard)?.sample;
    return { shard, node: process.node, figures: figuresOf(process.sample, earlier) };
  });
}

function figuresOf(now: MetricsSample, before: MetricsSample | undefined): ShardRowFigures {
  return {
    since: new Date((now.sum("process_start_time_seconds") ?? 0) * 1_000).toISOString(),
    running: now.sum("heddle_runs_running") ?? 0,
    queued: now.sum("heddle_runs_queued") ?? 0,
    memory: now.sum("process_resident_memory_bytes") ?? 0,
    lag: eventLoopLags(before === undefined ? [now] : [before, now]).at(-1) ?? null,
  };
}

const processOf = (sample: MetricsSample, shard: string): ProcessSample | undefined =>
  [...sample.processes.values()].find((process) => process.shard === shard);

function lastNodeOf(samples: readonly MetricsSample[], shard: string): string | undefined {
  const last = samples.findLast((sample) => processOf(sample, shard) !== undefined);
  return last && processOf(last, shard)?.node;
}

/** Returns a sentence for each shard that does not respond. */
export const silentShardWarnings = (rows: readonly ShardRow[]): readonly string[] =>
  rows.flatMap(({ shard, figures }) => (figures === undefined ? [`Shard ${shard} does not answer.`] : []));
