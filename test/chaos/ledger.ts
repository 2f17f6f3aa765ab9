import { pairedId } from "../../src/model/ids.ts";
import type { SentEvent, SentMark } from "./checkers/machines.ts";
import type { Frame } from "./client.ts";

/** The part of a run's stream that a reader has received. */
export interface StreamEntry {
  readonly modes: readonly string[];
  readonly frames: Frame[];
  /** `open`: the reader is still reading. */
  how: "open" | "end" | "cut";
}

/** An acknowledged run: the server returned its id with a 2xx status. */
export interface RunEntry {
  readonly thread: string;
  readonly run: string;
  readonly what: string;
  /** The time of the request, by the ledger's clock. */
  readonly sent: number;
  readonly acknowledged: number;
  /** The time when its end was first seen. From then on nothing may stop it or roll it back. */
  ended: number | undefined;
  /** The final status first seen. */
  status: string | undefined;
  /** Entries of the state's log that a complete answer showed as the work of this run. */
  readonly shown: Set<string>;
  readonly streams: StreamEntry[];
  /** True if its end has to be delivered to a webhook. */
  readonly hooked: boolean;
  /** True if it ends when its client disconnects or a stop of the server closes the connection. */
  readonly bound: boolean;
}

/**
 * A stateless run: its thread is hidden and is deleted at its end. If the run is bound, it also ends with the server.
 */
export interface StatelessRunEntry extends RunEntry {
  /** The node that begins last. */
  readonly last: "join" | "ask";
}

/** A request that may stop or roll back the active runs of a thread between its sending and its answer. */
export interface Disturbance {
  readonly thread: string;
  readonly action: "interrupt" | "rollback";
  /** The affected run; undefined: all active runs. */
  readonly run: string | undefined;
  readonly sent: number;
  /** The time of the answer or of the server's death. The request cannot have been admitted later. */
  until: number;
}

/** A machine, and the events that clients have sent to it. */
export interface MachineEntry {
  readonly thread: string;
  readonly sent: SentEvent[];
  /** Written into its state, one after the other. */
  readonly marks: SentMark[];
  /** True while a client cancels a run of it or changes its state: it may wait for no event then. */
  isHeld: boolean;
  /** True once that was asked for, until a run without input was acknowledged, by which it goes on. */
  needsRun: boolean;
  /** The number of clients that are sending events to it. */
  clients: number;
  /** True once its last event is on its way. */
  isFinishing: boolean;
}

/** A violation of an invariant, with its evidence. */
export interface Violation {
  readonly invariant: string;
  readonly message: string;
  readonly evidence: unknown;
}

/** The time from the beginning of a fault in a cluster until all shards are served again. */
interface FaultSpan {
  readonly from: number;
  until: number;
}

/** The number of attempts after which a run is given up. */
const ATTEMPTS = 3;

/** The driver's record of all acknowledgements. It is outside the server, so that no crash can affect it. */
export class Ledger {
  readonly threads = new Map<string, { readonly acknowledged: number; readonly graph?: string }>();
  readonly runs = new Map<string, RunEntry>();
  /** Stateless runs. */
  readonly stateless = new Map<string, StatelessRunEntry>();
  /** Machines by thread: only events are sent to these threads. */
  readonly machines = new Map<string, MachineEntry>();
  readonly #disturbances = new Map<string, Disturbance[]>();
  /** The times of the kills. */
  readonly kills: number[] = [];
  /** The times of the graceful stops. */
  readonly stops: number[] = [];
  /** Faults in a cluster, whose other processes go on. */
  readonly faults: FaultSpan[] = [];
  /** Whether shards move from process to process: then a run that is bound to its client may be cut at any time. */
  readonly isOfCluster: boolean;
  readonly #began = performance.now();

  constructor({ isOfCluster = false } = {}) {
    this.isOfCluster = isOfCluster;
  }

  #events = 0;
  #marks = 0;

  now(): number {
    return performance.now() - this.#began;
  }

  nextMark(): number {
    return ++this.#marks;
  }

