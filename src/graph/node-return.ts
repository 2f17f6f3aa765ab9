import { ServiceError } from "../model/errors.ts";
import { uuid5 } from "../model/ids.ts";
import { isObject, toStorable, type JsonObject } from "../model/json.ts";
import type { GraphDefinition } from "./definition.ts";
import { END, isSendCommand, isToCommand, isToParentCommand } from "./commands.ts";
import { describeType } from "./definition-checks.ts";
import { throwInvalidField } from "./parse-state-fields.ts";
import { parse } from "./standard-schema.ts";
import type { StoredTarget } from "./superstep.ts";

/** The return value of a node, validated and in normal form. */
export interface NodeResult {
  /** The update to store; null if there is none. */
  readonly update: JsonObject | null;
  /** The update of keys that are never stored; null if there is none. */
  readonly untracked: JsonObject | null;
  readonly goto: readonly StoredTarget[];
  /** The `to.parent(...)` commands, in storable form. If there are any, everything else that the node returned is dropped. */
  readonly parentCommands?: readonly unknown[];
}

/**
 * Converts an update to its normal form: the value of each key is validated, and is a storable copy unless
 * the key is never stored; messages are complete, and have ids that are derived from `namespace`.
 * @throws ServiceError `state.invalid` for an unknown key or a value that a schema refuses,
 *   `value.unstorable`; with the path
 */
export function normalizeUpdate(
  { rules }: GraphDefinition,
  update: unknown,
  at: string,
  namespace: string,
): Pick<NodeResult, "update" | "untracked"> {
  if (!isObject(update)) {
    throwInvalidField(at, `must be an object of state keys, not ${describeType(update)}`);
  }
  const stored: Record<string, unknown> = {};
  let untracked: Record<string, unknown> | null = null;
  for (const key of Object.keys(update)) {
    const write = update[key];
    if (write === undefined) continue;
    const rule = rules.get(key);
    if (rule === undefined) {
      const message = `the state has no such key; it has ${stateKeyNames(rules)}`;
      throw new ServiceError("state.invalid", `${at}.${key}: ${message}`, {
        fields: [{ at: `${at}.${key}`, message }],
      });
    }
    const value = rule.read(write, `${at}.${key}`, (index) => uuid5(`${key}:${index}`, namespace));
    if (rule.life === "never") (untracked ??= {})[key] = value;
    else stored[key] = value;
  }
  return { update: stored, untracked };
}

export function stateKeyNames(rules: GraphDefinition["rules"]): string {
  return [...rules.keys()].join(", ") || "none";
}

/**
 * Converts a target to its normal form.
 * @throws ServiceError `state.invalid` if the target is neither a node nor END, or if the node's `input` schema refuses
 * the input of a `send`
 */
export function normalizeTarget(definition: GraphDefinition, target: unknown, at: string): StoredTarget {
  const node = isSendCommand(target) ? target.node : target;
  if (typeof node !== "string") {
    throwInvalidField(at, "must be a node's name, END or send(...)");
  }
  const rule = definition.nodes.get(node);
  if (rule === undefined && (node !== END || isSendCommand(target))) {
    const nodes = [...definition.nodes.keys()].join(", ");
    throwInvalidField(at, `names "${node}", which is no node; the nodes are ${nodes}`);
  }
  if (!isSendCommand(target)) return node;
  const sent = withoutUntracked(definition, target.input);
  const input = rule?.input === undefined ? sent : parse(rule.input, sent, `send("${node}")`);
  return { node, input: toStorable(input, `send("${node}")`) };
}

/**
 * The input of a `send`, without the keys that must never be stored: the input is stored, and may contain the whole
 * state.
 */
function withoutUntracked({ rules }: GraphDefinition, input: unknown): unknown {
  if (!isObject(input)) return input;
  for (const key in input) {
    if (rules.get(key)?.life !== "never") continue;
    return Object.fromEntries(Object.entries(input).filter(([name]) => rules.get(name)?.life !== "never"));
  }
  return input;
}

function readTargets(definition: GraphDefinition, targets: unknown, at: string): readonly StoredTarget[] {
  return (Array.isArray(targets) ? targets : [targets]).map((target: unknown) =>
    normalizeTarget(definition, target, at),
  );
}

/**
 * Converts the return value of a node to its normal form.
 * @throws ServiceError `state.invalid`, `value.unstorable`
 */
export function normalizeReturn(
  definition: GraphDefinition,
  returned: unknown,
  namespace: string,
): NodeResult {
  if (returned === undefined || returned === null) return { update: null, untracked: null, goto: [] };
  const goto: StoredTarget[] = [];
  let update: unknown;
  let leaves: unknown[] | undefined;
  for (const part of Array.isArray(returned) ? (returned as readonly unknown[]) : [returned]) {
    if (isSendCommand(part)) {
      goto.push(normalizeTarget(definition, part, "the return"));
      continue;
    }
    if (isToParentCommand(part)) {
      (leaves ??= []).push(toStorable(part, "to.parent(...)"));
      continue;
    }
    const written = isToCommand(part) ? part.update : part;
    if (isToCommand(part)) goto.push(...readTargets(definition, part.to, "to(...)"));
    if (written === undefined) continue;
    if (update !== undefined) {
      throw new ServiceError("state.invalid", "the return holds two updates; put them in one object");
    }
    update = written;
  }
  if (leaves !== undefined) return { update: null, untracked: null, goto: [], parentCommands: leaves };
  if (update === undefined) return { update: null, untracked: null, goto };
  return { goto, ...normalizeUpdate(definition, update, "update", namespace) };
}

/**
 * The targets that a conditional edge chooses; none if the edge is not conditional. `fresh` returns the state with the
 * task's own update applied.
 * @throws ServiceError `state.invalid` if a target is neither a node nor END, or is not declared by `branch()`; also
 * whatever the edge's function throws
 */
export function chooseTargets(
  definition: GraphDefinition,
  from: string,
  fresh: () => JsonObject,
): readonly StoredTarget[] {
  const edge = definition.edges.get(from);
  if (edge?.kind !== "choice") return [];
  const at = `edges.${from === "__start__" ? "start" : from}`;
  const chosen = edge.choose(fresh() as never);
  const moves = readTargets(definition, chosen, at);
  for (const move of moves) {
    const node = typeof move === "string" ? move : move.node;
    if (edge.targets !== null && !edge.targets.includes(node)) {
      throw new ServiceError("state.invalid", `${at} chose "${node}", which its branch() does not declare`);
    }
  }
  return moves;
}
