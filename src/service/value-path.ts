import { isObject, type JsonObject } from "../model/json.ts";

/** A path into a record: names, and indexes of lists (negative: from the end). */
export type ValuePath = readonly (string | number)[];

/** One step of a path: a name, or an index in brackets. */
const STEP = /(?:^|\.)([^.[\]]+)|\[(-?\d{1,9})\]/y;

/** Parses a path such as `values.messages[-1].content`; undefined when the text is not a path. */
export function parseValuePath(text: string): ValuePath | undefined {
  const path: (string | number)[] = [];
  STEP.lastIndex = 0;
  while (STEP.lastIndex < text.length) {
    const found = STEP.exec(text);
    if (found === null) return undefined;
    path.push(found[1] ?? Number(found[2]));
  }
  return typeof path[0] === "string" ? path : undefined;
}

/** The value at a path; null when there is none. */
export function valueAtPath(record: JsonObject, path: ValuePath): unknown {
  let value: unknown = record;
  for (const step of path) {
    if (typeof step === "number") value = Array.isArray(value) ? (value.at(step) as unknown) : undefined;
    else value = isObject(value) && Object.hasOwn(value, step) ? value[step] : undefined;
  }
  return value ?? null;
}
