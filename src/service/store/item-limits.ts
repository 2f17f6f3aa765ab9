import { ServiceError, invalidField } from "../../model/errors.ts";
import type { ItemKey, Namespace, PutOp } from "../../model/store-item.ts";
import type { JsonObject } from "../../model/json.ts";
import { requireStorableObject } from "../storable-values.ts";

/** Limits of an item: the number of labels and paths, the characters of a label, key and path, and the bytes of the value as JSON. */
export const ITEM_LIMITS = {
  labels: 32,
  label: 256,
  key: 1_024,
  value: 1024 * 1024,
  paths: 32,
  path: 256,
} as const;
/** The largest number of operations in one batch. */
export const MAX_BATCH_OPS = 1_000;
/** The longest lifetime of an item, in minutes: a hundred years. */
export const MAX_ITEM_TTL_MINUTES = 52_560_000;
const MAX_OFFSET = 1_000_000_000;
/** The first label of namespaces to which clients cannot write, because LangGraph Platform reserves it. */
const RESERVED = "langgraph";

export function refuseOperation(at: string, message: string): never {
  throw invalidField(at, message);
}

/** @throws ServiceError `validation.failed`, naming the label */
export function checkLabels(namespace: unknown, at: string): asserts namespace is Namespace {
  if (!Array.isArray(namespace)) refuseOperation(at, "must be a list of strings");
  const { labels, label: longest } = ITEM_LIMITS;
  if (namespace.length > labels) refuseOperation(at, `has more than ${labels} labels`);
  for (const [i, label] of namespace.entries()) {
    const which = `${at}[${i}]`;
    if (typeof label !== "string") refuseOperation(which, "must be a string");
    if (label === "" || label.includes("."))
      refuseOperation(which, `cannot be empty or contain periods. Received: ${label.slice(0, 100)}`);
    if (label.length > longest) refuseOperation(which, `is longer than ${longest} characters`);
  }
}

/** Checks the namespace and key of an item that is put or deleted. */
export function checkItemKey({ namespace, key }: ItemKey, at: string): void {
  checkLabels(namespace, `${at}namespace`);
  if (namespace.length === 0) {
    const message = "Namespace is required";
    throw new ServiceError("store.namespace", message, { fields: [{ at: `${at}namespace`, message }] });
  }
  if (namespace[0] === RESERVED)
    refuseOperation(`${at}namespace[0]`, `cannot be "${RESERVED}": it is kept for the platform`);
  checkKeyText(key, `${at}key`);
}

export function checkKeyText(key: unknown, at: string): void {
  if (typeof key !== "string") refuseOperation(at, "must be a string");
  if (key === "") refuseOperation(at, "cannot be empty");
  if (key.length > ITEM_LIMITS.key) refuseOperation(at, `is longer than ${ITEM_LIMITS.key} characters`);
}

/** Checks the value of a put, and returns it in the form in which it can be stored. */
export function checkValue(value: unknown, at: string): JsonObject {
  if (value === undefined || value === null) refuseOperation(at, "is required");
  const stored = requireStorableObject(value, at);
  const bytes = Buffer.byteLength(JSON.stringify(stored));
  if (bytes > ITEM_LIMITS.value) refuseOperation(at, `has ${bytes} bytes, and may have ${ITEM_LIMITS.value}`);
  return stored;
}

export function checkTtl(ttl: PutOp["ttl"], at: string): void {
  if (ttl === undefined || ttl === null) return;
  if (typeof ttl !== "number" || !(ttl > 0 && ttl <= MAX_ITEM_TTL_MINUTES))
    refuseOperation(at, `must be a number of minutes above 0 and up to ${MAX_ITEM_TTL_MINUTES}, or null`);
}

export function checkIndex(index: PutOp["index"], at: string): void {
  if (index === undefined || index === null || index === false) return;
  if (!Array.isArray(index)) refuseOperation(at, "must be false or a list of paths");
  if (index.length > ITEM_LIMITS.paths) refuseOperation(at, `has more than ${ITEM_LIMITS.paths} paths`);
  for (const [i, path] of (index as readonly unknown[]).entries()) {
    if (typeof path !== "string" || path === "" || path.length > ITEM_LIMITS.path)
      refuseOperation(`${at}[${i}]`, `must be a path of 1 to ${ITEM_LIMITS.path} characters`);
  }
}

export function checkPage(
  { limit, offset }: { readonly limit?: number | undefined; readonly offset?: number | undefined },
  at: string,
): void {
  checkCount(limit, `${at}limit`, 1, 1_000);
  checkCount(offset, `${at}offset`, 0, MAX_OFFSET);
}

export function checkCount(value: number | undefined, at: string, least: number, most: number): void {
  if (value === undefined) return;
  if (!Number.isInteger(value) || value < least || value > most)
    refuseOperation(at, `must be a whole number from ${least} to ${most}`);
}
