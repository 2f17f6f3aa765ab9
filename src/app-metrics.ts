import type { Figures } from "../actors/tally.ts";
import type { Traffic } from "./http/traffic.ts";
import type { Feeds } from "./live/inspect/feeds.ts";
import type { Sockets } from "./live/sockets.ts";
import { Exposition } from "./metrics/exposition.ts";
import type { Family, Sample } from "./metrics/family.ts";
import { keptFor } from "./metrics/kept.ts";
import { Lag } from "./metrics/lag.ts";
import { processFamilies } from "./metrics/process.ts";
import type { Clock } from "./ports/clock.ts";
import type { Logger } from "./ports/logger.ts";
import type { Outbox } from "./ports/outbox.ts";
import type { ReadProcess } from "./ports/process-figures.ts";
import type { Scheduler } from "./ports/scheduler.ts";
import type { Storage } from "./storage/open.ts";
import type { Hub } from "./stream/hub.ts";

/** Webhooks that are counted: more than these are told as these. */
const MOST_WEBHOOKS = 10_000;
/** Milliseconds for which the storage's size and the webhooks' counts are kept: they are found out by reading. */
const SIZE = 15_000;
const WEBHOOKS = 2_000;

const ENDS = ["success", "error", "timeout", "interrupted", "rolled_back"] as const;

export interface MetricsDeps {
  readonly about: { readonly version: string; readonly transport: string };
  readonly system: { readonly figures: Figures };
  readonly storage: Pick<Storage, "stats" | "size">;
  readonly outbox: Pick<Outbox, "count">;
  readonly hub: Pick<Hub, "counts">;
  readonly traffic: Traffic;
  readonly sockets: Pick<Sockets, "open">;
  readonly feeds: Pick<Feeds, "watching">;
  readonly process: ReadProcess;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
}

/** What a server tells of itself in figures. To be closed with it. */
export function createMetrics(deps: MetricsDeps): Pick<Exposition, "tell"> & Pick<Lag, "close"> {
  const lag = new Lag(deps.clock, deps.scheduler);
  const families = [
    ...ofRuns(deps),
    ...ofDoors(deps),
    ...ofStorage(deps),
    ...processFamilies(deps.process, lag),
  ];
  const exposition = new Exposition(families, deps.logger);
  return { tell: () => exposition.tell(), close: () => lag.close() };
}

function ofRuns({ system, hub }: MetricsDeps): readonly Family[] {
  const byGraph = (samples: (graph: string, tally: GraphTally) => readonly Sample[]) => () =>
    [...system.figures.graphs].flatMap(([graph, tally]) => samples(graph, tally));
  return [
    {
      name: "heddle_runs_started_total",
      help: "Runs that were started, or taken up again after a stop",
      type: "counter",
      labels: ["graph"],
      read: byGraph((graph, { started }) => [[{ graph }, started]]),
    },
    {
      name: "heddle_runs_ended_total",
      help: "Runs that have ended, by how; one that pauses for an answer is a success, one that was taken back is rolled_back",
      type: "counter",
      labels: ["graph", "status"],
      read: byGraph((graph, tally) => ENDS.map((status) => [{ graph, status }, tally[status]])),
    },
    {
      name: "heddle_runs_withdrawn_total",
      help: "Runs that were ended before they started",
      type: "counter",
      read: () => system.figures.withdrawn,
    },
    {
      name: "heddle_runs_running",
      help: "Runs in progress",
      type: "gauge",
      read: () => system.figures.running,
    },
    {
      name: "heddle_runs_queued",
      help: "Runs that wait to start, behind others of their thread or for a slot",
      type: "gauge",
      read: () => system.figures.queued,
    },
    {
      name: "heddle_runs_waiting_for_slot",
      help: "Threads whose next run waits for nothing but a slot (runs.max_concurrent and the like)",
      type: "gauge",
      read: () => system.figures.waiting,
    },
    {
      name: "heddle_actors",
      help: "Live actors of threads: with runs to do, at rest, or being read from the storage",
      type: "gauge",
      labels: ["state"],
      read: () => {
        const { busy, idle, waking } = system.figures;
        return [
          [{ state: "busy" }, busy],
          [{ state: "idle" }, idle],
          [{ state: "waking" }, waking],
        ];
      },
    },
    {
      name: "heddle_actors_woken_total",
      help: "Actors that were made of their thread's record",
      type: "counter",
      read: () => system.figures.woken,
    },
    {
      name: "heddle_actors_passivated_total",
      help: "Actors that were let go after a rest",
      type: "counter",
      read: () => system.figures.passivated,
    },
    {
      name: "heddle_stream_readers",
      help: "Readers of live runs' events",
      type: "gauge",
      read: () => hub.counts.readers,
    },
  ];
}

type GraphTally = Figures["graphs"] extends ReadonlyMap<string, infer T> ? T : never;

function ofDoors({ about, traffic, sockets, feeds }: MetricsDeps): readonly Family[] {
  const answered = (route: string, method: string, answers: readonly number[]): readonly Sample[] =>
    answers.flatMap((count, digit) =>
      count === 0 ? [] : [[{ route, method, status: `${digit}xx` }, count] as const],
    );
  return [
    {
      name: "heddle_info",
      help: "Always 1; the server tells what it is by the labels",
      type: "gauge",
      labels: ["version", "transport"],
      read: () => [[{ ...about }, 1]],
    },
    {
      name: "heddle_http_requests_total",
      help: "Requests that were answered, by route and class of status; without a route where none was found, or the asker not let in",
      type: "counter",
      labels: ["route", "method", "status"],
      read: () => [
        ...[...traffic.routes].flatMap(([{ path, method }, answers]) => answered(path, method, answers)),
        ...answered("", "", traffic.elsewhere),
      ],
    },
    {
      name: "heddle_connections",
      help: "Streams that are open: server-sent events, WebSockets, WebSockets that watch actors",
      type: "gauge",
      labels: ["kind"],
      read: () => [
        [{ kind: "sse" }, traffic.streams],
        [{ kind: "websocket" }, sockets.open],
        [{ kind: "inspect" }, feeds.watching],
      ],
    },
  ];
}

function ofStorage({ storage, outbox, clock }: MetricsDeps): readonly Family[] {
  const size = keptFor(SIZE, clock, () => storage.size());
  const webhooks = keptFor(WEBHOOKS, clock, () => outbox.count(MOST_WEBHOOKS));
  return [
    {
      name: "heddle_storage_size_bytes",
      help: "Bytes of the database's files; looked at every 15 seconds at most",
      type: "gauge",
      read: size,
    },
    {
      name: "heddle_storage_batches_total",
      help: "Batches of writes that were stored",
      type: "counter",
      read: () => storage.stats().batches,
    },
    {
      name: "heddle_storage_synced_batches_total",
      help: "Batches of them that were synced to the disk",
      type: "counter",
      read: () => storage.stats().synced,
    },
    {
      name: "heddle_storage_operations_total",
      help: "Puts and deletes in these batches",
      type: "counter",
      read: () => storage.stats().ops,
    },
    {
      name: "heddle_storage_written_bytes_total",
      help: "Bytes of keys and values in these batches",
      type: "counter",
      read: () => storage.stats().bytes,
    },
    {
      name: "heddle_webhooks",
      help: `Webhooks that are owed (pending) or were given up (dead); ${MOST_WEBHOOKS} means: these or more`,
      type: "gauge",
      labels: ["status"],
      read: async () => {
        const { pending, dead } = await webhooks();
        return [
          [{ status: "pending" }, pending],
          [{ status: "dead" }, dead],
        ];
      },
    },
  ];
}
