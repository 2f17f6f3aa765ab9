import type { ActorMetrics } from "../../actors/run-totals.ts";
import type { TrafficCounts } from "../http/response-counts.ts";
import type { InspectorFeeds } from "../websocket/inspector/inspect-sockets.ts";
import type { OpenSockets } from "../websocket/open-sockets.ts";
import { Exposition } from "../metrics/exposition.ts";
import { mergeHistories } from "../metrics/merged-history.ts";
import { type MergedStatus, mergeStatuses } from "../metrics/merged-status.ts";
import { counter, type MetricFamily, gauge, type MetricSample } from "../metrics/metric-family.ts";
import { cachedFor, sharedWhilePending } from "../metrics/cached-reading.ts";
import { EventLoopLag } from "../metrics/event-loop-lag.ts";
import { type HistoryReading, MetricsHistory } from "../metrics/metrics-history.ts";
import { processMetricFamilies } from "../metrics/process-metric-families.ts";
import { presentAnswers, readAllShards, type MultiProcessMetrics } from "../metrics/read-all-shards.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import type { Outbox } from "../ports/outbox.ts";
import type { ReadProcessMetrics } from "../ports/process-metrics.ts";
import type { ReplicationMetrics } from "../ports/replication-metrics.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { MetricsHistoryRecord, ShardMetrics, ShardStatus } from "../ports/shard-metrics.ts";
import type { Storage } from "../storage/open-storage.ts";
import type { RunLogRegistry } from "../stream/run-log-registry.ts";

/** Webhooks are counted up to this number. A higher number is reported as this number. */
const MAX_WEBHOOKS = 10_000;
/** Milliseconds for which the storage's size is cached, because measuring it reads the data directory. */
const SIZE_CACHE_MS = 15_000;
/** Milliseconds for which the webhook counts are cached, because counting reads the storage. */
const WEBHOOK_CACHE_MS = 2_000;

const ENDS = ["success", "error", "timeout", "interrupted", "rolled_back"] as const;

export interface MetricsDeps {
  readonly about: { readonly version: string; readonly transport: string };
  readonly system: { readonly figures: ActorMetrics };
  readonly storage: Pick<Storage, "stats" | "size" | "damage" | "findings" | "replication">;
  readonly outbox: Pick<Outbox, "count">;
  readonly runLogs: Pick<RunLogRegistry, "counts">;
  readonly traffic: TrafficCounts;
  readonly sockets: Pick<OpenSockets, "open">;
  readonly feeds: Pick<InspectorFeeds, "watching">;
  readonly process: ReadProcessMetrics;
  /** Reads the metrics of the server's other processes. Absent if this process is the whole server. */
  readonly multiProcess?: MultiProcessMetrics;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
}

/** The metrics of the whole server. */
export interface Metrics extends Pick<Exposition, "render"> {
  history(): Promise<MetricsHistoryRecord>;
  /** The status of each shard, and the sums over all shards. Absent if this process is the whole server. */
  readonly status?: () => Promise<MergedStatus>;
  /** The metrics of this process only. */
  readonly own: ShardMetrics;
  /** Starts recording the history of the metrics. */
  start(): void;
  close(): void;
}

/** Creates the server's metrics. The caller MUST close them when the server closes. */
export function createMetrics(deps: MetricsDeps): Metrics {
  const { clock, scheduler, multiProcess } = deps;
  const lag = new EventLoopLag(clock, scheduler);
  const stored = readingsOfStorage(deps);
  const families = [
    ...ofRuns(deps),
    ...ofConnections(deps),
    ...ofStorage(deps, stored),
    ...(deps.storage.replication() === undefined ? [] : ofReplication(deps)),
    ...processMetricFamilies(deps.process, lag),
  ];
  const exposition = new Exposition(families, deps.logger, multiProcess);
  const history = new MetricsHistory({ clock, scheduler, read: historyReader(deps, stored) });
  const own: ShardMetrics = {
    snapshot: () => exposition.snapshot(),
    history: async () => history.toRecord(),
    status: statusReader(deps, stored),
  };
  return {
    render: () => exposition.render(),
    // A reading takes two seconds while a process hangs, so requests that come meanwhile share it.
    history: sharedWhilePending(async () => {
      if (multiProcess === undefined) return own.history();
      return mergeHistories(
        presentAnswers(await readAllShards(multiProcess, own, (metrics) => metrics.history())),
      );
    }),
    ...(multiProcess !== undefined && {
      status: sharedWhilePending(async () =>
        mergeStatuses(await readAllShards(multiProcess, own, (metrics) => metrics.status())),
      ),
    }),
    own,
    start: () => history.start(),
    close() {
      lag.close();
      history.close();
    },
  };
}

