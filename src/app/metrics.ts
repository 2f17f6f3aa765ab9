import type { ActorMetrics } from "../../actors/run-totals.ts";
import type { Traffic } from "../http/response-counts.ts";
import type { InspectorFeeds } from "../websocket/inspector/feeds.ts";
import type { OpenSockets } from "../websocket/open-sockets.ts";
import { Exposition } from "../metrics/exposition.ts";
import { counter, type MetricFamily, gauge, type MetricSample } from "../metrics/metric-family.ts";
import { cachedFor } from "../metrics/cached-reading.ts";
import { EventLoopLag } from "../metrics/event-loop-lag.ts";
import { processFamilies } from "../metrics/process-metrics.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import type { Outbox } from "../ports/outbox.ts";
import type { ReadProcessMetrics } from "../ports/process-metrics.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { Storage } from "../storage/open.ts";
import type { Hub } from "../stream/hub.ts";

/** Webhooks counted at most; a higher number is reported as this one. */
const MAX_WEBHOOKS = 10_000;
/** Milliseconds that the storage's size is cached: measuring it reads the directory. */
const SIZE_CACHE_MS = 15_000;
/** Milliseconds that the webhook counts are cached: counting reads the storage. */
const WEBHOOK_CACHE_MS = 2_000;

const ENDS = ["success", "error", "timeout", "interrupted", "rolled_back"] as const;

export interface MetricsDeps {
  readonly about: { readonly version: string; readonly transport: string };
  readonly system: { readonly figures: ActorMetrics };
  readonly storage: Pick<Storage, "stats" | "size" | "damage" | "findings">;
  readonly outbox: Pick<Outbox, "count">;
  readonly hub: Pick<Hub, "counts">;
  readonly traffic: Traffic;
  readonly sockets: Pick<OpenSockets, "open">;
  readonly feeds: Pick<InspectorFeeds, "watching">;
  readonly process: ReadProcessMetrics;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
}

/** Makes the server's metrics. They MUST be closed with the server. */
export function createMetrics(deps: MetricsDeps): Pick<Exposition, "render"> & Pick<EventLoopLag, "close"> {
  const lag = new EventLoopLag(deps.clock, deps.scheduler);
  const families = [
    ...ofRuns(deps),
    ...ofConnections(deps),
    ...ofStorage(deps),
    ...processFamilies(deps.process, lag),
  ];
  const exposition = new Exposition(families, deps.logger);
  return { render: () => exposition.render(), close: () => lag.close() };
}

function ofRuns({ system, hub }: MetricsDeps): readonly MetricFamily[] {
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
    gauge("heddle_stream_readers", "Readers of live runs' events", () => hub.counts.readers),
  ];
}

/** The members of `ActorMetrics` that are one number. */
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

function ofStorage({ storage, outbox, clock }: MetricsDeps): readonly MetricFamily[] {
  const size = cachedFor(SIZE_CACHE_MS, clock, () => storage.size());
  const webhooks = cachedFor(WEBHOOK_CACHE_MS, clock, () => outbox.count(MAX_WEBHOOKS));
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

const MAX_WEBHOOKS_NOTE = `${MAX_WEBHOOKS} means: these or more`;

/** One sample for each member, with the member's name as its label. */
function byLabel(label: string, counts: { readonly [value: string]: number }): readonly MetricSample[] {
  return Object.entries(counts).map(([value, count]) => [{ [label]: value }, count] as const);
}
