import type { TerminalStatus } from "../src/model/run.ts";

/** What has become of one graph's runs since the server started. */
export type GraphTally = Record<"started" | "rolled_back" | TerminalStatus, number>;

/** What the actors of a server are at, and what they have done since it started. */
export interface Figures {
  /** Actors that live: with a run that has not ended, at rest, and being read from the storage. */
  readonly busy: number;
  readonly idle: number;
  readonly waking: number;
  /** Actors that were made of their thread's record, and let go after a rest. */
  readonly woken: number;
  readonly passivated: number;
  /** Runs in progress: it looks at every live actor to tell. */
  readonly running: number;
  /** Runs that wait to start, and of them those that wait for a slot alone. */
  readonly queued: number;
  readonly waiting: number;
  /** Runs that were ended before they started. */
  readonly withdrawn: number;
  /** By the name of the graph. */
  readonly graphs: ReadonlyMap<string, Readonly<GraphTally>>;
}

/** Graphs that are counted by name; all beyond count as one: who reads the figures keeps a row for each name. */
const MOST = 100;
const OTHERS = "(others)";

/** Plain numbers, so that counting costs a run nothing; they are looked at when somebody asks. */
export class Tally {
  woken = 0;
  withdrawn = 0;
  readonly graphs = new Map<string, GraphTally>();

  of(graph: string): GraphTally {
    return this.graphs.get(graph) ?? this.#add(graph);
  }

  #add(graph: string): GraphTally {
    if (this.graphs.size >= MOST && graph !== OTHERS) return this.of(OTHERS);
    const tally = { started: 0, success: 0, error: 0, timeout: 0, interrupted: 0, rolled_back: 0 };
    this.graphs.set(graph, tally);
    return tally;
  }
}
