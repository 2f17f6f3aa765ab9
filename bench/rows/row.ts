import type { LoadProcess, ServerProcess } from "../child.ts";
import type { Server } from "../server.ts";

/** What one round of a row has measured. */
export type Figures = { readonly [figure in Figure]?: number };

/** The title of each figure in tables, and the number of digits after the decimal point. */
export const figures = {
  per_s: { title: "per s", digits: 0 },
  p50_ms: { title: "p50 ms", digits: 2 },
  p99_ms: { title: "p99 ms", digits: 2 },
  first_p50_ms: { title: "first event p50 ms", digits: 2 },
  first_p99_ms: { title: "first event p99 ms", digits: 2 },
  seconds: { title: "s", digits: 2 },
  cpu_us: { title: "CPU us", digits: 2 },
  load_us: { title: "load's CPU us", digits: 2 },
  synced: { title: "synced batches", digits: 2 },
  stored_bytes: { title: "bytes stored", digits: 0 },
  sent_bytes: { title: "bytes sent", digits: 0 },
  ok_p99_ms: { title: "/ok p99 ms", digits: 1 },
  cpu_100: { title: "CPU, run 100 : run 1", digits: 2 },
  cpu_500: { title: "CPU, run 500 : run 1", digits: 2 },
  cpu_1000: { title: "CPU, run 1,000 : run 1", digits: 2 },
  bytes_1: { title: "bytes stored, run 1", digits: 0 },
  bytes_100: { title: "bytes, run 100 : run 1", digits: 2 },
  bytes_500: { title: "bytes, run 500 : run 1", digits: 2 },
  bytes_10: { title: "bytes stored, run 10", digits: 0 },
  bytes_400: { title: "bytes, run 400 : run 10", digits: 2 },
  bytes_1000: { title: "bytes, run 1,000 : run 1", digits: 2 },
  select_us: { title: "GET state?select= of run 500 (the peer's: 100), CPU us", digits: 1 },
  disk_bytes: { title: "bytes to disk a run, compactions too", digits: 0 },
  heap_bytes: { title: "heap bytes a thread", digits: 0 },
  rss_bytes: { title: "RSS bytes a thread", digits: 0 },
  live: { title: "actors left", digits: 0 },
  alone_p50_ms: { title: "p50 ms, alone", digits: 2 },
  alone_p99_ms: { title: "p99 ms, alone", digits: 2 },
  slower: { title: "times as long as alone", digits: 2 },
  frames: { title: "frames to the watcher", digits: 1 },
  status_p50_ms: { title: "in a status, p50 ms", digits: 2 },
  member_p50_ms: { title: "by metadata, p50 ms", digits: 2 },
  updated_p50_ms: { title: "in a status, last changed, p50 ms", digits: 2 },
  lost: { title: "runs lost", digits: 0 },
  stuck: { title: "runs without an end", digits: 0 },
  empty_ms: { title: "start with nothing stored to /ok ms", digits: 0 },
  restart_ms: { title: "restart to /ok ms", digits: 0 },
  added_p50_ms: { title: "p50 ms more when forwarded, one client", digits: 2 },
  added_cpu_us: { title: "CPU us more when forwarded, 64 clients", digits: 1 },
  added_cpu_alone_us: { title: "CPU us more when forwarded, one client", digits: 1 },
  failed: { title: "requests failed", digits: 0 },
  pause_ms: { title: "longest pause ms", digits: 0 },
  stolen: { title: "stolen %", digits: 1 },
  memory_ns: { title: "memory ns", digits: 0 },
} as const;

export type Figure = keyof typeof figures;

/** What rows use to measure a server. */
export interface Bench {
  readonly load: LoadProcess;
  /** The folder with the compiled JavaScript: see `build.ts`. */
  readonly built: string;
  /** A directory for data files. It is on a disk, not in memory, if the repository is. */
  readonly directory: string;
  /** A directory for CPU profiles of Heddle's processes, which each process writes when it stops. */
  readonly profile?: string | undefined;
  /**
   * Multiplies the amount of work of each row. Published figures use 1; less is only for testing that the rows work.
   */
  readonly scale: number;
  /** The share of the row's work that this server gets: 1 for Heddle, less for a peer that would take hours. */
  readonly share: number;
  /** Starts Heddle, or the peer where the peer is measured. */
  heddle(options?: HeddleOptions): Promise<Server>;
  /** Makes a data directory that is not removed with the server, but at the end of the bench. */
  newData(): string;
  /**
   * Starts the command line with the data directory `data` (default: a new one). Returns the milliseconds from the
   * start of the process to the first `/ok` with status 200.
   */
  start(data?: string): Promise<number>;
  control(name: string, ...args: string[]): Promise<ServerProcess>;
}

export interface HeddleOptions {
  /** A data directory that exists; default: a new one. */
  readonly data?: string;
  /** Milliseconds without work after which a thread's actor is unloaded. */
  readonly idle?: number;
  /** The number of runs that may be in progress at once (`runs.max_concurrent`). */
  readonly slots?: number;
  /** The number of worker threads for node functions; if absent, the main thread runs them. */
  readonly workers?: number;
  /** Also serves the LangGraph.js graph of `langgraph.ts`, as `ten`. */
  readonly langGraph?: boolean;
  /** API keys, in the form of {@link import("../../src/app.ts").AppOptions.keys}. */
  readonly keys?: readonly string[];
}

/**
 * A target as numbers: limits for a figure or, with `to`, for its ratio to the same figure of the row `to`, which is
 * one of {@link Row.against}.
 */
export interface Goal {
  readonly figure: Figure;
  readonly to?: string;
  readonly most?: number;
  readonly least?: number;
}

export interface Row {
  readonly name: string;
  readonly what: string;
  /** The row takes long, so it is measured only if `--row` names it. */
  readonly long?: boolean;
  /** The most rounds of this row, for rows that take long and whose ratios do not need several rounds. */
  readonly rounds?: number;
  /** The target in words. */
  readonly target?: string;
  /** The target in numbers. */
  readonly goals?: readonly Goal[];
  /**
   * The row is also measured on the official JavaScript server, with this share of the work and in at most this many
   * rounds. `there`: that server's figures on the machine for which the targets were set.
   */
  readonly peer?: { readonly share: number; readonly rounds?: number; readonly there?: Figures };
  /**
   * The row measures software other than Heddle, which is installed on first use. It is measured only with `--peer`,
   * or if `--row` names it.
   */
  readonly foreign?: boolean;
  /** Starts a server, measures one round of the row on it, and stops it. */
  run(bench: Bench): Promise<Figures>;
  /**
   * The rows with which this row is compared, each by one figure. They are measured before this row in each round.
   * `there`: the figure of that row on the machine for which the targets were set.
   */
  readonly against?: readonly { readonly row: string; readonly figure: Figure; readonly there?: number }[];
}
