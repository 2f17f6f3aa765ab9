import { DurationHistogram } from "../src/model/duration-histogram.ts";
import type { TerminalStatus } from "../src/model/run.ts";

/** Counts of the runs of one graph since the server started, by outcome. */
export type GraphRunCounts = Record<"started" | "rolled_back" | TerminalStatus, number>;

/** Metrics of the actor system: its current state, and counts since the start. */
export interface ActorMetrics {
  /** The number of thread actors with a run that has not ended. */
  /** The number of thread actors whose runs have all ended. */
  readonly busy: number;
  readonly idle: number;
  /** The number of thread actors that are being loaded. */
  readonly waking: number;
  /** The number of thread actors that were loaded. */
  readonly woken: number;
  /** The number of thread actors that were removed from memory because they were idle. */
  readonly passivated: number;
  /** The number of runs in progress. Reading this property visits every live actor. */
  readonly running: number;
  /** The number of runs that wait to start. */
  readonly queued: number;
  /** The number of queued runs that wait for nothing but a slot or memory. */
  readonly waiting: number;
  /** The bytes of the large states and inputs of runs in progress. */
  readonly stateBytes: number;
  /** The number of runs that ended before they started. */
  readonly withdrawn: number;
  /**
   * How long runs waited until their first attempt, measured from the creation of the run or, for a delayed
   * run, from the time when it was due.
   */
  readonly waits: DurationHistogram;
  readonly graphs: ReadonlyMap<string, Readonly<GraphRunCounts>>;
}

/**
 * The most graphs that are counted by name. All further graphs share one name, because a metrics system keeps a series
 * for each name.
 */
const MAX_GRAPHS = 100;
const OTHERS = "(others)";

/** Totals of runs and threads since the start. */
export class RunTotals {
  woken = 0;
  withdrawn = 0;
  readonly waits = new DurationHistogram();
  readonly graphs = new Map<string, GraphRunCounts>();

  forGraph(graph: string): GraphRunCounts {
    return this.graphs.get(graph) ?? this.#add(graph);
  }

  #add(graph: string): GraphRunCounts {
    if (this.graphs.size >= MAX_GRAPHS && graph !== OTHERS) return this.forGraph(OTHERS);
    const counts = { started: 0, success: 0, error: 0, timeout: 0, interrupted: 0, rolled_back: 0 };
    this.graphs.set(graph, counts);
    return counts;
  }
}