/** Functions that read metrics from the storage, with a cache. */
interface StorageReadings {
  readonly size: () => Promise<number | undefined>;
  readonly webhooks: () => Promise<{ readonly pending: number; readonly dead: number }>;
}

const readingsOfStorage = ({ storage, outbox, clock }: MetricsDeps): StorageReadings => ({
  size: cachedFor(SIZE_CACHE_MS, clock, () => storage.size()),
  webhooks: cachedFor(WEBHOOK_CACHE_MS, clock, () => outbox.count(MAX_WEBHOOKS)),
});

/** Creates the function that reads the status of this process, for `/info`. */
function statusReader(deps: MetricsDeps, stored: StorageReadings): ShardMetrics["status"] {
  const { about, system, clock, multiProcess } = deps;
  return async (): Promise<ShardStatus> => {
    const storage = await stored.size().catch(() => undefined);
    const { pid, memory, started } = deps.process();
    const { running, queued, busy, idle } = system.figures;
    return {
      ...(multiProcess?.node !== undefined && { node: multiProcess.node }),
      pid,
      version: about.version,
      uptime_seconds: Math.round(clock.now() / 1_000 - started),
      runs_running: running,
      runs_queued: queued,
      actors_live: busy + idle,
      connections: openConnections(deps),
      memory_bytes: memory.resident,
      storage_bytes: storage ?? null,
    };
  };
}

const openConnections = ({
  traffic,
  sockets,
  feeds,
}: Pick<MetricsDeps, "traffic" | "sockets" | "feeds">): number =>
  traffic.streams + sockets.open + feeds.watching;

/**
 * Creates the function that reads the metrics for one record of the history. It does not wait for a slow storage: the metrics from the
 * storage are the latest that earlier calls have read.
 */
function historyReader(deps: MetricsDeps, stored: StorageReadings): () => HistoryReading {
  const { system, traffic, process } = deps;
  let fromStorage: HistoryReading = {};
  const readStorage = (): void => {
    const take = (reading: HistoryReading) => (fromStorage = { ...fromStorage, ...reading });
    stored.size().then(
      (storage_bytes) => take({ storage_bytes }),
      () => take({ storage_bytes: undefined }),
    );
    stored.webhooks().then(
      ({ pending, dead }) => take({ webhooks_pending: pending, webhooks_dead: dead }),
      () => take({ webhooks_pending: undefined, webhooks_dead: undefined }),
    );
  };
  readStorage();
  let waitsBefore = system.figures.waits.copy();
  return () => {
    const { busy, idle, running, queued, waits, graphs } = system.figures;
    const since = waits.since(waitsBefore);
    waitsBefore = waits.copy();
    const wait = (share: number): number | undefined => {
      const ms = since.quantile(share);
      return ms === undefined ? undefined : ms / 1_000;
    };
    const ended = (...ends: readonly (typeof ENDS)[number][]): number =>
      [...graphs.values()].reduce((sum, tally) => sum + ends.reduce((all, end) => all + tally[end], 0), 0);
    const answers = [...traffic.routes.values(), traffic.unrouted];
    const sum = (counts: readonly number[]): number => counts.reduce((all, count) => all + count, 0);
    const { cpu, memory, loop } = process();
    const known = fromStorage;
    readStorage();
    return {
      runs_ended_per_second: ended(...ENDS),
      runs_failed_per_second: ended("error", "timeout"),
      runs_running: running,
      runs_queued: queued,
      run_wait_p50_seconds: wait(0.5),
      run_wait_p99_seconds: wait(0.99),
      actors_live: busy + idle,
      event_loop_busy_ratio: loop.active,
      cpu_ratio: cpu.user + cpu.system,
      memory_bytes: memory.resident,
      connections: openConnections(deps),
      requests_per_second: sum(answers.map(sum)),
      requests_failed_per_second: sum(answers.map((counts) => counts[5] ?? 0)),
      ...known,
    };
  };
}

