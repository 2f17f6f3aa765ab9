/** The figures of the last hour: a list for each figure, oldest value first, null where a value is not known. */
export interface MetricsHistoryRecord<Figure extends string = string> {
  readonly interval_seconds: number;
  readonly times: readonly string[];
  readonly figures: { readonly [name in Figure]: readonly (number | null)[] };
}

/** The present figures of a process, as the response of `GET /info` shows them. */
export interface ShardFigures {
  readonly runs_running: number;
  readonly runs_queued: number;
  readonly actors_live: number;
  readonly connections: number;
  /** The resident memory of the process, in bytes. */
  readonly memory_bytes: number;
  /** Null if the size is not known, for example of a storage in memory. */
  readonly storage_bytes: number | null;
}

/** The state of a process that has a shard. */
export interface ShardStatus extends ShardFigures {
  /** The name of the process's node; absent outside a cluster. */
  readonly node?: string;
  readonly pid: number;
  readonly version: string;
  readonly uptime_seconds: number;
}

/** The metrics of one process of a server. Other processes of the server read them to answer for all shards. */
export interface ShardMetrics {
  /** The values of all metrics. Only the Prometheus client reads them, so their type is unknown here. */
  snapshot(): Promise<unknown>;
  history(): Promise<MetricsHistoryRecord>;
  status(): Promise<ShardStatus>;
}
