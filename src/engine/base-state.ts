import type { JsonObject } from "../model/json.ts";
import type { Position } from "../ports/engine.ts";
import type { Definition } from "../graph/definition.ts";
import { initialValues, type Applied } from "../graph/superstep.ts";
import { migrated } from "./graph-migration.ts";
import type { ReadWrite } from "./normalized-writes.ts";

/** What an update starts from. */
export interface Ground {
  readonly definition: Definition;
  readonly position: Position;
  /** The graph's name. */
  readonly graph: string;
}

export interface Base extends Applied {
  /** Has another form of the graph left the state? */
  readonly changed: boolean;
  /** Why its `migrate` could not make it fit; the update may, all the same. */
  readonly failure: string | null;
}

/** What the writes are applied to: the state, brought into the form of the graph, with what keys begin with. */
export function baseOf(asked: Ground, read: readonly ReadWrite[]): Base {
  const { definition, position, graph } = asked;
  const { head } = position;
  let { values } = position;
  let changes: Applied["changes"] = {};
  let failure: string | null = null;
  const changed = head !== null && head.graph !== definition.hash;
  if (changed) {
    const made = migrated({ definition, head, stored: values, run: { graph_id: graph } });
    if (typeof made === "string") failure = made;
    else if (made !== null) ({ values, changes } = made);
    values = withoutFaulty(definition, values, read);
  }
  const initial = initialValues(definition, values);
  if (initial === undefined) return { values, changes, changed, failure };
  return { values: initial.values, changes: { ...changes, ...initial.changes }, changed, failure };
}

/** What is written takes the place of a value that its key cannot hold any more. */
function withoutFaulty({ rules }: Definition, values: JsonObject, read: readonly ReadWrite[]): JsonObject {
  const written = new Set(read.flatMap(({ updates }) => updates.flatMap((update) => Object.keys(update))));
  const kept = Object.entries(values).filter(
    ([key, value]) => !written.has(key) || (rules.get(key)?.check?.(value, key) ?? []).length === 0,
  );
  return Object.fromEntries(kept);
}
