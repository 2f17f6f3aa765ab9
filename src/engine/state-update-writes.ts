import { ServiceError, invalidField } from "../model/errors.ts";
import type { JsonObject } from "../model/json.ts";
import type { StateWrite } from "../ports/state-update.ts";
import type { GraphDefinition } from "../graph/definition.ts";
import { chooseTargets, normalizeUpdate } from "../graph/node-return.ts";
import { applyUpdates, taskId, type FinishedTask, type TaskOrigin } from "../graph/superstep.ts";
import { isGiven, normalizeGoto } from "./command-input.ts";

/** The node that counts as the writer of a state update. */
export interface UpdateNode {
  readonly name: string;
  /** The update that puts a machine into the state that `as_node` names; null if `as_node` names a node. */
  readonly stateUpdate: JsonObject | null;
}

/** A validated write of a state update, in normal form. */
export interface NormalizedWrite {
  readonly name: string;
  readonly updates: readonly JsonObject[];
  /**
   * Converts this write to the form of a finished task of the node. Edges that are functions get `values` with the
   * updates applied.
   */
  finishedTask(values: JsonObject): FinishedTask;
}

/** Converts an error of a channel rule or an edge to a `ServiceError`. If the error names no field, the field is `at`. */
export function toServiceError(thrown: unknown, at: string): unknown {
  if (!(thrown instanceof Error)) return thrown;
  // Compares the error's name instead of using `instanceof`, because a graph file may have loaded its own copy of the
  // class.
  const own = thrown.name === "ServiceError" ? (thrown as ServiceError) : undefined;
  if (thrown instanceof ServiceError && thrown.fields.length > 0) return thrown;
  return new ServiceError(own?.code ?? "state.invalid", thrown.message, {
    cause: thrown,
    fields: own !== undefined && own.fields.length > 0 ? own.fields : [{ at, message: thrown.message }],
  });
}

export function isEmptyWrite({ values, command }: StateWrite): boolean {
  return !isGiven(values) && !isGiven(command);
}

/**
 * Validates a write as if the node `name` had returned it. `stateUpdate`: a further update, if the write names a state of a machine.
 * @throws ServiceError `state.invalid`, `value.unstorable`, with the field's name
 */
export function normalizeWrite(
  definition: GraphDefinition,
  write: StateWrite,
  { name, stateUpdate }: UpdateNode,
  site: TaskOrigin,
  index: number,
): NormalizedWrite {
  const id = taskId(site, name, "update", index);
  const given = isGiven(write.command) ? write.command?.update : write.values;
  const at = isGiven(write.command) ? `${write.at}command.update` : `${write.at}values`;
  const updates = updatesIn(given).map((part) => readStoredUpdate(definition, part, at, id));
  if (stateUpdate !== null) {
    const twice = Object.keys(stateUpdate).find((key) => updates.some((one) => Object.hasOwn(one, key)));
    if (twice !== undefined)
      throw invalidField(`${at}.${twice}`, "must be absent where as_node names a state");
    updates.push(stateUpdate);
  }
  const targets = normalizeGoto(definition, write.command?.goto, `${write.at}command.goto`);
  return {
    name,
    updates,
    finishedTask(values) {
      for (const one of definition.machine === undefined ? [] : updates) {
        const fault = definition.machine?.writeFault(
          one,
          () => applyUpdates(definition, values, updates).values,
        );
        if (fault !== undefined) throw invalidField(`${at}.${fault.key}`, fault.message);
      }
      const chosen = chosenBy(
        definition,
        name,
        write.at,
        () => applyUpdates(definition, values, updates).values,
      );
      const task = { id, name, path: [], triggers: [] };
      return { task, update: null, goto: [...targets, ...chosen] };
    },
  };
}

/** The updates in `values`: one object, a list of them, or one update as pairs of key and value. */
function updatesIn(values: unknown): readonly unknown[] {
  if (!isGiven(values)) return [];
  if (!Array.isArray(values) || values.length === 0) return [values];
  const list: readonly unknown[] = values;
  const pairs = list.every((part) => Array.isArray(part) && part.length === 2 && typeof part[0] === "string");
  return pairs ? [Object.fromEntries(list as readonly (readonly [string, unknown])[])] : list;
}

function readStoredUpdate(
  definition: GraphDefinition,
  part: unknown,
  at: string,
  namespace: string,
): JsonObject {
  const { update, untracked } = normalizeUpdate(definition, part, at, namespace);
  for (const key in untracked) {
    throw invalidField(`${at}.${key}`, "is never stored: it lives as long as a run, and cannot be updated");
  }
  return update ?? {};
}

function chosenBy(definition: GraphDefinition, name: string, at: string, fresh: () => JsonObject) {
  try {
    return chooseTargets(definition, name, fresh);
  } catch (thrown) {
    throw toServiceError(thrown, `${at}as_node`);
  }
}
