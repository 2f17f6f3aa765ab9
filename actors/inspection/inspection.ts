import type { AnyActorRef } from "../xstate.ts";
import type { ThreadKey } from "../../src/model/thread.ts";
import type { Inspector, InspectScope } from "../../src/ports/inspector.ts";
import type { Cell } from "../thread/live-thread.ts";
import { Hook } from "./inspection-hook.ts";

/** The inspectors and the threads that they inspect. Without an inspector no actor has a hook, and none is created. */
export class Inspection {
  readonly #watches = new Set<Watch>();

  /** Shows the live actors, and from now on what happens to them, until the returned function is called. */
  add(scope: InspectScope, inspector: Inspector, cells: Iterable<Cell>): () => void {
    const watch = new Watch(scope, inspector);
    this.#watches.add(watch);
    for (const cell of cells) if (cell.actor !== undefined) watch.met(cell, cell.actor)?.show();
    return () => {
      this.#watches.delete(watch);
      watch.stop();
    };
  }

  /** Called when a thread's actor was created and is about to start. */
  met(cell: Cell, actor: AnyActorRef): void {
    for (const watch of this.#watches) watch.met(cell, actor);
  }
}

class Watch {
  readonly #scope: InspectScope;
  readonly #inspector: Inspector;
  readonly #hooks = new Set<Hook>();

  constructor(scope: InspectScope, inspector: Inspector) {
    this.#scope = scope;
    this.#inspector = inspector;
  }

  met(cell: Cell, actor: AnyActorRef): Hook | undefined {
    if (!isIn(this.#scope, cell.key)) return undefined;
    const hook = new Hook(cell, actor, this.#scope, this.#inspector);
    this.#hooks.add(hook);
    // The actor system ends with the thread: a thread that was removed from memory must not be kept alive.
    const gone = () => this.#hooks.delete(hook);
    actor.subscribe({ complete: gone, error: gone });
    return hook;
  }

  stop(): void {
    for (const hook of this.#hooks) hook.stop();
    this.#hooks.clear();
  }
}

export function isIn(scope: InspectScope, { tenant, thread }: ThreadKey): boolean {
  return scope.tenant === tenant && (scope.thread === null || scope.thread === thread);
}
