import type { LoadProcess, ServerProcess } from "../child.ts";
import type { Server } from "../server.ts";

/** The results of one round of a row, by figure. */
export type Figures = { readonly [figure in Figure]?: number };

/** The name of each figure in tables, and its number of significant digits. */
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
  added_p50_ms: { title: "p50 ms more when forwarded", digits: 2 },
  added_cpu_us: { title: "CPU us more when forwarded", digits: 1 },
  failed: { title: "requests failed", digits: 0 },
  pause_ms: { title: "longest pause ms", digits: 0 },
  stolen: { title: "stolen %", digits: 1 },
  memory_ns: { title: "memory ns", digits: 0 },
} as const;

export type Figure = keyof typeof figures;

/** What a row measures with. */
export interface Bench {
  readonly load: LoadProcess;
  /** The folder of the compiled tree. */
  readonly built: string;
  /** A directory on a real disk. */
  readonly directory: string;
  /** Scales the work of every row down, to test that it runs: 1 for figures that are published. */
  readonly scale: number;
  /** The share of the work that this server gets: 1 for Heddle, less for a peer that would take hours. */
  readonly share: number;
  /** Starts Heddle or, where the peer is measured, the peer. */
  heddle(options?: HeddleOptions): Promise<Server>;
  /** A directory for a server's data that outlives the server. It is removed at the end. */
  newData(): string;
  /** Milliseconds from the start of the command line's process to its first `/ok`, on the data of a directory. */
  start(data?: string): Promise<number>;
  control(name: string, ...args: string[]): Promise<ServerProcess>;
}

export interface HeddleOptions {
  /** A data directory to keep; default: a new one, which is removed at the end. */
  readonly data?: string;
  /** Milliseconds after which the actor of an idle thread is unloaded. */
  readonly idle?: number;
  /** The number of runs that may be in progress at once (`runs.max_concurrent`). */
  readonly slots?: number;
  /** Worker threads for node functions; absent: they run in the main thread. */
  readonly workers?: number;
  /** Also serves the LangGraph.js graph `ten`. */
  readonly langGraph?: boolean;
  /** API keys, as {@link import("../../src/app.ts").AppOptions.keys}. */
  readonly keys?: readonly string[];
}

/** The numbers of a target: for a figure, or for its ratio to the figure of a row in {@link Row.against}. */
export interface Goal {
  readonly figure: Figure;
  readonly to?: string;
  readonly most?: number;
  readonly least?: number;
}

export interface Row {
  readonly name: string;
  readonly what: string;
  /** Takes so long that it is measured only when its name is given. */
  readonly long?: boolean;
  /** The most rounds, for a row that takes long and whose ratios are taken within one round or to another such row. */
  readonly rounds?: number;
  /** The target in words. */
  readonly target?: string;
  /** The target in numbers. */
  readonly goals?: readonly Goal[];
  /**
   * The row is also measured on the official JavaScript server, with this share of the work and at most this many
   * rounds. `there`: the server's figures on the machine for which the targets were set.
   */
  readonly peer?: { readonly share: number; readonly rounds?: number; readonly there?: Figures };
  /** Needs software other than Heddle, which is installed when the row is measured: only when its name is given. */
  readonly foreign?: boolean;
  /** Measures one round on a fresh server. */
  run(bench: Bench): Promise<Figures>;
  /**
   * The control rows with which this row is compared, each by one figure. They run in the same round, right before it.
   * `there`: the control's figure on the machine for which the targets were set.
   */
  readonly against?: readonly { readonly row: string; readonly figure: Figure; readonly there?: number }[];
}
