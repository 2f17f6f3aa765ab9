import { plainError } from "../model/errors.ts";
import type { NodeCall } from "../ports/engine.ts";
import type { Host } from "../ports/node-host.ts";
import type { LogFields, Logger, LogLevel } from "../ports/logger.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import { BodyIo } from "./node-function-io.ts";
import { crossing, crossingFields } from "./structured-clone.ts";
import type { FromWorker, ToWorker } from "./worker-messages.ts";

/** What waits before it is posted although the turn goes on. */
const MANY = 64;

export interface BodiesDeps {
  /** Gives messages to the server. @throws DOMException `DataCloneError`, and none has been given */
  post(messages: readonly FromWorker[]): void;
  readonly scheduler: Scheduler;
}

/** The worker's side: runs node bodies for the server. */
export class Bodies {
  /** Speaks to the server. */
  readonly logger: Logger;
  readonly #deps: BodiesDeps;
  readonly #host: Host;
  /** The edition of a graph here: definitions do not cross, and the server counts its own. */
  readonly #edition: (graph: string) => number;
  readonly #running = new Map<number, BodyIo>();
  #said: FromWorker[] = [];
  #flushing = false;

  /** `host`: made with {@link logger}. */
  constructor(deps: BodiesDeps, host: (logger: Logger) => Host, edition: (graph: string) => number) {
    this.#deps = deps;
    this.logger = this.#logger();
    this.#host = host(this.logger);
    this.#edition = edition;
  }

  take(message: ToWorker): void {
    switch (message.t) {
      case "call":
        void this.#run(message.id, message.call);
        break;
      case "abort":
        this.#running.get(message.id)?.abort(message);
        break;
      case "answer":
        this.#running.get(message.id)?.answer(message);
        break;
      case "ping":
        this.say({ t: "pong" });
    }
  }

  say(message: FromWorker): void {
    this.#said.push(message);
    if (this.#said.length >= MANY) return this.#flush();
    if (this.#flushing) return;
    this.#flushing = true;
    this.#deps.scheduler.soon(() => {
      this.#flushing = false;
      this.#flush();
    });
  }

  #flush(): void {
    const said = this.#said;
    if (said.length === 0) return;
    this.#said = [];
    this.#deps.post(said);
  }

  async #run(id: number, call: NodeCall): Promise<void> {
    const io = new BodyIo(id, (message) => this.say(message));
    this.#running.set(id, io);
    try {
      const edition = this.#edition(call.graph);
      const outcome = crossing(call.node, await this.#host.run({ ...call, edition }, io));
      this.#flush();
      this.#deps.post([{ t: "done", id, outcome }]);
    } catch (thrown) {
      // What cannot go to another thread: the run that it is of must hear of it.
      this.#deps.post([{ t: "done", id, outcome: { kind: "failed", error: plainError(thrown) } }]);
    } finally {
      this.#running.delete(id);
    }
  }

  #logger(): Logger {
    const log = (level: LogLevel) => (message: string, fields?: LogFields) => {
      this.say({ t: "log", level, message, fields: fields && crossingFields(fields) });
    };
    return { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") };
  }
}
