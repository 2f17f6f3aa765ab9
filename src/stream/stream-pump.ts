import { andThen, type Eventually } from "../ports/eventually.ts";
import type { MemoryBudget, MemoryShare } from "../ports/memory-budget.ts";
import type { Logger } from "../ports/logger.ts";
import type { Cancel, Scheduler } from "../ports/scheduler.ts";
import type { ReadPause, Reader } from "./run-reader.ts";
import type { ChunkSlice } from "./rendering.ts";

/** The output of a pump. It never holds more than the last piece it was given. */
export interface PumpOutput<Out> {
  /** Sends a piece. False: the peer is slow; the pump waits until it has drained. */
  put(piece: Out): boolean;
  /** Sends what it has buffered. False: the peer is slow. */
  flush(): boolean;
  /**
   * The peer is slow. If much is buffered for it, drops the buffer and returns the id of the last event that was
   * sent: the events after it are read again.
   */
  shed?(): number | undefined;
  /** Ends the output: normally, or (`cut`, `stalled`, `failed`) so that the peer connects again with its last id. */
  finish(outcome: Exclude<PumpOutcome, "left">): void;
}

/**
 * `ended`: all events were sent. `cut`: the log was broken. `stalled`: the peer took nothing for too long. `failed`:
 * the events could not be read. `left`: the peer closed the connection.
 */
export type PumpOutcome = "ended" | "cut" | "stalled" | "failed" | "left";

export interface PumpOptions {
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  /** Milliseconds that a peer may take nothing while data waits. */
  readonly stall?: number;
  /**
   * Limits the memory of output that peers have not taken, together with that of all other pumps of the tenant. Only for slices that can be
   * rendered again: output that has to wait is dropped.
   */
  readonly memory?: OutputMemory;
  /** Called once, when the pump has ended. */
  readonly onDone?: (outcome: PumpOutcome) => void;
}

export interface OutputMemory {
  readonly budget: MemoryBudget;
  readonly tenant: string;
}

/** `stop`: there is nothing more to do for now. */
type Step = "on" | "stop";

const STALL = 10_000;
/** Characters of output: less is not counted by the memory budget. */
const LARGE = 256 * 1024;
/** Segments pumped before other work gets a turn. */
const BURST = 32;

/** Moves events from a reader to one peer, at the peer's pace: events that the peer does not take stay in the log. */
export class StreamPump<Out> {
  readonly #reader: Reader;
  readonly #render: (segment: ChunkSlice) => Eventually<Out>;
  readonly #outlet: PumpOutput<Out>;
  readonly #options: PumpOptions;
  #done = false;
  /** True while the peer is slow. */
  #blocked = false;
  /** True during `#turn` and while a read is pending: it continues by itself. */
  #busy = false;
  /** True while a read is pending: nothing of the outlet is in use meanwhile. */
  #isReading = false;
  /** True when a signal came while it was busy. */
  #missed = false;
  #cancelStall: Cancel = () => undefined;
  /** Set once the output has been large. */
  #memory: MemoryShare | undefined;
  /** True when it has waited for memory, and the output is rendered again. */
  #isAdmitted = false;

