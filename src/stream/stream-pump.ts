import { ServiceError } from "../model/errors.ts";
import { andThen, type Eventually } from "../ports/eventually.ts";
import type { ResponseMemoryBudget, ResponseMemoryShare } from "./response-memory-budget.ts";
import type { Logger } from "../ports/logger.ts";
import type { Cancel, Scheduler } from "../ports/scheduler.ts";
import type { DeletedDuringRead, NoEventsReason, Reader } from "./run-reader.ts";
import { LARGE_OUTPUT } from "./recent-log-chunks.ts";
import type { ChunkSlice } from "./rendering.ts";

/** The output of a pump. It may join small pieces, and it buffers pieces that a slow peer has not taken yet. */
export interface PumpOutput<Out> {
  /** Sends a piece. Returns false if the peer is slow; the pump then waits until {@link StreamPump.drained} is called. */
  put(piece: Out): boolean;
  /** Sends buffered data. Returns false if the peer is slow. */
  flush(): boolean;
  /**
   * Called when the peer is slow. If much data is buffered, drops the buffer and returns the id of the last event that was sent completely; otherwise
   * returns undefined. The pump reads the dropped events again when the peer has caught up.
   */
  shed?(): number | undefined;
  /**
   * Ends the output, and shows the outcome to the peer. After `cut`, `stalled` and `failed`, the peer has to connect again with its last
   * event id.
   */
  finish(outcome: Exclude<PumpOutcome, "left">): void;
}

/**
 * How a pump ended. `ended`: all events were sent. `cut`: the log ended early, for example because the server stops. `stalled`: the peer
 * read nothing for too long. `failed`: the events could not be read. `left`: the peer closed the connection. `thread_deleted`,
 * `run_deleted`: the events were deleted with their thread or run.
 */
export type PumpOutcome = "ended" | "cut" | "stalled" | "failed" | "left" | DeletedDuringRead;

export interface PumpOptions {
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  /** Milliseconds for which a peer may read nothing while data is buffered for it. Default: 10,000. */
  readonly stall?: number;
  /** The memory budget for output that peers have not read yet. All pumps of the tenant share it. */
  readonly memory?: OutputMemory;
  /** Called once, when the pump has ended. */
  readonly onDone?: (outcome: PumpOutcome) => void;
}

export interface OutputMemory {
  readonly budget: ResponseMemoryBudget;
  readonly tenant: string;
  /**
   * Set if a slice can be rendered only once. Returns true if the output of a slice may be large; the pump then waits for memory before it
   * renders the slice. If the function is absent, the pump renders first; if there is no memory, it drops the output and renders again
   * later.
   */
  readonly mayBeLarge?: (slice: ChunkSlice) => boolean;
}

/** The result of a step. `on`: the pump continues with the next step. `stop`: the pump has to wait, or has ended. */
type Step = "on" | "stop";

const DEFAULT_STALL_MS = 10_000;
/** The number of slices that are pumped before other work of the event loop gets a turn. */
const MAX_SLICES_PER_TURN = 32;

/** Moves events from a reader to one peer, at the speed of the peer. Events that the peer has not read stay in the log. */
export class StreamPump<Out> {
  readonly #reader: Reader;
  readonly #render: (slice: ChunkSlice) => Eventually<Out>;
  readonly #outlet: PumpOutput<Out>;
  readonly #options: PumpOptions;
  #done = false;
  /** True while the peer is slow. */
  #blocked = false;
  /** True while the pump runs or waits for a promise. It then continues by itself, so a further call of `#turn` only sets `#missed`. */
  #busy = false;
  /** True while a step waits for a promise: of reading, of rendering, or of memory. The output may be flushed during that time. */
  #isReading = false;
  /** True when the pump was asked to continue or to flush while it was busy. */
  #missed = false;
  #cancelStall: Cancel = () => undefined;
  /** The pump's entry in the memory budget. Set when the output was large for the first time. */
  #memory: ResponseMemoryShare | undefined;
  /** True when memory is reserved for the next slice. */
  #isAdmitted = false;

