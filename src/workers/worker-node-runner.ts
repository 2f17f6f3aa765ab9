import { toPlainError } from "../model/errors.ts";
import type { NodeCall } from "../ports/engine.ts";
import type { NodeExecutor } from "../ports/node-executor.ts";
import type { LogFields, Logger, LogLevel } from "../ports/logger.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import { WorkerNodeIo } from "./worker-node-io.ts";
import { toCloneableOutcome, toCloneableLogFields } from "./structured-clone.ts";
import type { FromWorker, ToWorker } from "./worker-messages.ts";

/** When this many messages are queued, they are posted immediately. Fewer messages are posted after the current turn of the event loop. */
const MAX_QUEUED = 64;

export interface WorkerNodeRunnerDeps {
  /**
   * Posts messages to the server's thread. @throws DOMException `DataCloneError` if a message cannot be cloned; then no message has been
   * posted
   */
  post(messages: readonly FromWorker[]): void;
  readonly scheduler: Scheduler;
}

/** Runs node functions in a worker thread, for the server. */
export class WorkerNodeRunner {
  /** Sends log lines to the server. */
  readonly logger: Logger;
  readonly #deps: WorkerNodeRunnerDeps;
  readonly #executor: NodeExecutor;
  /**
   * Returns the edition (version number) of a graph's definition in this thread. Each thread loads its own definitions, and numbers them
   * itself.
   */
  readonly #edition: (graph: string) => number;
  readonly #running = new Map<number, WorkerNodeIo>();
  #begun: Int32Array = new Int32Array(1);
  #queued: FromWorker[] = [];
  #flushing = false;

  /** @param executor creates the executor of node functions, which logs to the given logger */
  constructor(
    deps: WorkerNodeRunnerDeps,
    executor: (logger: Logger) => NodeExecutor,
    edition: (graph: string) => number,
  ) {
    this.#deps = deps;
    this.logger = this.#createLogger();
    this.#executor = executor(this.logger);
    this.#edition = edition;
  }

  receive(message: ToWorker): void {
    switch (message.t) {
      case "begun":
        this.#begun = message.begun;
        break;
      case "call":
        Atomics.store(this.#begun, 0, message.id);
        void this.#run(message.id, message.call);
        break;
      case "abort":
        this.#running.get(message.id)?.abort(message);
        break;
      case "answer":
        this.#running.get(message.id)?.answer(message);
        break;
      case "ping":
        this.post({ t: "pong" });
    }
  }

  post(message: FromWorker): void {
    this.#queued.push(message);
    if (this.#queued.length >= MAX_QUEUED) return this.#flush();
    if (this.#flushing) return;
    this.#flushing = true;
    this.#deps.scheduler.soon(() => {
      this.#flushing = false;
      this.#flush();
    });
  }

  #flush(): void {
    const batch = this.#queued;
    if (batch.length === 0) return;
    this.#queued = [];
    this.#deps.post(batch);
  }

  async #run(id: number, call: NodeCall): Promise<void> {
    const io = new WorkerNodeIo(id, (message) => this.post(message));
    this.#running.set(id, io);
    try {
      const edition = this.#edition(call.graph);
      const outcome = toCloneableOutcome(call.node, await this.#executor.run({ ...call, edition }, io));
      this.#flush();
      this.#deps.post([{ t: "done", id, outcome }]);
    } catch (thrown) {
      // The outcome or a queued message cannot be cloned for the server's thread, so the task fails with this error.
      this.#deps.post([{ t: "done", id, outcome: { kind: "failed", error: toPlainError(thrown) } }]);
    } finally {
      this.#running.delete(id);
    }
  }

  #createLogger(): Logger {
    const log = (level: LogLevel) => (message: string, fields?: LogFields) => {
      this.post({ t: "log", level, message, fields: fields && toCloneableLogFields(fields) });
    };
    return { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") };
  }
}
