import type { PlainError } from "../model/errors.ts";
import { isTerminal, type RunRecord } from "../model/run.ts";
import { listsRun, type ThreadKey, type ThreadRecord } from "../model/thread.ts";
import type { TimeBudget } from "../ports/time-budget.ts";
import type { RecordedEnd, RunWithLostEnd, LostRunEnds } from "../ports/lost-run-ends.ts";
import { decodeWithChecksum } from "./checksum-envelope.ts";
import { nextThread } from "./event-expiry.ts";
import {
  RUN_ENDS_COMPLETE_KEY,
  journalEntryPrefix,
  threadRecordKey,
  runPrefix,
  threadPrefix,
  unescapeSegment,
  prefixRange,
} from "./keys.ts";
import type { KeyValueStore } from "../ports/key-value-store.ts";
import { EventReader } from "./event-reader.ts";
import {
  PRESENT_MARK,
  readRun,
  runRowConverter,
  threadRowConverter,
  type JournalEntry,
} from "./stored-records.ts";

/** The lower bound of the keys of all tenants. The server's own keys begin with `!`, and `"` is the next character. */
const TENANTS = '"';

export class KeyValueLostRunEnds implements LostRunEnds {
  readonly areNone: boolean;
  readonly #kv: KeyValueStore;
  readonly #budget: TimeBudget;
  readonly #isHidden: () => boolean;
  #hasMissedSome = false;

  private constructor(kv: KeyValueStore, budget: TimeBudget, isHidden: () => boolean, areNone: boolean) {
    this.#kv = kv;
    this.#budget = budget;
    this.#isHidden = isHidden;
    this.areNone = areNone;
  }

  /**
   * Prepares the search for runs that have ended but are not stored as ended. Quarantined threads are not searched, so
   * while `isHidden` returns true (some thread is quarantined), the search counts as incomplete.
   */
  static async open(
    kv: KeyValueStore,
    budget: TimeBudget,
    isHidden: () => boolean,
  ): Promise<KeyValueLostRunEnds> {
    const noted = await (kv.unguarded ?? kv).get(RUN_ENDS_COMPLETE_KEY);
    return new KeyValueLostRunEnds(kv, budget, isHidden, noted !== undefined);
  }

  async *find(stop?: AbortSignal): AsyncGenerator<RunWithLostEnd> {
    const share = this.#budget.share();
    this.#hasMissedSome = false;
    for (let at = TENANTS; ;) {
      const key = await nextThread(this.#kv, at);
      if (key === null) return;
      try {
        yield* this.#findIn(key);
      } catch {
        // The thread is damaged, so its runs are unknown. A check reports the damage, and a repair fixes it.
        this.#hasMissedSome = true;
      }
      if (stop?.aborted === true) {
        this.#hasMissedSome = true;
        return;
      }
      if (share.isSpent()) await share.next();
      at = prefixRange(threadPrefix(key)).lt;
    }
  }

  async noteNone(): Promise<void> {
    if (this.#hasMissedSome || this.#isHidden()) return;
    await this.#kv.batch([{ key: RUN_ENDS_COMPLETE_KEY, value: PRESENT_MARK }], { sync: true });
  }

  async *#findIn(key: ThreadKey): AsyncGenerator<RunWithLostEnd> {
    const prefix = threadPrefix(key);
    const runs = runPrefix(prefix);
    for await (const [at, bytes] of this.#kv.entries(prefixRange(runs))) {
      if (isTerminal(runRowConverter.record(decodeWithChecksum(bytes, key, at)).status)) continue;
      const id = unescapeSegment(at.slice(runs.length));
      const thread = await this.#thread(key, prefix);
      // Skips temporary threads: the start of the server deletes them with their runs.
      if (thread === undefined || thread.temporary !== null || listsRun(thread, id)) continue;
      const run = await readRun((of) => this.#kv.get(of), key, prefix, id);
      if (run !== undefined) yield { key, run, end: await this.#endOf(key, prefix, run) };
    }
  }

  async #thread(key: ThreadKey, prefix: string): Promise<ThreadRecord | undefined> {
    const bytes = await this.#kv.get(threadRecordKey(prefix));
    return bytes && threadRowConverter.record(decodeWithChecksum(bytes, key, "its record"));
  }

  async #endOf(key: ThreadKey, prefix: string, run: RunRecord): Promise<RecordedEnd | null> {
    let wasStored = false;
    for await (const [at, bytes] of this.#kv.entries(prefixRange(journalEntryPrefix(prefix)))) {
      const { kind, runs, forgot } = decodeWithChecksum(bytes, key, at) as JournalEntry;
      if (forgot?.includes(run.run_id)) return null;
      wasStored ||= ENDS.has(kind) && runs?.includes(run.run_id) === true;
    }
    const events = new EventReader(this.#kv, key, prefix, run.run_id);
    const next_event = await events.next();
    if (!wasStored) return { status: "error", error: unknown(run), next_event, wasStored };
    const last = (await events.from(Math.max(0, next_event - 1), 1)).chunks.at(-1)?.facts.at(-1);
    if (last?.t === "error") {
      const status = last.error.error === "RunTimeoutError" ? "timeout" : "error";
      return { status, error: last.error, next_event, wasStored };
    }
    const status = run.cancel === null ? "success" : "interrupted";
    return { status, error: null, next_event, wasStored };
  }
}

/** The kinds of appends (names in journal entries) that may end runs. */
const ENDS: ReadonlySet<string> = new Set(["settled", "withdrawn", "mended"]);

function unknown({ run_id }: RunRecord): PlainError {
  const message = `Run ${run_id} was left by a stop of the server, and its thread has gone past it: how it ended is not known`;
  return { error: "RunLostError", message };
}
