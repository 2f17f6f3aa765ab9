import { ServiceError } from "../model/errors.ts";
import type { Logger } from "../ports/logger.ts";
import type { Cancel, Scheduler } from "../ports/scheduler.ts";
import type { ShardLease } from "../ports/membership.ts";
import type { OwnershipMessage } from "./cluster-child.ts";
import {
  FIRST_RESTART_DELAY_MS,
  nextRestartDelay,
  type ShardChild,
  whenPrepared,
} from "./shard-processes.ts";

interface StandbyProcessDeps {
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  /** Starts a process that prepares to serve a shard. */
  start(shard: number): ShardChild;
  /** Called when the process has prepared. */
  onPrepared(): void;
}

/**
 * The process that prepares to serve a shard which moves to this node, if there is such a shard: it loads the graphs, and applies the log of
 * the shard. So the shard is without a process only for a moment when it moves. A process that ends is started again.
 */
export class StandbyProcess {
  readonly #deps: StandbyProcessDeps;
  #shard: number | undefined;
  /** Undefined until a process that has ended is started again. */
  #child: ShardChild | undefined;
  #isPrepared = false;
  #cancelRestart: Cancel = () => undefined;

  constructor(deps: StandbyProcessDeps) {
    this.#deps = deps;
  }

  get child(): ShardChild | undefined {
    return this.#child;
  }

  /** The number of the shard for which the process has prepared, in a list; empty if there is none. */
  get prepared(): readonly number[] {
    return this.#shard !== undefined && this.#isPrepared ? [this.#shard] : [];
  }

  /** Prepares to serve a shard, and gives up the preparation for any other shard. `shard`: undefined to prepare for none. */
  prepare(shard: number | undefined): void {
    if (shard === this.#shard) return;
    const given = this.#child;
    this.#forget();
    // The process owns nothing, so it needs no orderly stop.
    given?.process.kill("SIGKILL");
    this.#shard = shard;
    if (shard !== undefined) this.#start(shard, FIRST_RESTART_DELAY_MS);
  }

  /** Lets the process serve its shard under a lease, and returns it. Undefined if no process prepares for this shard. */
  serve({ shard, epoch }: ShardLease): ShardChild | undefined {
    const child = shard === this.#shard ? this.#child : undefined;
    if (child === undefined) return undefined;
    this.#forget();
    const message: OwnershipMessage = { epoch };
    // An error is ignored: the process has ended, which its new owner notices too.
    child.process.send(message, () => undefined);
    return child;
  }

  #forget(): void {
    this.#cancelRestart();
    this.#shard = undefined;
    this.#child = undefined;
    this.#isPrepared = false;
  }

  #start(shard: number, delay: number): void {
    const child = this.#deps.start(shard);
    this.#child = child;
    const isCurrent = (): boolean => this.#child === child;
    void whenPrepared(child).then(() => {
      if (!isCurrent()) return;
      this.#isPrepared = true;
      this.#deps.onPrepared();
    });
    child.started.catch((cause: unknown) => {
      if (!isCurrent()) return;
      const error = cause instanceof ServiceError ? cause.message : cause;
      this.#deps.logger.warn("a process that prepares for a shard ended: it is started again", {
        shard,
        error,
      });
    });
    child.process.once("exit", () => {
      if (!isCurrent()) return;
      this.#child = undefined;
      this.#isPrepared = false;
      this.#cancelRestart = this.#deps.scheduler.after(delay, () =>
        this.#start(shard, nextRestartDelay(delay)),
      );
    });
  }
}
