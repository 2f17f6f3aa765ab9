import type { ThreadKey } from "../model/thread.ts";
import type { Damage } from "../ports/journal.ts";
import { ServiceError, withCauses } from "../model/errors.ts";
import { unseal } from "./envelope.ts";
import { checkItem } from "./store-item-check.ts";
import { ALL, splitThread, threadPrefix, unsegment, within } from "./keys.ts";
import type { Kv } from "./kv.ts";
import { ThreadCheck, type Swept } from "./thread-check.ts";
import { strayOf } from "./index-repair.ts";

/**
 * Reads every value once, in the order of the keys, and checks each thread when its last key has gone by: what is held at
 * a time is one thread's bookkeeping, never its data.
 */
export async function* verify(kv: Kv, swept: Swept, only: ThreadKey | undefined): AsyncGenerator<Damage> {
  let prefix = "";
  let check: ThreadCheck | undefined;
  /** Threads of which the index has been told to be wrong. */
  const told = new Set<string>();
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
        yield* checkListed(kv, at, told);
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

/** A key of the index: is its thread to be found there? One that has lost its record is told of with what is left of it. */
async function* checkListed(kv: Kv, at: string, told: Set<string>): AsyncGenerator<Damage> {
  const key = await strayOf(kv, at);
  if (key === undefined || told.has(threadPrefix(key))) return;
  told.add(threadPrefix(key));
  yield { key, what: "it is in the index of threads, and should not be" };
}

export function messageOf(error: unknown): string {
  return error instanceof ServiceError ? withCauses(error) : String(error);
}
