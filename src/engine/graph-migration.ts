import type { ChannelChange, CheckpointHead, PendingTaskWrites } from "../model/checkpoint.ts";
import { toPlainError, type PlainError } from "../model/errors.ts";
import { uuid5 } from "../model/ids.ts";
import { isObject, toStorable, type JsonObject } from "../model/json.ts";
import type { ChannelRule } from "../graph/channel.ts";
import { START } from "../graph/definition-checks.ts";
import type { GraphDefinition } from "../graph/definition.ts";
import { END } from "../graph/commands.ts";
import { ownValue, type StateChange, type StoredTarget } from "../graph/superstep.ts";
import { NULL_TASK_ID, type SuperstepState } from "./superstep-state.ts";

/** The most faults that one error message lists. */
const MAX_FAULTS = 5;

/** A graph, and a stored state that another version of the graph may have made. */
interface StoredState {
  readonly definition: GraphDefinition;
  readonly head: CheckpointHead | null;
  readonly stored: JsonObject;
  readonly run: { readonly graph_id: string };
}

/**
 * Runs the graph's `migrate` on a state that an earlier version of the graph made. Returns the change of the state;
 * null if there is nothing to migrate; an error message if the migration fails.
 */
export function runMigration({ definition, head, run, stored }: StoredState): StateChange | string | null {
  if (definition.migrate === undefined || head === null) return null;
  // The state of another graph cannot be migrated.
  if ((head.metadata["graph_id"] ?? run.graph_id) !== run.graph_id) return null;
  try {
    const made = definition.migrate(stored, { from: head.graph });
    if (!isObject(made)) throw new TypeError("it must return the state, an object of state keys");
    return stateChanges(definition.rules, stored, made, head.id);
  } catch (thrown) {
    return toPlainError(thrown).message;
  }
}

/** Migrates the state; the next checkpoint stores the result. Returns an error if the migration fails, else null. */
export function migrateState(superstep: SuperstepState): PlainError | null {
  const made = runMigration(superstep);
  if (typeof made === "string") {
    return {
      error: "GraphChangedError",
      message: `${describeChange(superstep)}, and its migrate function failed: ${made}`,
    };
  }
  if (made !== null) superstep.replaceValues(made);
  return null;
}

/** The changes from the stored state to the migrated one. Keys that the graph no longer has stay as they are. */
function stateChanges(
  rules: ReadonlyMap<string, ChannelRule>,
  stored: JsonObject,
  made: JsonObject,
  namespace: string,
): StateChange {
  const values: Record<string, unknown> = { ...stored };
  const changes: Record<string, ChannelChange> = {};
  for (const key of Object.keys(made)) {
    if (!rules.has(key) && !Object.hasOwn(stored, key)) throw new TypeError(`the state has no key "${key}"`);
  }
  for (const [key, rule] of rules) {
    const before = ownValue(stored, key);
    const after = ownValue(made, key);
    if (rule.life === "never" || after === before) continue;
    if (after === undefined) {
      delete values[key];
      changes[key] = { kind: "clear" };
    } else if (rule.kind === "list" || rule.kind === "messages") {
      const read = rule.read(after, key, (index) => uuid5(`${key}:${index}`, namespace));
      const items = (rule.update(undefined, [read], key)?.value ?? []) as readonly unknown[];
      values[key] = items;
      changes[key] = { kind: "append", keep: 0, items };
    } else {
      values[key] = toStorable(after, key);
      changes[key] = { kind: "set", value: values[key] };
    }
  }
  return { values: Object.freeze(values), changes };
}

/**
 * Checks whether a thread can continue in a graph that has changed since the thread's checkpoint. Returns an
 * error; null if the thread can continue. If `going` is `"state"`, only the values are checked and not the
 * planned tasks, because a command names the nodes to run.
 */
