import { UNRESPONSIVE_MS } from "../ports/peers.ts";
import type { Scheduler } from "../ports/scheduler.ts";

/** Milliseconds between two checks of a process while a request to it is pending. */
const CHECK_INTERVAL_MS = 2_000;

export interface PeerProcessLivenessDeps {
  readonly scheduler: Scheduler;
  /** Sends a request that any process responds to at once. Settles when the process has responded, or the connection has failed. */
  ping(): Promise<unknown>;
  /** Called once, when the process has not responded to a ping for {@link UNRESPONSIVE_MS}. */
  onUnresponsive(): void;
}

/**
 * Checks whether another process of the server or of the cluster responds while requests to it are pending. A response may take as long as
 * its work needs, so a request itself has no time limit. But a process that hangs keeps its connections open, and would otherwise never be
 * noticed.
 */
export class PeerProcessLiveness {
  readonly #deps: PeerProcessLivenessDeps;
  #pending = 0;
  #isChecking = false;
  #isStopped = false;

  constructor(deps: PeerProcessLivenessDeps) {
    this.#deps = deps;
  }

  /** Must be called when a request or a socket to the process begins. Returns the function to call once it has ended. */
  begin(): () => void {
    this.#pending++;
    if (!this.#isChecking) this.#checkLater();
    return () => void this.#pending--;
  }

  /** Ends the checks. */
  stop(): void {
    this.#isStopped = true;
  }

  #checkLater(): void {
    this.#isChecking = true;
    this.#deps.scheduler.after(CHECK_INTERVAL_MS, () => {
      this.#isChecking = false;
      if (this.#pending > 0 && !this.#isStopped) this.#check();
    });
  }

  #check(): void {
    const { scheduler, ping, onUnresponsive } = this.#deps;
    this.#isChecking = true;
    let hasSettled = false;
    const cancel = scheduler.after(UNRESPONSIVE_MS, () => {
      // If this process itself was paused, the response may have arrived already. Node reads it within two turns of the event loop.
      scheduler.soon(() =>
        scheduler.soon(() => {
          if (!hasSettled && !this.#isStopped) onUnresponsive();
        }),
      );
    });
    const settled = (): void => {
      hasSettled = true;
      cancel();
      this.#checkLater();
    };
    // A ping that fails is no reason to end the requests: if their connections have failed too, they end by themselves.
    ping().then(settled, settled);
  }
}
