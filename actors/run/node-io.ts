import type { NodeIo } from "../../src/ports/node-host.ts";
import { type RunningTask, signalOf } from "./running-tasks.ts";

/** The functions that a node's body can call on its attempt. */
export class TaskIo implements NodeIo {
  readonly emit: NodeIo["emit"];
  readonly record: NodeIo["record"];
  readonly store: NodeIo["store"];
  readonly #live: RunningTask;

  constructor(live: RunningTask, emit: NodeIo["emit"], record: NodeIo["record"], store: NodeIo["store"]) {
    this.#live = live;
    this.emit = emit;
    this.record = record;
    this.store = store;
  }

  get signal(): AbortSignal {
    return signalOf(this.#live);
  }
}