  /** The number of the next event of a machine. */
  nextEvent(): number {
    return ++this.#events;
  }

  acknowledge(
    thread: string,
    run: string,
    what: string,
    sent: number,
    { hooked = false, bound = false } = {},
  ): RunEntry {
    const known = this.runs.get(run);
    if (known !== undefined) return known;
    const entry = { ...this.#entry(thread, run, what, sent, hooked), bound };
    this.runs.set(run, entry);
    return entry;
  }

  acknowledgeStateless(
    run: string,
    what: string,
    sent: number,
    hooked: boolean,
    more: Pick<StatelessRunEntry, "bound" | "last">,
  ): StatelessRunEntry {
    const entry = { ...this.#entry(pairedId(run), run, what, sent, hooked), ...more };
    this.stateless.set(run, entry);
    return entry;
  }

  #entry(thread: string, run: string, what: string, sent: number, hooked: boolean): Omit<RunEntry, "bound"> {
    return {
      thread,
      run,
      what,
      sent,
      acknowledged: this.now(),
      ended: undefined,
      status: undefined,
      shown: new Set(),
      streams: [],
      hooked,
    };
  }

  disturb(thread: string, action: "interrupt" | "rollback", run?: string): Disturbance {
    const disturbance: Disturbance = {
      thread,
      action,
      run,
      sent: this.now(),
      until: Number.POSITIVE_INFINITY,
    };
    const known = this.#disturbances.get(thread);
    if (known === undefined) this.#disturbances.set(thread, [disturbance]);
    else known.push(disturbance);
    return disturbance;
  }

  /** The server is dead: requests that it has not admitted by now are never admitted. */
  gone(how: "killed" | "stopped"): void {
    (how === "killed" ? this.kills : this.stops).push(this.now());
    this.settle();
  }

  /** No request is under way: those without an answer are never admitted from now on. */
  settle(): void {
    const now = this.now();
    for (const disturbances of this.#disturbances.values()) {
      for (const disturbance of disturbances) {
        if (disturbance.until === Number.POSITIVE_INFINITY) disturbance.until = now;
      }
    }
  }

  runsOf(thread: string): RunEntry[] {
    return [...this.runs.values()].filter((entry) => entry.thread === thread);
  }

  /** Checks whether this run may have been rolled back, so that nothing of it has to exist any more. */
  mayVanish(entry: RunEntry): boolean {
    return this.#disturbed(entry, ["rollback"]);
  }

  /** Checks whether this run may have been stopped before its end. */
  mayBeCut(entry: RunEntry | StatelessRunEntry): boolean {
    if (entry.bound && this.isOfCluster) return true;
    const cuts = "last" in entry ? [...this.kills, ...this.stops] : this.stops;
    if (entry.bound && this.#among(cuts, entry) > 0) return true;
    return this.#disturbed(entry, ["rollback", "interrupt"]);
  }

  /**
   * Checks whether this run may have failed. Its nodes cannot fail. But a resume may come when no question is pending
   * any more, and a run that is interrupted by as many kills as it has attempts is given up.
   */
  mayFail(entry: RunEntry): boolean {
    if (entry.what === "resume") return true;
    const { sent, ended = Number.POSITIVE_INFINITY } = entry;
    const faults = this.faults.filter(({ from, until }) => from <= ended && until >= sent);
    return this.#among(this.kills, entry) + faults.length >= ATTEMPTS;
  }

  /** Returns how many of these moments fall into the run's time. */
  #among(moments: readonly number[], { sent, ended = Number.POSITIVE_INFINITY }: RunEntry): number {
    return moments.filter((moment) => moment >= sent && moment <= ended).length;
  }

  #disturbed(entry: RunEntry, actions: readonly string[]): boolean {
    const end = entry.ended ?? Number.POSITIVE_INFINITY;
    return (this.#disturbances.get(entry.thread) ?? []).some(
      (d) =>
        (d.run === undefined || d.run === entry.run) &&
        actions.includes(d.action) &&
        d.sent <= end &&
        entry.sent <= d.until,
    );
  }
}
