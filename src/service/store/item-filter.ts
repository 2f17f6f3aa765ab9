import { isObject, type JsonObject } from "../../model/json.ts";
import { refuseOperation } from "./item-limits.ts";

export type ItemTest = (value: unknown) => boolean;

/**
 * The largest number of conditions in a filter. If the operand of a condition is a list, each entry of the list counts as one condition.
 */
const MAX_CONDITIONS = 1_000;
/** The largest number of nesting levels of a filter. */
const MAX_DEPTH = 32;

/** Orders two numbers or two strings; NaN for all other pairs. */
function compare(a: unknown, b: unknown): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === "string" && typeof b === "string") return a < b ? -1 : a > b ? 1 : 0;
  return Number.NaN;
}

/** Compares JSON values. `undefined`, the value at a path that does not exist, equals null. */
function isEqual(a: unknown, b: unknown): boolean {
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, i) => isEqual(item, b[i]));
  }
  if (!isObject(a)) return (a ?? null) === (b ?? null);
  if (!isObject(b)) return false;
  const names = Object.keys(a);
  if (names.length !== Object.keys(b).length) return false;
  return names.every((name) => Object.hasOwn(b, name) && isEqual(a[name], b[name]));
}

/** JSON text with members in the order of their names: equal values give equal texts. */
const textOf = (data: unknown): string =>
  JSON.stringify(data, (_, value: unknown) =>
    isObject(value) ? Object.fromEntries(Object.entries(value).sort(byName)) : value,
  );

const byName = ([one]: [string, unknown], [other]: [string, unknown]): number => (one < other ? -1 : 1);

const operators = new Map<string, (operand: unknown, at: string) => ItemTest>([
  ["$eq", (operand) => (value) => isEqual(value, operand)],
  ["$ne", (operand) => (value) => !isEqual(value, operand)],
  ["$gt", ordered((order) => order > 0)],
  ["$gte", ordered((order) => order >= 0)],
  ["$lt", ordered((order) => order < 0)],
  ["$lte", ordered((order) => order <= 0)],
  ["$in", oneOf(true)],
  ["$nin", oneOf(false)],
]);

function ordered(holds: (order: number) => boolean) {
  return (operand: unknown, at: string): ItemTest => {
    if (typeof operand !== "number" && typeof operand !== "string")
      refuseOperation(at, "must be a number or a string");
    return (value) => holds(compare(value, operand));
  };
}

function oneOf(wanted: boolean) {
  return (operand: unknown, at: string): ItemTest => {
    if (!Array.isArray(operand)) refuseOperation(at, "must be a list");
    if (operand.length > MAX_CONDITIONS) refuseOperation(at, `has more than ${MAX_CONDITIONS} entries`);
    const plain = new Set<unknown>();
    const nested = new Set<string>();
    for (const one of operand as readonly unknown[]) {
      if (typeof one === "object" && one !== null) nested.add(textOf(one));
      else plain.add(one ?? null);
    }
    return (value) => {
      if (typeof value !== "object" || value === null) return plain.has(value ?? null) === wanted;
      return (nested.size > 0 && nested.has(textOf(value))) === wanted;
    };
  };
}

/**
 * Compiles a filter to a function over an item's value.
 * @throws ServiceError `validation.failed`, naming the invalid condition
 */
export function compileFilter(filter: JsonObject, at: string): ItemTest {
  let count = 0;
  const members = (object: JsonObject, path: string, depth: number): ItemTest => {
    if (depth > MAX_DEPTH) refuseOperation(path, `is nested deeper than ${MAX_DEPTH} levels`);
    const tests = Object.entries(object).map(([name, wanted]): ItemTest => {
      if (++count > MAX_CONDITIONS) refuseOperation(at, `has more than ${MAX_CONDITIONS} conditions`);
      const test = condition(wanted, `${path}.${name}`, depth);
      return (value) => test(isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined);
    });
    return (value) => tests.every((test) => test(value));
  };
  const condition = (wanted: unknown, path: string, depth: number): ItemTest => {
    if (!isObject(wanted)) return (value) => isEqual(value, wanted);
    const names = Object.keys(wanted);
    if (names.length === 0) return (value) => isEqual(value, wanted);
    if (!names.some((name) => name.startsWith("$"))) {
      const test = members(wanted, path, depth + 1);
      return (value) => isObject(value) && test(value);
    }
    const tests = names.map((name) => {
      const operand = wanted[name];
      count += Array.isArray(operand) ? Math.max(1, operand.length) : 1;
      if (count > MAX_CONDITIONS) refuseOperation(at, `has more than ${MAX_CONDITIONS} conditions`);
      const operator = operators.get(name);
      if (operator === undefined)
        return refuseOperation(
          `${path}.${name}`,
          `is no operator; there is ${[...operators.keys()].join(", ")}`,
        );
      return operator(operand, `${path}.${name}`);
    });
    return (value) => tests.every((test) => test(value));
  };
  if (!isObject(filter)) refuseOperation(at, "must be an object");
  return members(filter, at, 0);
}
