import { hasWork, type ThreadKey, type ThreadRecord } from "../src/model/thread.ts";
import type { Journal } from "../src/ports/journal.ts";
import type { Logger } from "../src/ports/logger.ts";
import type { Scheduler } from "../src/ports/scheduler.ts";
import type { RunEnd } from "./port.ts";
import type { Cell } from "./thread/cell.ts";

/** Milliseconds that a temporary thread is kept for readers who have not come to its end, or may come back for it. */
const LINGER = 60_000;

interface Deps {
  readonly journal: Journal;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
}

/** Has it nothing more to do than to be deleted, now that the process it lived in has ended? */
export function isLeftOver(thread: ThreadRecord): boolean {
  const { temporary } = thread;
  return temporary !== null && (temporary === "bound" || !hasWork(thread));
}

/** Threads that were made for one run, and what becomes of them. */
export class Temporaries {
  readonly #deps: Deps;
  readonly #letGo: (cell: Cell) => void;

  constructor(deps: Deps, letGo: (cell: Cell) => void) {
    this.#deps = deps;
    this.#letGo = letGo;
  }

  /** A run has ended: if the thread was made for it, it goes too. */
  concluded(cell: Cell, { run }: RunEnd, isRead: boolean): void {
    const { temporary } = cell.record;
    if (temporary === null || cell.runs.size > 0) return;
    // One that was stopped has nothing to come back for.
    const isAwaited = temporary === "free" && run !== undefined && run.cancel === null;
    const remove = () => {
      this.#letGo(cell);
      this.remove(cell.key, cell.record);
    };
    if (isRead || isAwaited) this.#deps.scheduler.after(LINGER, remove);
    else remove();
  }

  /** When it fails, the next start finds the thread, and deletes it. */
  remove(key: ThreadKey, { epoch, seq }: ThreadRecord): void {
    this.#deps.journal.remove(key, { epoch, seq }).catch((cause: unknown) => {
      this.#deps.logger.info("a temporary thread is left to the next start to delete", {
        thread: key.thread,
        cause: String(cause),
      });
    });
  }
}
