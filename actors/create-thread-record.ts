import { ServiceError } from "../src/model/errors.ts";
import { changeThread, newThreadRecord, type ThreadKey, type ThreadRecord } from "../src/model/thread.ts";
import type { SystemDeps, ThreadDraft } from "./thread-system-interface.ts";
import { CheckpointIdGenerator } from "./thread/checkpoint-ids.ts";
import { buildThreadWithState } from "./thread/state-update.ts";

/**
 * Creates a thread. Returns the existing thread with this id if `draft.if_exists` is `do_nothing`, that thread is not
 * temporary, and the user has access to it. The caller MUST hold the thread's lock.
 * @throws ServiceError `thread.exists` if there is a thread with this id that cannot be returned
 */
export async function createThreadRecord(
  deps: Pick<SystemDeps, "journal" | "clock" | "engine" | "random">,
  key: ThreadKey,
  draft: ThreadDraft,
): Promise<ThreadRecord> {
  const { journal, clock, random } = deps;
  const existing = await journal.thread(key);
  if (existing !== undefined) return taken(existing, draft);
  const made = changeThread(newThreadRecord(key.thread, clock.now(), draft), { seq: 1 });
  const fence = { epoch: 0, seq: 0 };
  if (draft.supersteps === undefined || draft.supersteps.length === 0) {
    await journal.append({ key, fence, thread: made, kind: "created", durable: true });
    return made;
  }
  const ids = new CheckpointIdGenerator(clock, random);
  const source = {
    tenant: key.tenant,
    now: () => clock.now(),
    checkpointId: (step: number, made?: string) =>
      made === undefined ? ids.next(step) : ids.above(made, step),
  };
  const { thread, checkpoints } = await buildThreadWithState(deps, source, made, draft.supersteps);
  await journal.append({ key, fence, thread, kind: "created", durable: true, checkpoints });
  return thread;
}

function taken(thread: ThreadRecord, draft: ThreadDraft): ThreadRecord {
  const { permits } = draft;
  if (draft.if_exists === "do_nothing" && thread.temporary === null && permits?.(thread.metadata) !== false)
    return thread;
  throw new ServiceError("thread.exists", "Thread already exists");
}
