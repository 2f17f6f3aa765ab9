import type { ThreadKey } from "../model/thread.ts";
import type { Damage } from "../ports/journal.ts";
import { ServiceError } from "../model/errors.ts";
import { unseal } from "./envelope.ts";
import { checkItem } from "./item-check.ts";
import { ALL, splitThread, threadPrefix, unsegment, within } from "./keys.ts";
import type { Kv } from "./kv.ts";
import { ThreadCheck, type Swept } from "./thread-check.ts";

/**
 * Reads every value once, in the order of the keys, and checks each thread when its last key has gone by: what is held at
 * a time is one thread's bookkeeping, never its data.
 */
export async function* verify(kv: Kv, swept: Swept, only: ThreadKey | undefined): AsyncGenerator<Damage> {
  let prefix = "";
  let check: ThreadCheck | undefined;
  const range = only === undefined ? ALL : within(threadPrefix(only));
  for await (const [at, bytes] of kv.entries(range)) {
    if (check !== undefined && !at.startsWith(prefix)) {
      yield* check.end();
      check = undefined;
    }
    if (check === undefined) {
      const split = splitThread(at);
      if (split === undefined) {
        yield* checkOther(kv, at, bytes);
        continue;
      }
      prefix = threadPrefix(split.key);
      check = new ThreadCheck(kv, split.key, prefix, swept);
    }
    check.add(at.slice(prefix.length), bytes);
  }
  if (check !== undefined) yield* check.end();
}

/** A value of the catalog, or of the server. */
function* checkOther(kv: Kv, at: string, bytes: Buffer): Generator<Damage> {
  const tenant = at.startsWith("!") ? "" : unsegment(at.slice(0, at.indexOf("/")));
  const key = { tenant, thread: "" };
  try {
    unseal(bytes, key, at);
    for (const what of checkItem(kv, at, bytes)) yield { key, what };
  } catch (error) {
    yield { key, what: messageOf(error) };
  }
}

export function messageOf(error: unknown): string {
  return error instanceof ServiceError ? error.message : String(error);
}