function ofRuns({ system, runLogs }: MetricsDeps): readonly MetricFamily[] {
  const byGraph = (samples: (graph: string, tally: GraphTally) => readonly MetricSample[]) => () =>
    [...system.figures.graphs].flatMap(([graph, tally]) => samples(graph, tally));
  const started = byGraph((graph, { started }) => [[{ graph }, started]]);
  const ended = byGraph((graph, tally) => ENDS.map((status) => [{ graph, status }, tally[status]]));
  const actors = () => {
    const { busy, idle, waking } = system.figures;
    return byLabel("state", { busy, idle, waking });
  };
  const of = (figure: Figure) => () => system.figures[figure];
  return [
    counter(
      "heddle_runs_started_total",
      "Runs that were started, or taken up again after a stop",
      started,
      "graph",
    ),
    counter("heddle_runs_ended_total", `Runs that have ended, by how; ${ENDED}`, ended, "graph", "status"),
    counter("heddle_runs_withdrawn_total", "Runs that were ended before they started", of("withdrawn")),
    gauge("heddle_runs_running", "Runs in progress", of("running")),
    gauge(
      "heddle_runs_queued",
      "Runs that wait to start, behind others of their thread or for a slot",
      of("queued"),
    ),
    gauge(
      "heddle_runs_waiting_for_slot",
      `Threads whose next run waits for nothing but ${SLOT}`,
      of("waiting"),
    ),
    gauge(
      "heddle_runs_state_bytes",
      "Bytes of the large states and inputs of runs in progress",
      of("stateBytes"),
    ),
    gauge("heddle_actors", `Live actors of threads: ${STATES}`, actors, "state"),
    counter("heddle_actors_woken_total", "Actors that were made of their thread's record", of("woken")),
    counter("heddle_actors_passivated_total", "Actors that were let go after a rest", of("passivated")),
    gauge("heddle_stream_readers", "Readers of live runs' events", () => runLogs.counts.readers),
  ];
}

/** The members of `ActorMetrics` that are numbers and have a metric of their own. */
type Figure = "withdrawn" | "running" | "queued" | "waiting" | "stateBytes" | "woken" | "passivated";

const ENDED = "one that pauses for an answer is a success, one that was taken back is rolled_back";
const SLOT = "a slot (runs.max_concurrent and the like) or memory (runs.max_state_bytes)";
const STATES = "with runs to do, at rest, or being read from the storage";

type GraphTally = ActorMetrics["graphs"] extends ReadonlyMap<string, infer T> ? T : never;

function ofConnections({ about, traffic, sockets, feeds }: MetricsDeps): readonly MetricFamily[] {
  const answered = (route: string, method: string, answers: readonly number[]): readonly MetricSample[] =>
    answers.flatMap((count, digit) =>
      count === 0 ? [] : [[{ route, method, status: `${digit}xx` }, count] as const],
    );
  const requests = () => [
    ...[...traffic.routes].flatMap(([{ path, method }, answers]) => answered(path, method, answers)),
    ...answered("", "", traffic.unrouted),
  ];
  const open = () =>
    byLabel("kind", { sse: traffic.streams, websocket: sockets.open, inspect: feeds.watching });
  const server = (): readonly MetricSample[] => [[{ ...about }, 1]];
  return [
    gauge(
      "heddle_info",
      "Always 1; the server tells what it is by the labels",
      server,
      "version",
      "transport",
    ),
    counter(
      "heddle_http_requests_total",
      `Requests that were answered, ${ANSWERED}`,
      requests,
      "route",
      "method",
      "status",
    ),
    gauge("heddle_connections", `Streams that are open: ${STREAMS}`, open, "kind"),
  ];
}

