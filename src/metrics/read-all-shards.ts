import type { ShardMetrics } from "../ports/shard-metrics.ts";

/** The shard and the node of this process, and access to the metrics of the server's other processes. */
export interface MultiProcessMetrics {
  /** The number of the process's shard; undefined if it has none. */
  readonly shard: number | undefined;
  /** The name of the process's node; undefined outside a cluster. */
  readonly node: string | undefined;
  /** Reads the metrics of all other shards, each in its own process. The value of a shard that does not answer in time is undefined. */
  readOthers<T>(read: (metrics: ShardMetrics) => Promise<T>): Promise<AnswersOfShards<T>>;
}

/** The answer of each shard, by its number; undefined if the shard has not answered. */
export type AnswersOfShards<T> = ReadonlyMap<number, T | undefined>;

/** Reads the metrics of all shards. The result is in the order of the shard numbers. `own`: the metrics of this process. */
export async function readAllShards<T>(
  multiProcess: MultiProcessMetrics,
  own: ShardMetrics,
  read: (metrics: ShardMetrics) => Promise<T>,
): Promise<AnswersOfShards<T>> {
  const { shard } = multiProcess;
  const [others, answer] = await Promise.all([
    multiProcess.readOthers(read),
    shard === undefined ? undefined : read(own),
  ]);
  const answers = shard === undefined ? [...others] : [...others, [shard, answer] as const];
  return new Map(answers.toSorted(([a], [b]) => a - b));
}

/** Leaves out the shards that have not answered. */
export const presentAnswers = <T>(answers: AnswersOfShards<T>): readonly T[] =>
  [...answers.values()].filter((answer) => answer !== undefined);
