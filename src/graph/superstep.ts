import type { ChannelChange, PlannedTask } from "../model/checkpoint.ts";
import { SmallMap } from "../model/small-map.ts";
import { uuid5 } from "../model/ids.ts";
import { EMPTY_OBJECT, isObject, type JsonObject, toStorable, withoutMember } from "../model/json.ts";
import { START } from "./definition-checks.ts";
import type { GraphDefinition } from "./definition.ts";
import { END } from "./commands.ts";

/** A target of a task, in storable form: a node, or a node with its own input (a `send`). */
export type StoredTarget = string | { readonly node: string; readonly input: unknown };

/** The writes of a finished task. */
export interface FinishedTask {
  readonly task: PlannedTask;
  readonly update: JsonObject | null;
  /** The targets that the task chose, in addition to its fixed edges. */
  readonly goto: readonly StoredTarget[];
}

/**
 * Incomplete joins. For each node that waits for other nodes (option `after`): the other nodes that have already run.
 */
export type IncompleteJoins = { readonly [node: string]: readonly string[] };

/**
 * Nodes that were triggered but cannot run yet: nodes that still wait for other nodes (option `after`), and nodes with
 * the option `defer`.
 */
export interface WaitingNodes {
  readonly joins: IncompleteJoins;
  /** The deferred nodes that have been triggered, with their triggers. */
  readonly deferred: { readonly [node: string]: readonly string[] };
}

/** The state after updates, and the changes to store. */
export interface StateChange {
  readonly values: JsonObject;
  readonly changes: { readonly [channel: string]: ChannelChange };
}

export const PULL_KIND = "__pregel_pull";
export const PUSH_KIND = "__pregel_push";

/** The own value of a key. Never returns a property inherited from `Object.prototype`. */
export function ownValue(values: JsonObject, key: string): unknown {
  return Object.hasOwn(values, key) ? values[key] : undefined;
}

/**
 * Compares tasks by the order in which their writes are applied. That is the order of the tasks' paths, and does not depend
 * on which task finished first.
 */
export function compareTasks(a: PlannedTask, b: PlannedTask): number {
  for (let i = 0; i < Math.min(a.path.length, b.path.length); i++) {
    const [x, y] = [a.path[i], b.path[i]];
    if (x === y) continue;
    if (typeof x === "number" && typeof y === "number") return x - y;
    return String(x) < String(y) ? -1 : 1;
  }
  return a.path.length - b.path.length;
}

/**
 * Applies the updates of one superstep, which are in normal form and in the order of the tasks, to the state. The old state is
 * not changed; the new one shares its unchanged values.
 * @throws ServiceError `state.concurrent_update`, `state.invalid`, or what a reducer throws
 */
export function applyUpdates(
  { rules }: GraphDefinition,
  values: JsonObject,
  updates: readonly (JsonObject | null)[],
): StateChange {
  const changes: Record<string, ChannelChange> = {};
  let next: Record<string, unknown> | undefined;
  const write = (key: string, list: readonly unknown[]) => {
    const changed = rules.get(key)?.update(ownValue(values, key), list, key);
    if (changed === undefined) return;
    next ??= { ...EMPTY_OBJECT, ...values };
    next[key] = changed.value;
    changes[key] = changed.change;
  };
  const [only] = updates;
  if (updates.length === 1) for (const key in only) write(key, [only[key]]);
  else for (const [key, list] of writesByKey(updates)) write(key, list);
  return { values: next === undefined ? values : Object.freeze(next), changes };
}

/** The writes of several updates, by key. */
function writesByKey(updates: readonly (JsonObject | null)[]): ReadonlyMap<string, readonly unknown[]> {
  const writes = new Map<string, unknown[]>();
  for (const update of updates) {
    for (const key in update) {
      const list = writes.get(key);
      if (list === undefined) writes.set(key, [update[key]]);
      else list.push(update[key]);
    }
  }
  return writes;
}

/** Removes the values of `ephemeral` keys, which last for one step, unless the step has written them again. */
export function clearEphemeral(
  { rules }: GraphDefinition,
  before: JsonObject,
  applied: StateChange,
): StateChange {
  let { values } = applied;
  let changes: Record<string, ChannelChange> | undefined;
  for (const [key, rule] of rules) {
    if (rule.life !== "step" || !Object.hasOwn(before, key) || Object.hasOwn(applied.changes, key)) continue;
    values = Object.freeze(withoutMember(values, key));
    changes ??= Object.assign({}, applied.changes);
    changes[key] = { kind: "clear" };
  }
  return changes === undefined ? applied : { values, changes };
}

/**
 * Adds copies of the initial values of keys that `values` lacks. Returns the new state and the changes; undefined if no
 * key is added.
 */
