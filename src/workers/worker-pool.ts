import { ServiceError } from "../model/errors.ts";
import type { NodeCall } from "../ports/engine.ts";
import type { Host } from "../ports/node-host.ts";
import type { Logger } from "../ports/logger.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { WorkerThread } from "../ports/worker-thread.ts";
import type { FromWorker, ToWorker } from "./worker-messages.ts";
import { Seat, type Taken } from "./worker-slot.ts";

/** Milliseconds before a worker that ended is followed by another one. */
const PAUSE = 200;

export interface PoolDeps {
  readonly count: number;
  spawn(): WorkerThread<ToWorker, readonly FromWorker[]>;
  /** Where all else runs: in this thread. */
  readonly local: Host;
  /** Have the workers the definition that the call asks for? */
  serves(call: NodeCall): boolean;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
}

/**
 * Runs node bodies in worker threads, each call in the one with the fewest. A body that keeps its thread to itself holds up
 * those beside it there, and nothing of the server; once it is told to stop and its thread does not answer, the
 * thread is ended. What was running in a thread that ends has failed with `WorkerLostError`, and may be tried again as its node says.
 * Resolves once all workers have loaded their graphs. @throws ServiceError `config.invalid` when one cannot
 */
export async function workerHost(deps: PoolDeps): Promise<Host> {
  const pool = new Pool(deps);
  await pool.open();
  return pool;
}

class Pool implements Host {
  readonly #deps: PoolDeps;
  readonly #seats = new Set<Seat>();
  /** Calls that wait for a worker. */
  #waiting: Taken[] = [];
  #closed = false;

  constructor(deps: PoolDeps) {
    this.#deps = deps;
  }

  async open(): Promise<void> {
    try {
      await Promise.all(Array.from({ length: this.#deps.count }, () => this.#first()));
    } catch (cause) {
      await this.close();
      throw cause;
    }
  }

  run(call: NodeCall, io: Parameters<Host["run"]>[1]): ReturnType<Host["run"]> {
    if (!this.#deps.serves(call)) return this.#deps.local.run(call, io);
    return new Promise((settle) => this.#place({ call, io, settle }));
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#seats].map((seat) => seat.close()));
    await this.#deps.local.close();
  }

  #place(taken: Taken): void {
    let best: Seat | undefined;
    for (const seat of this.#seats) {
      if (seat.isReady && (best === undefined || seat.load < best.load)) best = seat;
    }
    if (best === undefined) {
      this.#waiting.push(taken);
      return;
    }
    try {
      best.take(taken);
    } catch {
      // It holds what has no copy, such as a value that is never stored: it can run here alone.
      void this.#deps.local.run(taken.call, taken.io).then(taken.settle);
    }
  }

  #first(): Promise<void> {
    return new Promise((resolve, reject) => {
      const seat = this.#seat(resolve, () =>
        reject(
          new ServiceError("config.invalid", `In a worker thread: ${seat.failure ?? "it ended at once"}`),
        ),
      );
    });
  }

  #seat(ready: () => void, refused: () => void): Seat {
    const { scheduler, logger, spawn } = this.#deps;
    const seat = new Seat(spawn(), {
      scheduler,
      logger,
      ready: () => {
        ready();
        const waiting = this.#waiting;
        this.#waiting = [];
        for (const taken of waiting) this.#place(taken);
      },
      ended: () => {
        this.#seats.delete(seat);
        refused();
        if (this.#closed) return;
        logger.warn("a worker thread ended; another one follows", { left: this.#seats.size });
        scheduler.after(PAUSE, () => this.#follow());
      },
    });
    this.#seats.add(seat);
    return seat;
  }

  #follow(): void {
    if (this.#closed) return;
    const nothing = () => undefined;
    this.#seat(nothing, nothing);
  }
}
