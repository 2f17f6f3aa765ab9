import { type PlainError, ServiceError, toPlainError } from "../model/errors.ts";
import type { NodeCall } from "../ports/engine.ts";
import type { NodeExecutor } from "../ports/node-executor.ts";
import type { Logger } from "../ports/logger.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { WorkerThread } from "../ports/worker-thread.ts";
import type { FromWorker, ToWorker } from "./worker-messages.ts";
import { WorkerSlot, type WorkerCall } from "./worker-slot.ts";

/**
 * Milliseconds before a new worker replaces one that has ended. The delay doubles each time that a worker ends before it is ready, up to
 * MAX_RESTART_DELAY_MS.
 */
const RESTART_DELAY_MS = 200;
const MAX_RESTART_DELAY_MS = 10_000;

const CLOSED: PlainError = { error: "WorkerLostError", message: "The worker threads have been closed" };

export interface WorkerPoolDeps {
  readonly count: number;
  spawn(): WorkerThread<ToWorker, readonly FromWorker[]>;
  /** Runs, in the server's own thread, the calls that workers cannot run. */
  readonly local: NodeExecutor;
  /** True if the workers have the definition that the call needs. */
  serves(call: NodeCall): boolean;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
}

/**
 * Starts worker threads, and returns an executor that runs node functions in them. Each call goes to the worker with the fewest calls. A
 * function that blocks its thread delays other calls in that thread, but not the server.
 *
 * After a call is aborted, its worker gets no more calls until it answers a ping. A worker that does not answer in time is terminated. The
 * calls that it had begun fail with `WorkerLostError`, and the retry policy of each node applies. The calls that it had not begun run in
 * another worker.
 *
 * Resolves when all workers have loaded their graphs.
 * @throws ServiceError `config.invalid` if a worker cannot load its graphs
 */
export async function startWorkerPool(deps: WorkerPoolDeps): Promise<NodeExecutor> {
  const pool = new WorkerPool(deps);
  await pool.open();
  return pool;
}

class WorkerPool implements NodeExecutor {
  readonly #deps: WorkerPoolDeps;
  readonly #slots = new Set<WorkerSlot>();
  #waiting: WorkerCall[] = [];
  #closed = false;
  /** The number of workers that ended before they were ready, counted since a worker was last ready. */
  #failedStarts = 0;

  constructor(deps: WorkerPoolDeps) {
    this.#deps = deps;
  }

  async open(): Promise<void> {
    try {
      await Promise.all(Array.from({ length: this.#deps.count }, () => this.#startFirst()));
    } catch (cause) {
      await this.close();
      throw cause;
    }
  }

  run(call: NodeCall, io: Parameters<NodeExecutor["run"]>[1]): ReturnType<NodeExecutor["run"]> {
    if (!this.#deps.serves(call)) return this.#deps.local.run(call, io);
    return new Promise((settle) => this.#assign({ call, io, settle }));
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#slots].map((slot) => slot.close()));
    for (const call of this.#waiting.splice(0)) this.#assign(call);
    await this.#deps.local.close();
  }

  #assign(call: WorkerCall): void {
    const { signal } = call.io;
    // The call was aborted before a worker was free.
    if (signal.aborted) return call.settle({ kind: "failed", error: toPlainError(signal.reason) });
    if (this.#closed) return call.settle({ kind: "failed", error: CLOSED });
    let best: WorkerSlot | undefined;
    for (const slot of this.#slots) {
      if (slot.isReady && (best === undefined || slot.load < best.load)) best = slot;
    }
    if (best === undefined) {
      this.#waiting.push(call);
      return;
    }
    try {
      best.run(call);
    } catch {
      // The call cannot be cloned, for example because it contains the value of an untracked channel. It runs in the server's thread
      // instead.
      void this.#deps.local.run(call.call, call.io).then(call.settle);
    }
  }

  #startFirst(): Promise<void> {
    return new Promise((resolve, reject) => {
      const slot = this.#addSlot(resolve, () =>
        reject(
          new ServiceError("config.invalid", `In a worker thread: ${slot.failure ?? "it ended at once"}`),
        ),
      );
    });
  }

  #addSlot(ready: () => void, refused: () => void): WorkerSlot {
    const { scheduler, logger, spawn } = this.#deps;
    let isStarted = false;
    const slot = new WorkerSlot(spawn(), {
      scheduler,
      logger,
      ready: () => {
        ready();
        this.#failedStarts = 0;
        isStarted = true;
        const waiting = this.#waiting;
        this.#waiting = [];
        for (const call of waiting) this.#assign(call);
      },
      ended: (notBegun) => {
        this.#slots.delete(slot);
        refused();
        for (const call of notBegun) this.#assign(call);
        if (this.#closed) return;
        const delay = Math.min(RESTART_DELAY_MS * 2 ** this.#failedStarts, MAX_RESTART_DELAY_MS);
        if (!isStarted) this.#failedStarts++;
        logger.warn("a worker thread ended; a new one will start", {
          left: this.#slots.size,
          delay_ms: delay,
          ...(slot.failure !== undefined && { error: slot.failure }),
        });
        scheduler.after(delay, () => this.#restart());
      },
    });
    this.#slots.add(slot);
    return slot;
  }

  #restart(): void {
    if (this.#closed) return;
    const nothing = () => undefined;
    this.#addSlot(nothing, nothing);
  }
}
