import type { Cancel, Scheduler } from "../ports/scheduler.ts";

/** Milliseconds between two checks of a process. */
const CHECK_INTERVAL_MS = 1_000;
/** The number of checks without a response after which a process is unresponsive. */
const UNRESPONSIVE_CHECKS = 2;

/** Milliseconds in which a process has to accept requests, or to report progress, after its start, unless the server is told otherwise. */
export const DEFAULT_START_LIMIT_MS = 300_000;
/** The shortest such limit, in milliseconds. */
export const SHORTEST_START_LIMIT_MS = 10_000;
/** Milliseconds for which a process may respond to nothing before it is killed, unless the server is told otherwise. */
export const DEFAULT_HANG_LIMIT_MS = 60_000;
/**
 * The shortest limit, in milliseconds. It is longer than the time after which the other processes answer 503 for a process that hangs
 * (`UNRESPONSIVE_MS`), so that a process is not killed before its clients know that it hangs.
 */
export const SHORTEST_HANG_LIMIT_MS = 10_000;

export interface EventLoopWatchdogDeps {
  readonly scheduler: Scheduler;
  /** Milliseconds for which the process may respond to nothing. 0: for any time. */
  readonly limitMs: number;
  /** Asks the process to respond. It responds in the next turn of its event loop. */
  ping(): void;
  /** Called once, when the process has responded to nothing for the limit. */
  onHang(): void;
}

/**
 * Notices that a process hangs: its event loop has not turned for a long time. The time is measured in checks of this process, not by a clock.
 * While the whole machine, or this process too, is suspended or gets no CPU, there are no checks, so such a pause counts for nothing.
 */
export class EventLoopWatchdog {
  readonly #deps: EventLoopWatchdogDeps;
  #isPingPending = false;
  /** The number of checks since the pending ping. */
  #missed = 0;
  #cancel: Cancel = () => undefined;
  #isStopped = false;

  constructor(deps: EventLoopWatchdogDeps) {
    this.#deps = deps;
    this.#checkLater();
  }

  /** Whether the process has responded to nothing for some seconds. Such a process would not notice a request to stop. */
  get isUnresponsive(): boolean {
    return this.#missed >= UNRESPONSIVE_CHECKS;
  }

  /** Must be called when the process has responded to a ping. */
  answered(): void {
    this.#isPingPending = false;
    this.#missed = 0;
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
  }

  #checkLater(): void {
    this.#cancel = this.#deps.scheduler.after(CHECK_INTERVAL_MS, () => this.#check());
  }

  #check(): void {
    const { scheduler, limitMs, ping } = this.#deps;
    if (!this.#isPingPending) {
      this.#isPingPending = true;
      ping();
      this.#checkLater();
    } else if (++this.#missed * CHECK_INTERVAL_MS < (limitMs === 0 ? Infinity : limitMs)) this.#checkLater();
    // The response may have arrived already. Node reads it within two turns of the event loop.
    else scheduler.soon(() => scheduler.soon(() => this.#decide()));
  }

  #decide(): void {
    if (this.#isStopped) return;
    if (!this.#isPingPending) return this.#checkLater();
    this.#isStopped = true;
    this.#deps.onHang();
  }
}

export interface StartWatchdogDeps {
  readonly scheduler: Scheduler;
  /** Milliseconds for which the process may neither be ready nor report progress. 0: for any time. */
  readonly limitMs: number;
  /** Called once, when the limit has passed. */
  onHang(): void;
}

/**
 * Notices that a process hangs while it starts, for example because a file of graphs waits for something that never comes. Its event loop
 * may turn meanwhile. As in {@link EventLoopWatchdog}, the time is measured in checks.
 */
export class StartWatchdog {
  readonly #deps: StartWatchdogDeps;
  /** The number of checks since the start, or since the process has reported progress. */
  #checks = 0;
  #cancel: Cancel = () => undefined;

  constructor(deps: StartWatchdogDeps) {
    this.#deps = deps;
    if (deps.limitMs > 0) this.#checkLater();
  }

  /** Must be called when the process has reported progress. */
  progressed(): void {
    this.#checks = 0;
  }

  /** Must be called when the process is ready, or has ended. */
  stop(): void {
    this.#cancel();
  }

  #checkLater(): void {
    const { scheduler, limitMs, onHang } = this.#deps;
    this.#cancel = scheduler.after(CHECK_INTERVAL_MS, () => {
      if (++this.#checks * CHECK_INTERVAL_MS < limitMs) this.#checkLater();
      else onHang();
    });
  }
}
