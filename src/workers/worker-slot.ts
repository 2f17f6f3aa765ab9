import { toPlainError, ServiceError } from "../model/errors.ts";
import type { Fact } from "../model/run-event.ts";
import type { NodeCall, TaskOutcome } from "../ports/engine.ts";
import type { NodeIo } from "../ports/node-executor.ts";
import type { Logger } from "../ports/logger.ts";
import type { Cancel, Scheduler } from "../ports/scheduler.ts";
import type { WorkerThread } from "../ports/worker-thread.ts";
import type { FromWorker, ToWorker } from "./worker-messages.ts";

/** Milliseconds in which a worker must answer the ping that follows an abort. A worker that does not answer is terminated. */
const ANSWER_TIMEOUT_MS = 2_000;

/** A call of a node function that a worker should run. */
export interface WorkerCall {
  readonly call: NodeCall;
  readonly io: NodeIo;
  settle(outcome: TaskOutcome): void;
}

interface RunningCall extends WorkerCall {
  /** The event ids of the chat messages that this call streams, by the number that the worker gives each message. */
  readonly messages: number[];
  readonly removeListener: () => void;
}

export interface WorkerSlotDeps {
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  /** Called when the worker can take calls: after its start, and when it has answered all pings. */
  ready(): void;
  /**
   * Called when the worker has ended. `notBegun`: the calls that the worker had not begun, which can run in another worker. All other calls
   * of the worker have failed.
   */
  ended(notBegun: readonly WorkerCall[]): void;
}

/** The server's side of one worker thread: posts calls to it and handles its messages. */
export class WorkerSlot {
  readonly #thread: WorkerThread<ToWorker, readonly FromWorker[]>;
  readonly #deps: WorkerSlotDeps;
  readonly #calls = new Map<number, RunningCall>();
  #ids = 0;
  /**
   * The id of the call that the worker began last. The worker begins calls in the order of their ids. The id is in shared memory, because a
   * worker that a function blocks cannot send messages.
   */
  readonly #begun = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  #isReady = false;
  #isOver = false;
  #unansweredPings = 0;
  #watch: Cancel | undefined;
  /** Why the worker could not load its graphs. Undefined if it has loaded them, or has not finished loading. */
  failure: string | undefined;

  constructor(thread: WorkerThread<ToWorker, readonly FromWorker[]>, deps: WorkerSlotDeps) {
    this.#thread = thread;
    this.#deps = deps;
    thread.onMessage((messages) => {
      for (const message of messages) this.#handle(message);
    });
    thread.onEnd((why) => this.#end(why));
    thread.post({ t: "begun", begun: this.#begun });
  }

  /** True if the worker can take calls. A worker with an unanswered ping takes none, because it may be terminated soon. */
  get isReady(): boolean {
    return this.#isReady && !this.#isOver && this.#unansweredPings === 0;
  }

  get load(): number {
    return this.#calls.size;
  }

  /** Posts a call to the worker. @throws DOMException `DataCloneError` if the call cannot be cloned */
  run(call: WorkerCall): void {
    const id = ++this.#ids;
    this.#thread.post({ t: "call", id, call: call.call });
    const { signal } = call.io;
    const abort = () => this.#abort(id, signal.reason as unknown);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
    const removeListener = () => signal.removeEventListener("abort", abort);
    this.#calls.set(id, { ...call, messages: [], removeListener });
  }

  close(): Promise<void> {
    return this.#thread.terminate();
  }

  #abort(id: number, reason: unknown): void {
    const { name, message } =
      reason instanceof Error ? reason : { name: "AbortError", message: String(reason) };
    this.#thread.post({ t: "abort", id, name, message });
    this.#thread.post({ t: "ping" });
    if (this.#unansweredPings++ === 0) this.#awaitPong();
  }

  #awaitPong(): void {
    // Terminating the thread is the only way to stop a function that blocks it.
    this.#watch = this.#deps.scheduler.after(ANSWER_TIMEOUT_MS, () => void this.#thread.terminate());
  }

  #pong(): void {
    this.#watch?.();
    if (--this.#unansweredPings > 0) this.#awaitPong();
    else this.#deps.ready();
  }

  #handle(message: FromWorker): void {
    switch (message.t) {
      case "ready":
        this.#isReady = true;
        return this.#deps.ready();
      case "refused":
        this.failure = message.error.message;
        return void this.#thread.terminate();
      case "log":
        return this.#deps.logger[message.level](message.message, message.fields);
      case "pong":
        return this.#pong();
      case "fact":
        return this.#emit(this.#calls.get(message.id), message.fact);
      case "record":
      case "store":
        return this.#request(message);
      case "done": {
        const work = this.#calls.get(message.id);
        this.#calls.delete(message.id);
        work?.removeListener();
        work?.settle(message.outcome);
      }
    }
  }

  #emit(work: RunningCall | undefined, fact: Fact): void {
    if (work === undefined) return;
    if (fact.t === "message") work.messages.push(work.io.emit(fact));
    else if (fact.t === "token" || fact.t === "piece") {
      const m = work.messages[fact.m] ?? -1;
      if (m >= 0) work.io.emit({ ...fact, m });
    } else work.io.emit(fact);
  }

  /** Performs a request that a node function has sent, and posts the result. */
  #request(message: Extract<FromWorker, { t: "record" | "store" }>): void {
    const { id, ask } = message;
    const answer = (result: Pick<Extract<ToWorker, { t: "answer" }>, "value" | "error">) => {
      if (!this.#isOver) this.#thread.post({ t: "answer", id, ask, ...result });
    };
    const work = this.#calls.get(id);
    const refuse = (error: unknown) => {
      const code = error instanceof ServiceError ? { code: error.code } : {};
      answer({ error: { ...toPlainError(error), ...code } });
    };
    if (message.t === "record") {
      if (work === undefined) return answer({});
      work.io.record(message.step, message.value).then(() => answer({}), refuse);
    } else if (work === undefined) {
      refuse(new ServiceError("journal.fenced", "This attempt is over: it can no longer use the store"));
    } else work.io.store(message.ops).then((value) => answer({ value }), refuse);
  }

  #end(why: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#watch?.();
    const begun = Atomics.load(this.#begun, 0);
    const error = { error: "WorkerLostError", message: `The thread in which the node ran has ended: ${why}` };
    const notBegun: WorkerCall[] = [];
    for (const [id, work] of this.#calls) {
      work.removeListener();
      if (id > begun) notBegun.push(work);
      else work.settle({ kind: "failed", error });
    }
    this.#calls.clear();
    this.#deps.ended(notBegun);
  }
}
