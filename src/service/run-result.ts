import type { RunEnd } from "../../actors/thread-system-interface.ts";
import type { Checkpoint } from "../model/checkpoint.ts";
import { threadDeleted } from "../model/errors.ts";
import { pick, type JsonObject } from "../model/json.ts";
import type { RunRecord } from "../model/run.ts";
import { rootCheckpointOf } from "../model/start-checkpoint.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Engine } from "../ports/engine.ts";
import type { Eventually } from "../ports/eventually.ts";
import type { Journal } from "../ports/journal.ts";
import { pendingInterruptsOf } from "./api-records.ts";

/**
 * The number of checkpoints that are read at a time, to find the last checkpoint of a run. Later runs may have added many checkpoints after
 * it.
 */
const CHECKPOINTS_PER_READ = 100;

interface Deps {
  readonly journal: Journal;
  readonly engine: Pick<Engine, "output">;
}

/**
 * The result of a run that has ended: its last state, reduced to the output keys of its graph.
 * - If the run paused, the result also has `__interrupt__` (an empty list at a breakpoint).
 * - If the run failed or timed out, the result has only `__error__`.
 * - After a rollback, `run` is undefined, and the result is the thread's state.
 *
 * The result is never null, because clients look for these keys without a type check.
 */
export function runResultOf(deps: Deps, key: ThreadKey, { run, left }: RunEnd): Eventually<JsonObject> {
  if (run?.status === "error" || run?.status === "timeout") {
    const { error, message } = run.error ?? { error: "Error", message: `The run ended with ${run.status}` };
    return { __error__: { error, message } };
  }
  const output = run === undefined ? null : deps.engine.output(run.graph_id);
  if (left !== undefined) {
    const values = output === null ? left.values : pick(left.values, output);
    return left.waiting === null ? values : { ...values, __interrupt__: left.waiting };
  }
  return read(deps, key, run, output);
}

/** Reads the result from storage. */
async function read(
  { journal }: Deps,
  key: ThreadKey,
  run: RunRecord | undefined,
  output: readonly string[] | null,
): Promise<JsonObject> {
  const checkpoint = await lastOf(journal, key, run);
  if (checkpoint === undefined) {
    // If the thread was deleted during the read, the result must not be an empty state, because the run did not end with one.
    if (run !== undefined && (await journal.thread(key)) === undefined) throw threadDeleted();
    return {};
  }
  const state = await journal.sharedValues(key, checkpoint);
  const values = output === null ? state : pick(state, output);
  if (run?.status !== "success" || checkpoint.next.length === 0) return values;
  // A run that processes a machine event and has attempt 0 has never started, so it has not paused: an
  // earlier run processed the event, and its machine continued.
  if (run.attempt === 0 && run.kwargs.event === true) return values;
  const writes = await journal.writes(key, checkpoint.ns, checkpoint.id);
  return { ...values, __interrupt__: pendingInterruptsOf(checkpoint, writes) };
}

/** The id of the root graph's checkpoint from which the run started; null: the thread had none. */
function baseOf({ kwargs, base_checkpoint }: RunRecord): string | null {
  return rootCheckpointOf(kwargs.config.configurable) ?? base_checkpoint;
}

/** The run's last checkpoint; if the run made none, the checkpoint from which it started. Without `run`, the thread's latest checkpoint. */
async function lastOf(
  journal: Journal,
  key: ThreadKey,
  run: RunRecord | undefined,
): Promise<Checkpoint | undefined> {
  const thread = await journal.thread(key);
  if (thread?.checkpoint === undefined || thread.checkpoint === null) return undefined;
  const latest = await journal.checkpoint(key, "", thread.checkpoint);
  if (run === undefined || latest === undefined || latest.run_id === run.run_id) return latest;
  const base = baseOf(run);
  if (base === latest.id) return latest;
  let before: string | undefined;
  for (;;) {
    const page = await journal.history(key, {
      ns: "",
      limit: CHECKPOINTS_PER_READ,
      ...(before !== undefined && { before }),
    });
    for (const checkpoint of page) {
      if (checkpoint.run_id === run.run_id || checkpoint.id === base) return checkpoint;
    }
    before = page.at(-1)?.id;
    if (before === undefined || (base !== null && before < base)) return undefined;
  }
}
