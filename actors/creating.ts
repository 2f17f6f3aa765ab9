import { ServiceError } from "../src/model/errors.ts";
import { newThread, type ThreadKey, type ThreadRecord } from "../src/model/thread.ts";
import type { SystemDeps, ThreadDraft } from "./port.ts";

/** Makes a thread; the caller sees to it that nobody else makes it meanwhile. It needs no actor before its first run. */
export async function create(
  { journal, clock }: Pick<SystemDeps, "journal" | "clock">,
  key: ThreadKey,
  draft: ThreadDraft,
): Promise<ThreadRecord> {
  const existing = await journal.thread(key);
  if (existing !== undefined) return taken(existing, draft);
  const thread = { ...newThread(key.thread, clock.now(), draft), seq: 1 };
  await journal.append({ key, fence: { epoch: 0, seq: 0 }, kind: "created", durable: true, thread });
  return thread;
}

function taken(thread: ThreadRecord, draft: ThreadDraft): ThreadRecord {
  if (draft.if_exists === "do_nothing" && thread.temporary === null) return thread;
  throw new ServiceError("thread.exists", "Thread already exists");
}