  /** `render` is called for each segment, in order, and not again before it has resolved. */
  constructor(
    reader: Reader,
    render: (segment: ChunkSlice) => Eventually<Out>,
    outlet: PumpOutput<Out>,
    options: PumpOptions,
  ) {
    this.#reader = reader;
    this.#render = render;
    this.#outlet = outlet;
    this.#options = options;
    reader.onReady(this.#turn);
  }

  start(): void {
    this.#turn();
  }

  /**
   * Sends what the outlet has buffered: now, or when the pump is no longer busy or the peer has drained. It does not
   * wait for a pending disk read: the answer to a command would come only after the node that the command has
   * started.
   */
  nudge(): void {
    if (this.#blocked || this.#done) return;
    if (!this.#busy) {
      if (!this.#outlet.flush()) this.#block();
      return;
    }
    // The pump may have flushed already and be about to go idle. What the peer does not take shows when the read has
    // resolved.
    this.#missed = true;
    if (this.#isReading) this.#outlet.flush();
  }

  /** Ends the pump: the peer closed the connection, and nothing is written any more. */
  left(): void {
    this.#close("left");
  }

  /** Continues: the peer has drained. */
  readonly drained = (): void => {
    if (this.#done || !this.#blocked) return;
    this.#unblock();
    if (!this.#outlet.flush()) this.#block();
    else {
      this.#memory?.setBytes(0);
      this.#turn();
    }
  };

  /** Pauses: the cursor stays where it is until the peer has drained. */
  #block(): void {
    if (this.#done) return;
    const sent = this.#outlet.shed?.();
    if (sent !== undefined) this.#reader.rewind(sent);
    this.#reader.rest();
    this.#blocked = true;
    const { scheduler, stall = STALL } = this.#options;
    this.#cancelStall = scheduler.after(stall, () => this.#finish("stalled"));
  }

  #unblock(): void {
    this.#blocked = false;
    this.#cancelStall();
  }

  readonly #turn = (): void => {
    if (this.#busy) {
      this.#missed = true;
      return;
    }
    this.#busy = true;
    this.#missed = false;
    try {
      this.#run();
    } catch (cause) {
      this.#fail(cause);
    }
  };

  /** Runs until it has to wait. It stays busy when a pending operation will call back. */
  #run(): void {
    for (let burst = 0; !this.#done && !this.#blocked; burst++) {
      if (burst === BURST) return this.#options.scheduler.soon(this.#again);
      const got = this.#reader.next();
      const step = got instanceof Promise ? got.then((now) => this.#step(now)) : this.#step(got);
      if (step instanceof Promise) {
        this.#isReading = true;
        step.then(this.#after, this.#fail);
        return;
      }
      if (step === "stop") break;
    }
    this.#idle();
  }

  readonly #after = (step: Step): void => {
    this.#isReading = false;
    if (step === "stop") this.#idle();
    else this.#again();
  };

  readonly #again = (): void => {
    this.#busy = false;
    this.#turn();
  };

  #idle(): void {
    this.#busy = false;
    if (this.#missed && !this.#done) this.#turn();
  }

  #step(got: ChunkSlice | ReadPause): Eventually<Step> {
    if (this.#done) return "stop";
    if (typeof got === "string") {
      // A slow peer gets the last events before the end.
      if (!this.#outlet.flush()) this.#block();
      else if (got !== "wait") this.#finish(got === "end" ? "ended" : "cut");
      return "stop";
    }
    return andThen(this.#render(got), (piece) => this.#put(piece, got));
  }

  #put(piece: Out, slice: ChunkSlice): Eventually<Step> {
    if (this.#done) return "stop";
    const { size, stoppedAt } = slice.memo;
    const { memory } = this.#options;
    const isLarge = size > LARGE;
    if (this.#isAdmitted) this.#memory?.setBytes(isLarge ? size : 0);
    else if (isLarge && memory !== undefined) {
      const waiting = this.#reserve(size, memory);
      if (waiting !== undefined) {
        // Thousands of pumps may wait: the output is dropped, and rendered again.
        this.#reader.rewind(slice.after);
        this.#reader.rest();
        return waiting;
      }
    }
    this.#isAdmitted = false;
    if (stoppedAt !== undefined) this.#reader.rewind(stoppedAt);
    const isTaken = this.#outlet.put(piece);
    if (!isTaken) this.#block();
    if (!isLarge) return "on";
    if (isTaken) this.#memory?.setBytes(0);
    // Other work gets a turn: rendering so much has taken its time.
    return new Promise((resolve) => this.#options.scheduler.soon(() => resolve("on")));
  }

  /** Reserves memory for output. A promise: there is none now. */
  #reserve(bytes: number, { budget, tenant }: OutputMemory): Promise<Step> | undefined {
    const memory = (this.#memory ??= budget.share(tenant));
    const waiting = memory.beforeRead();
    if (waiting === undefined) memory.afterRead(bytes);
    return waiting?.then(() => {
      memory.afterRead(bytes);
      this.#isAdmitted = true;
      return "on";
    });
  }

  readonly #fail = (cause: unknown): void => {
    if (this.#done) return;
    if (this.#reader.isCut) return this.#finish("cut");
    this.#options.logger.warn("a run's events could not be read", { error: String(cause) });
    this.#finish("failed");
  };

  #finish(outcome: Exclude<PumpOutcome, "left">): void {
    if (this.#done) return;
    this.#close(outcome, () => this.#outlet.finish(outcome));
  }

  #close(outcome: PumpOutcome, finish?: () => void): void {
    if (this.#done) return;
    this.#done = true;
    this.#cancelStall();
    this.#memory?.close();
    this.#reader.close();
    finish?.();
    this.#options.onDone?.(outcome);
  }
}
