import { ServiceError } from "../src/model/errors.ts";
import { newThread, type ThreadKey, type ThreadRecord } from "../src/model/thread.ts";
import type { SystemDeps, ThreadDraft } from "./port.ts";

/** Makes a thread. It needs no actor before its first run. */
export async function create(
  { journal, clock }: Pick<SystemDeps, "journal" | "clock">,
  key: ThreadKey,
  draft: ThreadDraft,
): Promise<ThreadRecord> {
  const existing = await journal.thread(key);
  if (existing !== undefined) return taken(existing, draft);
  const thread = { ...newThread(key.thread, clock.now(), draft), seq: 1 };
  try {
    await journal.append({ key, fence: { epoch: 0, seq: 0 }, kind: "created", durable: true, thread });
  } catch (cause) {
    // Another request made it in between: the journal's fence lets only one pass.
    const lost = cause instanceof ServiceError && /^journal\.(conflict|fenced)$/.test(cause.code);
    const made = lost ? await journal.thread(key) : undefined;
    if (made === undefined) throw cause;
    return taken(made, draft);
  }
  return thread;
}

function taken(thread: ThreadRecord, draft: ThreadDraft): ThreadRecord {
  if (draft.if_exists === "do_nothing" && thread.temporary === null) return thread;
  throw new ServiceError("thread.exists", "Thread already exists");
}
