import type { TaskWrites } from "../model/checkpoint.ts";
import type { Interrupt } from "../model/interrupt.ts";
import type { JsonObject } from "../model/json.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Journal } from "../ports/journal.ts";
import { readConsistently } from "./threads.ts";

/** A pending interrupt, with the schema of its answer. */
export interface PendingInterrupt extends Interrupt {
  /** A JSON Schema; null when none is known. */
  readonly response_schema: JsonObject | null;
}

/** Returns a function that reads the pending interrupts of a thread. */
export function pendingInterruptReader(
  journal: Journal,
): (key: ThreadKey) => Promise<readonly PendingInterrupt[]> {
  /** The pending writes at the latest checkpoint of a namespace, by task. */
  async function leftAt(key: ThreadKey, ns: string, root: string | null) {
    const id = ns === "" ? root : (await journal.history(key, { ns, limit: 1 }))[0]?.id;
    const left = id === null || id === undefined ? [] : await journal.writes(key, ns, id);
    return new Map(left.map((writes) => [writes.task, writes]));
  }

  return (key) =>
    readConsistently(journal, key, async ({ interrupts, checkpoint }) => {
      const known = new Map<string, ReadonlyMap<string, TaskWrites>>();
      const questions: PendingInterrupt[] = [];
      for (const asked of Object.values(interrupts).flat()) {
        const ns = asked.ns.slice(0, -1).join("|");
        const task = asked.ns.at(-1)?.split(":").at(-1) ?? "";
        // oxlint-disable-next-line no-await-in-loop -- one read for each graph that asks
        const left = known.get(ns) ?? (await leftAt(key, ns, checkpoint));
        known.set(ns, left);
        const schemas = left.get(task)?.schemas;
        const has = schemas !== undefined && Object.hasOwn(schemas, asked.id);
        questions.push({ ...asked, response_schema: has ? (schemas[asked.id] ?? null) : null });
      }
      return questions;
    });
}
