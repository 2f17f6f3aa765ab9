import { plainError, ServiceError } from "../model/errors.ts";
import type { Fact } from "../model/run-event.ts";
import type { NodeCall, TaskOutcome } from "../ports/engine.ts";
import type { NodeIo } from "../ports/node-host.ts";
import type { Logger } from "../ports/logger.ts";
import type { Cancel, Scheduler } from "../ports/scheduler.ts";
import type { WorkerThread } from "../ports/worker-thread.ts";
import type { FromWorker, ToWorker } from "./worker-messages.ts";

/** Milliseconds in which a worker that was told to stop a body has to say anything at all. */
const PATIENCE = 2_000;

/** A call of a node that a worker has taken. */
export interface Taken {
  readonly call: NodeCall;
  readonly io: NodeIo;
  /** Tells its outcome. */
  settle(outcome: TaskOutcome): void;
}

/** A call at work. */
interface Work extends Taken {
  /** The ids of its messages' events, by their numbers in the worker. */
  readonly messages: number[];
  readonly forget: () => void;
}

export interface SeatDeps {
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  /** It takes calls from now on. */
  ready(): void;
  /** It takes none any more, and those that it had have failed. `refused`: its graphs could not be loaded. */
  ended(refused: boolean): void;
}

/** One worker, as the server sees it. */
export class Seat {
  readonly #thread: WorkerThread<ToWorker, readonly FromWorker[]>;
  readonly #deps: SeatDeps;
  readonly #work = new Map<number, Work>();
  #ids = 0;
  #isReady = false;
  #isOver = false;
  /** Grows with all that it says. */
  #said = 0;
  #watch: Cancel | undefined;
  /** Why its graphs could not be loaded. */
  failure: string | undefined;

  constructor(thread: WorkerThread<ToWorker, readonly FromWorker[]>, deps: SeatDeps) {
    this.#thread = thread;
    this.#deps = deps;
    thread.onMessage((messages) => {
      this.#said++;
      for (const message of messages) this.#take(message);
    });
    thread.onEnd((why) => this.#end(why));
  }

  get isReady(): boolean {
    return this.#isReady && !this.#isOver;
  }

  get load(): number {
    return this.#work.size;
  }

  /** @throws DOMException `DataCloneError` for what cannot go to another thread */
  take(taken: Taken): void {
    const id = this.#ids++;
    this.#thread.post({ t: "call", id, call: taken.call });
    const { signal } = taken.io;
    const abort = () => this.#abort(id, signal.reason as unknown);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
    const forget = () => signal.removeEventListener("abort", abort);
    this.#work.set(id, { ...taken, messages: [], forget });
  }

  close(): Promise<void> {
    return this.#thread.terminate();
  }

  #abort(id: number, reason: unknown): void {
    const { name, message } =
      reason instanceof Error ? reason : { name: "AbortError", message: String(reason) };
    this.#thread.post({ t: "abort", id, name, message });
    this.#thread.post({ t: "ping" });
    if (this.#watch !== undefined) return;
    const said = this.#said;
    this.#watch = this.#deps.scheduler.after(PATIENCE, () => {
      this.#watch = undefined;
      if (this.#isOver || this.#said !== said) return;
      // A body that never gives its thread back can be ended in no other way.
      void this.#thread.terminate();
    });
  }

  #take(message: FromWorker): void {
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
        return;
      case "fact":
        return this.#tell(this.#work.get(message.id), message.fact);
      case "record":
      case "store":
        return this.#asked(message);
      case "done": {
        const work = this.#work.get(message.id);
        this.#work.delete(message.id);
        work?.forget();
        work?.settle(message.outcome);
      }
    }
  }

  #tell(work: Work | undefined, fact: Fact): void {
    if (work === undefined) return;
    if (fact.t === "message") work.messages.push(work.io.emit(fact));
    else if (fact.t === "token" || fact.t === "piece") {
      const m = work.messages[fact.m] ?? -1;
      if (m >= 0) work.io.emit({ ...fact, m });
    } else work.io.emit(fact);
  }

  /** Does what a body asks for, and tells it how that went. */
  #asked(message: Extract<FromWorker, { t: "record" | "store" }>): void {
    const { id, ask } = message;
    const answer = (told: Pick<Extract<ToWorker, { t: "answer" }>, "value" | "error">) => {
      if (!this.#isOver) this.#thread.post({ t: "answer", id, ask, ...told });
    };
    const work = this.#work.get(id);
    const refuse = (error: unknown) => {
      const code = error instanceof ServiceError ? { code: error.code } : {};
      answer({ error: { ...plainError(error), ...code } });
    };
    if (message.t === "record") {
      if (work === undefined) return answer({});
      work.io.record(message.step, message.value).then(() => answer({}), refuse);
    } else if (work === undefined) {
      refuse(
        new ServiceError("journal.fenced", "This attempt is over: it does not reach the store any more"),
      );
    } else work.io.store(message.ops).then((value) => answer({ value }), refuse);
  }

  #end(why: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#watch?.();
    const lost = [...this.#work.values()];
    this.#work.clear();
    this.#deps.ended(this.failure !== undefined);
    const error = { error: "WorkerLostError", message: `The thread in which the node ran has ended: ${why}` };
    for (const work of lost) {
      work.forget();
      work.settle({ kind: "failed", error });
    }
  }
}
