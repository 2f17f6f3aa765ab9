import { eventLoopLags } from "./metric-series.ts";
import { type MetricsSample, type ProcessSample, SHARD_UP } from "./prometheus-metrics.ts";

/** What is shown of a shard. */
export interface ShardRow {
  readonly shard: string;
  /** The name of the shard's node, or of its last one if the shard does not answer; undefined outside a cluster. */
  readonly node: string | undefined;
  /** Undefined if the shard's process does not answer. */
  readonly figures: ShardRowFigures | undefined;
}

interface ShardRowFigures {
  /** When the process started. */
  readonly since: string;
  readonly running: number;
  readonly queued: number;
  /** Bytes. */
  readonly memory: number;
  /** Seconds: the mean event-loop lag since the sample before. */
  readonly lag: number | null;
}

/** Returns the shards of a server, by its last samples; none if it has one process. */
export function shardRowsOf(samples: readonly MetricsSample[]): readonly ShardRow[] {
  const now = samples.at(-1);
  if (now === undefined) return [];
  const before = samples.at(-2);
  return now.samples(SHARD_UP).map(({ labels, value }): ShardRow => {
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

/** Says in words which shards do not answer. */
export const silentShardFindings = (rows: readonly ShardRow[]): readonly string[] =>
  rows.flatMap(({ shard, figures }) => (figures === undefined ? [`Shard ${shard} does not answer.`] : []));