  /** `render` is called for one slice after the other, in order. It is not called again before its last call has resolved. */
  constructor(
    reader: Reader,
    render: (slice: ChunkSlice) => Eventually<Out>,
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
   * Flushes the output, even while a read is pending: the answer to a command must not wait for the next event. If the peer is slow, the
   * pump flushes when the peer has caught up.
   */
  nudge(): void {
    if (this.#blocked || this.#done) return;
    if (!this.#busy) {
      if (!this.#outlet.flush()) this.#block();
      return;
    }
    // A busy pump may have flushed already, so it has to flush once more before it becomes idle. It then also notices if the peer is slow.
    this.#missed = true;
    if (this.#isReading) this.#outlet.flush();
  }

  /** Ends the pump, because the peer has closed the connection. Nothing is written any more. */
  left(): void {
    this.#close("left");
  }

  /** Continues the pump, because the peer has caught up with the buffered data. */
  readonly drained = (): void => {
    if (this.#done || !this.#blocked) return;
    this.#unblock();
    if (!this.#outlet.flush()) this.#block();
    else {
      this.#memory?.setBytes(0);
      this.#turn();
    }
  };

  /** Pauses the pump until the peer has caught up with the buffered data. */
  #block(): void {
    if (this.#done) return;
    const sent = this.#outlet.shed?.();
    if (sent !== undefined) this.#reader.rewind(sent);
    this.#reader.rest();
    this.#blocked = true;
    const { scheduler, stall = DEFAULT_STALL_MS } = this.#options;
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

  /** Runs steps until the pump has to wait. If it waits for a promise, it stays busy. */
  #run(): void {
    for (let burst = 0; !this.#done && !this.#blocked; burst++) {
      if (burst === MAX_SLICES_PER_TURN) return this.#options.scheduler.soon(this.#again);
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

  #step(got: ChunkSlice | NoEventsReason): Eventually<Step> {
    if (this.#done) return "stop";
    if (typeof got === "string") {
      this.#release();
      // Flushes the last events before the end. If the peer is slow, the end is reported after the flush.
      if (!this.#outlet.flush()) this.#block();
      else if (got !== "wait") this.#finish(got === "end" ? "ended" : got);
      return "stop";
    }
    const waiting = this.#beforeRender(got);
    if (waiting !== undefined) return waiting;
    return andThen(this.#render(got), (piece) => this.#put(piece, got));
  }

  /** Reserves memory for a slice that can be rendered only once and may be large. Returns undefined if the slice can be rendered now. */
  #beforeRender(slice: ChunkSlice): Eventually<Step> | undefined {
    const { memory } = this.#options;
    if (memory?.mayBeLarge === undefined || this.#isAdmitted || slice.ended !== undefined) return undefined;
    if (!memory.mayBeLarge(slice)) return undefined;
    return this.#reserve(slice, memory);
  }

  #put(piece: Out, slice: ChunkSlice): Eventually<Step> {
    if (this.#done) return "stop";
    const { size, stoppedAt } = slice.memo;
    const { memory } = this.#options;
    const isLarge = size > LARGE_OUTPUT;
    if (isLarge && memory !== undefined && memory.mayBeLarge === undefined && !this.#isAdmitted) {
      // If there is no memory, drops the output and renders the slice again later. Thousands of pumps may wait, so none of them keeps
      // output.
      const waiting = this.#reserve(slice, memory);
      if (waiting !== undefined) return waiting;
    }
    this.#release(isLarge ? size : 0);
    if (stoppedAt !== undefined) this.#reader.rewind(stoppedAt);
    const isTaken = this.#outlet.put(piece);
    if (!isTaken) this.#block();
    if (!isLarge) return "on";
    if (isTaken) this.#memory?.setBytes(0);
    // Continues in a later turn of the event loop, because rendering a large output has taken long.
    return new Promise((resolve) => this.#options.scheduler.soon(() => resolve("on")));
  }

  /**
   * Reserves memory for the output of a slice. Returns undefined if the memory is reserved. Otherwise the pump has to wait, and then reads
   * the slice again.
   */
  #reserve(slice: ChunkSlice, { budget, tenant }: OutputMemory): Eventually<Step> | undefined {
    // Sends the output that is already rendered first, so that it does not wait for memory together with this slice.
    if (!this.#outlet.flush()) {
      this.#reader.rewind(slice.after);
      this.#block();
      return "stop";
    }
    const memory = (this.#memory ??= budget.share(tenant));
    const waiting = memory.beforeRead();
    this.#isAdmitted = waiting === undefined;
    if (waiting === undefined) return undefined;
    this.#reader.rewind(slice.after);
    this.#reader.rest();
    return waiting.then(() => {
      this.#isAdmitted = true;
      return "on";
    });
  }

  /** Ends the reservation of memory. `bytes`: the memory that the output takes now. */
  #release(bytes = 0): void {
    if (!this.#isAdmitted) return;
    this.#isAdmitted = false;
    this.#memory?.afterRead(bytes);
  }

  readonly #fail = (cause: unknown): void => {
    if (this.#done) return;
    if (this.#reader.isCut) return this.#finish("cut");
    if (cause instanceof ServiceError && cause.code === "thread.not_found")
      return this.#finish("thread_deleted");
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
