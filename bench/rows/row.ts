import type { LoadProcess, ServerProcess } from "../child.ts";
import type { Server } from "../server.ts";

/** What one round of a row gave, by figure. */
export type Figures = { readonly [figure in Figure]?: number };

/** How a figure is called in a table, and how many digits of it mean something. */
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
  restart_ms: { title: "restart to /ok ms", digits: 0 },
  stolen: { title: "stolen %", digits: 1 },
  memory_ns: { title: "memory ns", digits: 0 },
} as const;

export type Figure = keyof typeof figures;

/** What a row works with. */
export interface Bench {
  readonly load: LoadProcess;
  /** Where the compiled tree is. */
  readonly built: string;
  /** A directory on a real disk. */
  readonly directory: string;
  /** Shrinks the work of every row, to see that it runs: 1 for figures that are to be told. */
  readonly scale: number;
  /** Of the work, how much this server is given: 1 for Heddle, less for a peer that would take hours. */
  readonly share: number;
  /** Starts Heddle; where the peer is measured, the peer. */
  heddle(options?: HeddleOptions): Promise<Server>;
  /** A place for a server's records that outlives the server, removed at the end. */
  newData(): string;
  /** Milliseconds from the start of the command line's process to its first `/ok`, on what a directory holds. */
  start(data?: string): Promise<number>;
  control(name: string, ...args: string[]): Promise<ServerProcess>;
}

export interface HeddleOptions {
  /** A data directory to keep; without it a new one, removed at the end. */
  readonly data?: string;
  /** Milliseconds until a resting thread's actor is let go. */
  readonly idle?: number;
  /** How many runs may be in progress at once (`runs.max_concurrent`). */
  readonly slots?: number;
  /** Worker threads for node bodies; absent: they run beside everything else. */
  readonly workers?: number;
  /** Serves the LangGraph.js graph `ten` too. */
  readonly langGraph?: boolean;
  /** API keys, as {@link import("../../src/app.ts").AppOptions.keys}. */
  readonly keys?: readonly string[];
}

/** What a target asks for, as far as a number tells it: of a figure, or of its ratio to that of a row in {@link Row.against}. */
export interface Goal {
  readonly figure: Figure;
  readonly to?: string;
  readonly most?: number;
  readonly least?: number;
}

export interface Row {
  readonly name: string;
  readonly what: string;
  /** Takes so long that it is measured only when asked for by name. */
  readonly long?: boolean;
  /** Its ratios are within one round, or with another such row, and it takes long: measured in so many rounds at most. */
  readonly rounds?: number;
  /** What design asks for, in its own words. */
  readonly target?: string;
  /** The target in numbers. */
  readonly goals?: readonly Goal[];
  /**
   * Measured on the official JavaScript server too, with this share of the work, in so many rounds at most. `there`: its figures on the
   * machine for which the targets were set.
   */
  readonly peer?: { readonly share: number; readonly rounds?: number; readonly there?: Figures };
  /** Needs other software than Heddle, which is installed when the row is measured: only when asked for. */
  readonly foreign?: boolean;
  /** One round, on a fresh server. */
  run(bench: Bench): Promise<Figures>;
  /**
   * The control rows that this one is set against, each by one figure; they run in the same round, right before it. `there`: the
   * control's figure on the machine for which the targets were set.
   */
  readonly against?: readonly { readonly row: string; readonly figure: Figure; readonly there?: number }[];
}