export function initialValues({ rules }: GraphDefinition, values: JsonObject): StateChange | undefined {
  const changes: Record<string, ChannelChange> = {};
  let next: Record<string, unknown> | undefined;
  for (const [key, rule] of rules) {
    if (rule.initial === undefined || rule.life === "never" || Object.hasOwn(values, key)) continue;
    next ??= { ...EMPTY_OBJECT, ...values };
    if (rule.kind === "list" || rule.kind === "messages") {
      next[key] = rule.initial;
      changes[key] = { kind: "append", keep: 0, items: [] };
      continue;
    }
    // All threads of the graph begin with this value. Without a copy, a node that changes it in place would change it for other threads.
    const value = toStorable(rule.initial, key);
    next[key] = value;
    changes[key] = { kind: "set", value };
  }
  return next && { values: Object.freeze(next), changes };
}

/** Combines two successive changes of the state into one. */
export function combineChanges(
  first: StateChange["changes"],
  then: StateChange["changes"],
): StateChange["changes"] {
  const later = Object.keys(then);
  if (later.length === 0) return first;
  if (isEmpty(first)) return then;
  const joined: Record<string, ChannelChange> = Object.assign({}, first);
  for (const key of later) {
    const [before, after] = [joined[key], then[key] as ChannelChange];
    joined[key] =
      before?.kind === "append" && after.kind === "append" && after.keep >= before.keep
        ? {
            kind: "append",
            keep: before.keep,
            items: [...before.items.slice(0, after.keep - before.keep), ...after.items],
          }
        : after;
  }
  return joined;
}

function isEmpty(changes: StateChange["changes"]): boolean {
  for (const _ in changes) return false;
  return true;
}

/** The checkpoint for which tasks are planned. The ids of the tasks are derived from it. */
export interface TaskOrigin {
  readonly ns: string;
  readonly checkpoint: string;
  /** The number of the step in which the tasks will run. */
  readonly step: number;
}

/** A deterministic task id: the same after a restart, so that pending writes can be matched to their tasks. */
export function taskId(
  { ns, checkpoint, step }: TaskOrigin,
  name: string,
  kind: string,
  part: string | number,
): string {
  return uuid5(JSON.stringify([ns, step, name, kind, part]), checkpoint);
}

export function pullTask(site: TaskOrigin, name: string, triggers: readonly string[]): PlannedTask {
  return { id: taskId(site, name, PULL_KIND, triggers[0] ?? ""), name, path: [PULL_KIND, name], triggers };
}

export function pushTask(site: TaskOrigin, name: string, index: number, input: unknown): PlannedTask {
  const id = taskId(site, name, PUSH_KIND, index);
  return { id, name, path: [PUSH_KIND, index], triggers: [PUSH_KIND], input: { value: input } };
}

/** Makes the tasks of a step, in order: one for each node in `triggers`, then one for each of `sends`. */
export function planTasks(
  site: TaskOrigin,
  triggers: ReadonlyMap<string, readonly string[]>,
  sends: readonly { readonly node: string; readonly input: unknown }[],
): readonly PlannedTask[] {
  const tasks: PlannedTask[] = [];
  // Sorted by code units, so that the order does not depend on a locale.
  const names = triggers.size > 1 ? [...triggers.keys()].sort() : triggers.keys();
  for (const name of names) tasks.push(pullTask(site, name, triggers.get(name) ?? []));
  for (const [index, { node, input }] of sends.entries()) tasks.push(pushTask(site, node, index, input));
  return tasks;
}

/** Collects the triggers and sends of the next step. */
export class NextStepTriggers {
  readonly pulls = new SmallMap<string, readonly string[]>();
  readonly sends: { readonly node: string; readonly input: unknown }[] = [];

  addTarget(move: StoredTarget): void {
    if (typeof move !== "string") this.sends.push(move);
    else if (move !== END) this.addPull(move, `branch:to:${move}`);
  }

  addPull(node: string, trigger: string): void {
    const triggers = this.pulls.get(node);
    if (triggers === undefined) this.pulls.set(node, [trigger]);
    else if (!triggers.includes(trigger)) this.pulls.set(node, [...triggers, trigger].sort());
  }
}

/**
 * Plans the next step from the writes of a step's tasks, given in task order. Also returns the nodes that still wait.
 * @param unrun planned tasks that have not run, and that a state update replaces. Such a task is planned again if it has waited for other
 *   nodes (option `after`) and the update counts as a run of one of these: it does not wait for the others a second time
 */