const ANSWERED =
  "by route and class of status; without a route where none was found, the client was not let in, or the project's own application answered";
const STREAMS = "server-sent events, WebSockets, WebSockets that watch actors";

function ofStorage({ storage }: MetricsDeps, { size, webhooks }: StorageReadings): readonly MetricFamily[] {
  const webhookCounts = async () => {
    const { pending, dead } = await webhooks();
    return byLabel("status", { pending, dead });
  };
  const of = (figure: "batches" | "synced" | "ops" | "bytes") => () => storage.stats()[figure];
  return [
    gauge(
      "heddle_storage_size_bytes",
      "Bytes of the database's files; looked at every 15 seconds at most",
      size,
    ),
    counter("heddle_storage_batches_total", "Batches of writes that were stored", of("batches")),
    counter(
      "heddle_storage_synced_batches_total",
      "Batches of them that were synced to the disk",
      of("synced"),
    ),
    counter("heddle_storage_operations_total", "Puts and deletes in these batches", of("ops")),
    counter("heddle_storage_written_bytes_total", "Bytes of keys and values in these batches", of("bytes")),
    gauge(
      "heddle_storage_damaged",
      "What is not served since something of it was lost: threads, other keys, ranges of keys with more of both; and findings that are not accepted",
      () => byLabel("kind", { ...storage.damage(), findings: storage.findings().length }),
      "kind",
    ),
    gauge(
      "heddle_webhooks",
      `Webhook deliveries: pending, or given up (dead); ${MAX_WEBHOOKS_NOTE}`,
      webhookCounts,
      "status",
    ),
  ];
}

function ofReplication({ storage }: MetricsDeps): readonly MetricFamily[] {
  const of = (figure: (metrics: ReplicationMetrics) => number | undefined) => (): number | undefined => {
    const metrics = storage.replication();
    return metrics && figure(metrics);
  };
  const snapshots = () => {
    const metrics = storage.replication();
    return byLabel("result", {
      made: metrics?.snapshotsMade ?? 0,
      failed: metrics?.snapshotsFailed ?? 0,
    });
  };
  return [
    gauge(
      "heddle_cluster_log_position",
      "Position of the last entry of the shard's log",
      of(({ position }) => position),
    ),
    gauge(
      "heddle_cluster_log_entries",
      "Entries that the shard's log holds in the cluster's database",
      of(({ log }) => log?.entries),
    ),
    gauge(
      "heddle_cluster_log_bytes",
      "Bytes of these entries",
      of(({ log }) => log?.bytes),
    ),
    gauge(
      "heddle_cluster_snapshot_position",
      "Position in the log up to which the shard's newest snapshot goes",
      of(({ snapshot }) => snapshot?.seq),
    ),
    gauge(
      "heddle_cluster_snapshot_bytes",
      "Bytes of this snapshot",
      of(({ snapshot }) => snapshot?.bytes),
    ),
    gauge(
      "heddle_cluster_snapshot_timestamp_seconds",
      "Time at which this snapshot was made, in epoch seconds",
      of(({ snapshot }) => snapshot && snapshot.madeAt / 1_000),
    ),
    counter(
      "heddle_cluster_snapshots_total",
      "Snapshots that the process has made, and those that it could not make",
      snapshots,
      "result",
    ),
  ];
}

const MAX_WEBHOOKS_NOTE = `${MAX_WEBHOOKS} means: these or more`;

/** One sample for each member of `counts`. The member's name becomes the value of `label`. */
function byLabel(label: string, counts: { readonly [value: string]: number }): readonly MetricSample[] {
  return Object.entries(counts).map(([value, count]) => [{ [label]: value }, count] as const);
}