export function graphChangeError(superstep: SuperstepState, going: "step" | "state"): PlainError | null {
  const faults = [...(going === "step" ? stepFaults(superstep) : []), ...stateFaults(superstep)];
  if (faults.length === 0) return null;
  const more = faults.length > MAX_FAULTS ? `; and ${faults.length - MAX_FAULTS} more` : "";
  return {
    error: "GraphChangedError",
    message:
      `${describeChange(superstep)}, and the thread cannot go on: ${faults.slice(0, MAX_FAULTS).join("; ")}${more}. ` +
      `Nothing is lost: name a node to go on with (command.goto), mend the state, or give the graph a migrate function`,
  };
}

/**
 * The error with which a graph's machine cannot continue from a checkpoint; null if it can, or if the graph was not made from a machine.
 * Checked before a run applies anything, so that the machine's question stays open if the check fails.
 */
export function machineContinuationError(
  { machine, hash }: GraphDefinition,
  head: CheckpointHead | null,
  values: JsonObject,
): PlainError | null {
  // A machine that is done, or that has not begun, has nothing to continue.
  if (machine === undefined || head === null || head.next.length === 0 || head.next[0]?.name === START)
    return null;
  return machine.continuationError(values, head.graph !== hash);
}

function describeChange({ head, run, definition }: StoredState): string {
  const made = head?.metadata["graph_id"];
  if (typeof made === "string" && made !== run.graph_id) {
    return `The thread's latest state was made by the graph "${made}", not by "${run.graph_id}"`;
  }
  const [from, to] = [head?.graph ?? "", definition.hash].map((hash) => hash.slice(0, 8));
  return `The graph "${run.graph_id}" has changed since the thread paused (${from} to ${to})`;
}

function* stepFaults({ head, pendingWrites, definition, waiting }: SuperstepState): Generator<string> {
  const { nodes, rules } = definition;
  const missingNodes = new Set<string>();
  const checkNode = (name: string) => {
    if (!nodes.has(name) && name !== END && name !== START) missingNodes.add(name);
  };
  const missingKeys = new Set<string>();
  for (const { id, name } of head?.next ?? []) {
    const result = pendingWrites.get(id)?.result;
    if (result === undefined) checkNode(name);
    else checkWrites(result, checkNode, (key) => missingKeys.add(`the update of "${name}" has "${key}"`));
  }
  const given = pendingWrites.get(NULL_TASK_ID)?.result;
  if (given !== undefined) checkWrites(given, checkNode, (key) => missingKeys.add(`an update has "${key}"`));
  for (const name of Object.keys(waiting.deferred)) checkNode(name);
  for (const name of missingNodes)
    yield `it waits at the node "${name}", which is gone; the nodes are ${[...nodes.keys()].join(", ")}`;
  for (const what of missingKeys) yield `${what}, which is no key of the state any more`;

  function checkWrites(
    { value, goto = [] }: NonNullable<PendingTaskWrites["result"]>,
    node: (name: string) => void,
    key: (name: string) => void,
  ): void {
    for (const move of goto as readonly StoredTarget[]) node(typeof move === "string" ? move : move.node);
    for (const name of Object.keys(isObject(value) ? value : {})) if (!rules.has(name)) key(name);
  }
}

/**
 * The first faults of a state, at most {@link MAX_FAULTS}: values that the graph's schema refuses, and
 * required keys without a value.
 */
export function someStateFaults(of: Pick<SuperstepState, "definition" | "values">): readonly string[] {
  return [...stateFaults(of)].slice(0, MAX_FAULTS);
}

function* stateFaults({
  definition,
  values,
}: Pick<SuperstepState, "definition" | "values">): Generator<string> {
  for (const [key, rule] of definition.rules) {
    const value = ownValue(values, key);
    if (value !== undefined) {
      for (const { at, message } of rule.check?.(value, `state.${key}`) ?? []) yield `${at}: ${message}`;
    } else if (rule.required === true) {
      yield `state.${key} is required and has no value`;
    }
  }
}
