import type { AnyActorRef } from "../xstate.ts";
import type { Inspector, InspectScope } from "../../src/ports/inspector.ts";
import type { LiveThread } from "../thread/live-thread.ts";
import { InspectionHook } from "./inspection-hook.ts";

/** The inspectors and the threads that they inspect. Without an inspector, no hooks are created. */
export class InspectorRegistry {
  readonly #watches = new Set<Watch>();

  /**
   * Shows the live actors in `scope` to the inspector, and from now on what happens to them, until the returned
   * function is called.
   */
  add(scope: InspectScope, inspector: Inspector, liveThreads: Iterable<LiveThread>): () => void {
    const watch = new Watch(scope, inspector);
    this.#watches.add(watch);
    for (const liveThread of liveThreads)
      if (liveThread.actor !== undefined) watch.met(liveThread, liveThread.actor)?.show();
    return () => {
      this.#watches.delete(watch);
      watch.stop();
    };
  }

  /** Called when a thread's actor was created and is about to start. */
  actorCreated(liveThread: LiveThread, actor: AnyActorRef): void {
    for (const watch of this.#watches) watch.met(liveThread, actor);
  }
}

class Watch {
  readonly #scope: InspectScope;
  readonly #inspector: Inspector;
  readonly #hooks = new Set<InspectionHook>();

  constructor(scope: InspectScope, inspector: Inspector) {
    this.#scope = scope;
    this.#inspector = inspector;
  }

  met(liveThread: LiveThread, actor: AnyActorRef): InspectionHook | undefined {
    if (!isInScope(this.#scope, liveThread)) return undefined;
    const hook = new InspectionHook(liveThread, actor, this.#scope, this.#inspector);
    this.#hooks.add(hook);
    // Drops the hook when the thread's actor ends: otherwise the hook would keep the thread in memory.
    const gone = () => this.#hooks.delete(hook);
    actor.subscribe({ complete: gone, error: gone });
    return hook;
  }

  stop(): void {
    for (const hook of this.#hooks) hook.stop();
    this.#hooks.clear();
  }
}

export function isInScope(scope: InspectScope, { key, record }: Pick<LiveThread, "key" | "record">): boolean {
  const { tenant, thread } = key;
  if (scope.tenant !== tenant || (scope.thread !== null && scope.thread !== thread)) return false;
  return scope.permits === undefined || scope.permits(record.metadata);
}