export function planNext(
  definition: GraphDefinition,
  site: TaskOrigin,
  finished: readonly FinishedTask[],
  waiting: WaitingNodes,
  unrun: readonly PlannedTask[] = [],
): { readonly next: readonly PlannedTask[]; readonly waiting: WaitingNodes } {
  const triggers = new NextStepTriggers();
  for (const { task, goto } of finished) {
    const edge = definition.edges.get(task.name);
    if (edge?.kind === "always") for (const target of edge.targets) triggers.addTarget(target);
    for (const move of goto) triggers.addTarget(move);
  }
  const joins = updateJoins(definition, finished, waiting, triggers, unrun);
  const deferred = deferNodes(definition, triggers, waiting.deferred);
  const same = joins === waiting.joins && deferred === waiting.deferred;
  return {
    next: planTasks(site, triggers.pulls, triggers.sends),
    waiting: same ? waiting : { joins, deferred },
  };
}

/**
 * Removes deferred nodes from `triggers`. When nothing else is left to run, adds all deferred nodes to `triggers`.
 * @param busy true if other tasks are still to run
 * @returns the deferred nodes that still wait
 */
export function deferNodes(
  { nodes, defers }: GraphDefinition,
  triggers: NextStepTriggers,
  deferred: WaitingNodes["deferred"],
  busy = false,
): WaitingNodes["deferred"] {
  let collected: Map<string, readonly string[]> | undefined;
  if (defers) {
    for (const [name, by] of triggers.pulls) {
      if (nodes.get(name)?.defer !== true) continue;
      collected ??= new Map(Object.entries(deferred));
      collected.set(name, [...new Set([...(collected.get(name) ?? []), ...by])].sort());
      triggers.pulls.delete(name);
    }
  }
  const waiting = collected === undefined ? deferred : Object.fromEntries(collected);
  if (busy || triggers.pulls.size > 0 || triggers.sends.length > 0) return waiting;
  let released = false;
  for (const name in waiting) {
    released = true;
    for (const trigger of nodes.has(name) ? (waiting[name] ?? []) : []) triggers.addPull(name, trigger);
  }
  return released ? {} : waiting;
}

function updateJoins(
  definition: GraphDefinition,
  finished: readonly FinishedTask[],
  { joins, deferred }: WaitingNodes,
  triggers: NextStepTriggers,
  unrun: readonly PlannedTask[],
): IncompleteJoins {
  let waiting = joins;
  for (const node of definition.joins) {
    // Leaves out nodes that the join no longer waits for, which an earlier version of the graph may have stored.
    const before = entryOfNode(waiting, node.name).filter((name) => node.after.includes(name));
    const arrivals = new Set(before);
    for (const { task } of finished) if (node.after.includes(task.name)) arrivals.add(task.name);
    if (arrivals.size === before.length) continue;
    const trigger = `join:${node.after.join("+")}:${node.name}`;
    // The join is complete, but its node is deferred. The join does not begin anew if a node that it has waited for runs again meanwhile.
    if (entryOfNode(deferred, node.name).includes(trigger)) continue;
    if (unrun.some(({ name, triggers: by }) => name === node.name && by.includes(trigger))) {
      triggers.addPull(node.name, trigger);
      continue;
    }
    const { [node.name]: _, ...others } = waiting;
    if (arrivals.size === node.after.length) {
      triggers.addPull(node.name, trigger);
      waiting = others;
    } else {
      waiting = { ...others, [node.name]: [...arrivals].sort() };
    }
  }
  return waiting;
}

/** The entry of `node`. Reads only own properties, because a node may be named `constructor`. */
function entryOfNode(
  entries: { readonly [node: string]: readonly string[] },
  node: string,
): readonly string[] {
  return Object.hasOwn(entries, node) ? (entries[node] ?? []) : [];
}

/** The built-in task that writes the input to the state. */
export function startTask(site: TaskOrigin): PlannedTask {
  return pullTask(site, START, [START]);
}

const NONE_WAITING: WaitingNodes = Object.freeze({ joins: {}, deferred: {} });

/** Reads {@link WaitingNodes} from {@link CheckpointHead.engine}. */
export function parseWaitingNodes({ joins, deferred }: JsonObject): WaitingNodes {
  if (joins === undefined && deferred === undefined) return NONE_WAITING;
  return {
    joins: isObject(joins) ? (joins as IncompleteJoins) : {},
    deferred: isObject(deferred) ? (deferred as WaitingNodes["deferred"]) : {},
  };
}

/**
 * The data that stores {@link WaitingNodes} in {@link CheckpointHead.engine}, without empty members; null if both are
 * empty.
 */
export function waitingData({ joins, deferred }: WaitingNodes): JsonObject | null {
  let data: JsonObject | null = null;
  for (const _ in joins) data = { joins };
  for (const _ in deferred) return { ...data, deferred };
  return data;
}
