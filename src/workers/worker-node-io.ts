import { ServiceError } from "../model/errors.ts";
import type { StoreOp, StoreResults } from "../model/store-item.ts";
import type { Fact } from "../model/run-event.ts";
import type { NodeIo } from "../ports/node-executor.ts";
import type { FromWorker, ToWorker } from "./worker-messages.ts";

type Post = (message: FromWorker) => void;

/** The `NodeIo` of a node function in a worker thread. Each operation is a message to the server's thread, which performs the operation. */
export class WorkerNodeIo implements NodeIo {
  readonly #id: number;
  readonly #post: Post;
  #isOver = false;
  #messages = 0;
  #requests = 0;
  /** The controller of the abort signal. It is made when the signal is first read. */
  #controller: AbortController | undefined;
  #reason: DOMException | undefined;
  readonly #pending = new Map<number, { resolve(value: unknown): void; reject(why: Error): void }>();

  constructor(id: number, say: Post) {
    this.#id = id;
    this.#post = say;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#reason !== undefined) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  end(): void {
    this.#isOver = true;
  }

  emit(fact: Fact): number {
    if (this.#isOver) return -1;
    this.#post({ t: "fact", id: this.#id, fact });
    return fact.t === "message" ? this.#messages++ : 0;
  }

  record(step: string, value: unknown): Promise<void> {
    return this.#request((ask) => ({ t: "record", id: this.#id, ask, step, value })) as Promise<void>;
  }

  store<const Ops extends readonly StoreOp[]>(ops: Ops): Promise<StoreResults<Ops>> {
    return this.#request((ask) => ({ t: "store", id: this.#id, ask, ops })) as Promise<StoreResults<Ops>>;
  }

  #request(message: (ask: number) => FromWorker): Promise<unknown> {
    const ask = this.#requests++;
    return new Promise((resolve, reject) => {
      this.#pending.set(ask, { resolve, reject });
      this.#post(message(ask));
    });
  }

  abort({ name, message }: Extract<ToWorker, { t: "abort" }>): void {
    this.#reason ??= new DOMException(message, name);
    this.#controller?.abort(this.#reason);
  }

  answer({ ask, value, error }: Extract<ToWorker, { t: "answer" }>): void {
    const asked = this.#pending.get(ask);
    this.#pending.delete(ask);
    if (error === undefined) asked?.resolve(value);
    else if (error.code !== undefined) asked?.reject(new ServiceError(error.code, error.message));
    else asked?.reject(Object.assign(new Error(error.message), { name: error.error }));
  }
}
