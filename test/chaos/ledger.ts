import { pairedId } from "../../src/model/ids.ts";
import type { Frame } from "./client.ts";

/** What a reader got of a run's stream. */
export interface StreamEntry {
  readonly modes: readonly string[];
  readonly frames: Frame[];
  /** `open`: still being read. */
  how: "open" | "end" | "cut";
}

/** A run that the server acknowledged: it gave its id with a 2xx. */
export interface RunEntry {
  readonly thread: string;
  readonly run: string;
  readonly what: string;
  /** When the request was sent, in the ledger's time. */
  readonly sent: number;
  readonly acknowledged: number;
  /** When its end was first seen; from then on nobody may stop it or take it back. */
  ended: number | undefined;
  /** The terminal status first seen. */
  status: string | undefined;
  /** Entries of the state's log that a whole answer showed as this run's work. */
  readonly shown: Set<string>;
  readonly streams: StreamEntry[];
  /** Is its end to be told to a webhook? */
  readonly hooked: boolean;
  /** It ends when its client leaves, or is cut off by a stop. */
  readonly bound: boolean;
}

/** A run that was given no thread: its own is hidden, and goes with its end. If it is bound, it also ends with the server. */
export interface AloneEntry extends RunEntry {
  /** The node that begins last. */
  readonly last: "join" | "ask";
}

/** A request that may stop or take back the runs in flight on a thread between its sending and its answer. */
export interface Disturbance {
  readonly thread: string;
  readonly action: "interrupt" | "rollback";
  /** One run, or undefined for all that are in flight. */
  readonly run: string | undefined;
  readonly sent: number;
  /** When the answer came, or the server was dead: later it cannot have been admitted. */
  until: number;
}

/** One breach of an invariant, with what shows it. */
export interface Violation {
  readonly invariant: string;
  readonly message: string;
  readonly evidence: unknown;
}

/** Attempts that a run has before it is given up. */
const ATTEMPTS = 3;

/** What the driver knows to have been promised. It lives outside the server, so no crash of that can touch it. */
export class Ledger {
  readonly threads = new Map<string, { readonly acknowledged: number; readonly graph?: string }>();
  readonly runs = new Map<string, RunEntry>();
  /** Runs without a thread of their own. */
  readonly alone = new Map<string, AloneEntry>();
  readonly #disturbances = new Map<string, Disturbance[]>();
  /** When the server was killed. */
  readonly kills: number[] = [];
  /** When the server had stopped in good order. */
  readonly stops: number[] = [];
  readonly #began = performance.now();

  now(): number {
    return performance.now() - this.#began;
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

  acknowledgeAlone(
    run: string,
    what: string,
    sent: number,
    hooked: boolean,
    more: Pick<AloneEntry, "bound" | "last">,
  ): AloneEntry {
    const entry = { ...this.#entry(pairedId(run), run, what, sent, hooked), ...more };
    this.alone.set(run, entry);
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

  /** The server is dead: what it had not admitted by now it never will. */
  gone(how: "killed" | "stopped"): void {
    const now = this.now();
    (how === "killed" ? this.kills : this.stops).push(now);
    for (const disturbances of this.#disturbances.values()) {
      for (const disturbance of disturbances) {
        if (disturbance.until === Number.POSITIVE_INFINITY) disturbance.until = now;
      }
    }
  }

  runsOf(thread: string): RunEntry[] {
    return [...this.runs.values()].filter((entry) => entry.thread === thread);
  }

  /** May this run have been taken back, so that nothing of it has to be there any more? */
  mayVanish(entry: RunEntry): boolean {
    return this.#disturbed(entry, ["rollback"]);
  }

  /** May this run have been stopped before it was through? */
  mayBeCut(entry: RunEntry | AloneEntry): boolean {
    const cuts = "last" in entry ? [...this.kills, ...this.stops] : this.stops;
    if (entry.bound && this.#among(cuts, entry) > 0) return true;
    return this.#disturbed(entry, ["rollback", "interrupt"]);
  }

  /**
   * May this run have failed? Its nodes cannot; but a resume may come when nothing waits for it any more, and a run that
   * was caught by as many kills as it may have attempts is given up.
   */
  mayFail(entry: RunEntry): boolean {
    if (entry.what === "resume") return true;
    return this.#among(this.kills, entry) >= ATTEMPTS;
  }

  /** How many of these moments it may have met. */
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
