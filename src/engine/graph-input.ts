import { ServiceError, fieldErrorOf } from "../model/errors.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { GraphDefinition } from "../graph/definition.ts";
import { stateKeyNames, normalizeUpdate, type NodeResult } from "../graph/node-return.ts";
import { parse } from "../graph/standard-schema.ts";
import { isGiven } from "./command-input.ts";
import { ownValue } from "../graph/superstep.ts";

/**
 * Reads an input as an update of the state. Ignores keys that the state does not have, because clients may send more,
 * but refuses an input that has only such keys. Only a graph made from an XState machine may begin without an input.
 * @throws ServiceError `state.invalid`, `value.unstorable`, with the name of the key
 */
export function normalizeInput(
  definition: GraphDefinition,
  input: unknown,
  namespace: string,
  at = "input",
): Pick<NodeResult, "update" | "untracked"> {
  const { rules, input: allowed, machine } = definition;
  if (machine !== undefined) {
    if (isGiven(input) && !isObject(input))
      throw new ServiceError("state.invalid", `${at} must be an object: it is the input of the machine`);
    return normalizeUpdate(definition, { [machine.inputKey]: input ?? null }, at, namespace);
  }
  if (!isObject(input)) {
    throw new ServiceError("state.invalid", `${at} must be an object of state keys: ${stateKeyNames(rules)}`);
  }
  const keys = Object.keys(input);
  const known: Record<string, unknown> = {};
  let any = keys.length === 0;
  for (const key of keys) {
    if (!rules.has(key)) continue;
    any = true;
    known[key] = allowed === null ? input[key] : validateKey(allowed, key, input[key], at);
  }
  if (!any) {
    const message = `${at} has no key of the state (${stateKeyNames(rules)}); it has ${keys.join(", ").slice(0, 500)}`;
    throw new ServiceError("state.invalid", message);
  }
  return normalizeUpdate(definition, known, at, namespace);
}

function validateKey(
  allowed: NonNullable<GraphDefinition["input"]>,
  key: string,
  value: unknown,
  under: string,
): unknown {
  const schema = allowed.get(key);
  if (schema === undefined) {
    const message = `is no input of this graph; it takes ${[...allowed.keys()].join(", ") || "none"}`;
    throw fieldErrorOf("state.invalid", `${under}.${key}`, message);
  }
  return schema === null || value === undefined ? value : parse(schema, value, `${under}.${key}`);
}

/**
 * Checks that every required key is in the state or in the input.
 * @throws ServiceError `state.invalid`, with the name of the missing key
 */
export function checkRequiredKeys(
  { required }: GraphDefinition,
  values: JsonObject,
  update: JsonObject | null,
): void {
  for (const key of required) {
    if (ownValue(values, key) !== undefined || ownValue(update ?? {}, key) !== undefined) continue;
    throw fieldErrorOf("state.invalid", `input.${key}`, "is required: the state has no value for it yet");
  }
}

/** The part of an input that the input's checkpoint stores: all keys except those whose values are never stored. */
export function storedInput({ rules }: GraphDefinition, input: JsonObject): JsonObject {
  for (const key in input) {
    if (rules.get(key)?.life !== "never") continue;
    return Object.fromEntries(Object.entries(input).filter(([name]) => rules.get(name)?.life !== "never"));
  }
  return input;
}
