import { ServiceError } from "../model/errors.ts";
import type { Append, Fence } from "../ports/journal.ts";
import type { ThreadHead } from "./thread-heads.ts";

/**
 * Checks a fence: the `epoch` and `seq` that a writer expects the thread to have. Returns an error if the thread has other values, else
 * undefined.
 */
export function fenceErrorOf(head: ThreadHead, { epoch, seq }: Fence): ServiceError | undefined {
  if (head.epoch !== epoch) return fencedError(head, epoch);
  if (head.seq !== seq) {
    return new ServiceError(
      "journal.conflict",
      `Thread ${head.key.thread} is at append ${head.seq}, not at ${seq}: another writer was faster`,
    );
  }
  return undefined;
}

export function fencedError(head: Pick<ThreadHead, "key" | "epoch">, epoch: number): ServiceError {
  return new ServiceError(
    "journal.fenced",
    `Thread ${head.key.thread} is at epoch ${head.epoch}, not at ${epoch}: this writer was replaced`,
  );
}

/**
 * Returns an error unless the thread record of an append follows the append's fence: it is of the same thread, its `seq` is one higher, and
 * its `epoch` is the same or one higher. The fence of the next append is taken from this record.
 */
export function checkFollowsFence({ key, fence, thread }: Append): ServiceError | undefined {
  const next = thread.epoch === fence.epoch || thread.epoch === fence.epoch + 1;
  if (thread.seq === fence.seq + 1 && next && thread.thread_id === key.thread) return undefined;
  return new ServiceError(
    "journal.conflict",
    `The record of thread ${key.thread} (append ${thread.seq}, epoch ${thread.epoch}) does not follow its fence ` +
      `(append ${fence.seq}, epoch ${fence.epoch})`,
  );
}

/**
 * Rejects with `error` once the thread's writes in flight have settled. One of them is the newer write because of which this write is
 * refused. A caller that reads the thread after the rejection then finds that write.
 */
export function rejectAfterFlights(head: ThreadHead, error: ServiceError): Promise<never> {
  const fail = (): never => {
    throw error;
  };
  return head.tail === undefined ? Promise.reject(error) : head.tail.then(fail, fail);
}
