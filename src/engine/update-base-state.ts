import type { JsonObject } from "../model/json.ts";
import type { CheckpointWithState } from "../ports/engine.ts";
import type { GraphDefinition } from "../graph/definition.ts";
import { initialValues, type StateChange } from "../graph/superstep.ts";
import { runMigration } from "./graph-migration.ts";
import type { NormalizedWrite } from "./state-update-writes.ts";

/** What a state update starts from: the graph, and the checkpoint with its state. */
export interface UpdateTarget {
  readonly definition: GraphDefinition;
  readonly position: CheckpointWithState;
  readonly graph: string;
}

/** The state to which the writes of an update are applied. */
export interface BaseState extends StateChange {
  /** True if another version of the graph made the stored state. */
  readonly changed: boolean;
  /** The error of the graph's `migrate`; null if there is none. The writes of the update may still repair the state. */
  readonly failure: string | null;
}

/** The state to update: migrated to the graph's current version, with initial values for keys that have none. */
export function baseStateOf(target: UpdateTarget, read: readonly NormalizedWrite[]): BaseState {
  const { definition, position, graph } = target;
  const { head } = position;
  let { values } = position;
  let changes: StateChange["changes"] = {};
  let failure: string | null = null;
  const changed = head !== null && head.graph !== definition.hash;
  if (changed) {
    const made = runMigration({ definition, head, stored: values, run: { graph_id: graph } });
    if (typeof made === "string") failure = made;
    else if (made !== null) ({ values, changes } = made);
    values = withoutInvalidValues(definition, values, read);
  }
  const initial = initialValues(definition, values);
  if (initial === undefined) return { values, changes, changed, failure };
  return { values: initial.values, changes: { ...changes, ...initial.changes }, changed, failure };
}

/** Drops each value that the graph's schema now refuses, if a write of the update replaces the value. */
function withoutInvalidValues(
  { rules }: GraphDefinition,
  values: JsonObject,
  read: readonly NormalizedWrite[],
): JsonObject {
  const written = new Set(read.flatMap(({ updates }) => updates.flatMap((update) => Object.keys(update))));
  const entries = Object.entries(values).filter(
    ([key, value]) => !written.has(key) || (rules.get(key)?.check?.(value, key) ?? []).length === 0,
  );
  return Object.fromEntries(entries);
}
