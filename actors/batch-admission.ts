import type { RunRecord } from "../src/model/run.ts";
import type { ThreadKey, ThreadStart } from "../src/model/thread.ts";
import type { Eventually } from "../src/ports/eventually.ts";
import type { RunDraft } from "./thread-system.ts";
import { admit, cancel } from "./thread/admission.ts";
import type { Cell } from "./thread/live-thread.ts";

interface Batch {
  /** Wraps the error with which the entry of this index was refused. */
  refused(index: number, cause: unknown): unknown;
  /** @throws ServiceError `server.draining` */
  refuseWhenDraining(): void;
  wake(key: ThreadKey, start: ThreadStart | undefined): Eventually<Cell>;
  letGo(cell: Cell): void;
}

/**
 * Admits runs to new threads, all in one turn, so that no shutdown can come between them. Where one is refused, the
 * runs before it are rolled back in the same turn, before any of them has begun.
 */
export async function admitAll(
  runs: readonly { readonly key: ThreadKey; readonly draft: RunDraft }[],
  { refused, refuseWhenDraining, wake, letGo }: Batch,
): Promise<readonly RunRecord[]> {
  refuseWhenDraining();
  const cells: Cell[] = [];
  // oxlint-disable-next-line no-await-in-loop -- there is nothing to read of a thread that is new
  for (const { key, draft } of runs) cells.push(await wake(key, draft.create));
  refuseWhenDraining();
  const admitted: Promise<RunRecord>[] = [];
  for (const [i, { draft }] of runs.entries()) {
    const cell = cells[i] as Cell;
    try {
      admitted.push(admit(cell, draft));
    } catch (cause) {
      const back = takeBack(cells.slice(0, i), runs);
      for (const unused of cells.slice(i)) letGo(unused);
      await Promise.allSettled([...admitted, ...back]);
      throw refused(i, cause);
    }
  }
  const results = await Promise.allSettled(admitted);
  const failed = results.findIndex(({ status }) => status === "rejected");
  if (failed < 0) return Promise.all(admitted);
  // The storage failed in between.
  await Promise.allSettled(takeBack(cells, runs));
  throw refused(failed, (results[failed] as PromiseRejectedResult).reason);
}

function takeBack(
  cells: readonly Cell[],
  runs: readonly { readonly draft: RunDraft }[],
): readonly Promise<void>[] {
  return cells.map((cell, i) => cancel(cell, runs[i]?.draft.run_id ?? "", "rollback", null));
}
