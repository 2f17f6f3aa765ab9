import { isObject, type JsonObject } from "../model/json.ts";

/** A way into a record: names, and places in lists, from the end where they are negative. */
export type Path = readonly (string | number)[];

/** One step of a path: a name, or a place in brackets. */
const STEP = /(?:^|\.)([^.[\]]+)|\[(-?\d{1,9})\]/y;

/** Reads a path such as `values.messages[-1].content`; undefined for what is none. */
export function parsePath(text: string): Path | undefined {
  const path: (string | number)[] = [];
  STEP.lastIndex = 0;
  while (STEP.lastIndex < text.length) {
    const found = STEP.exec(text);
    if (found === null) return undefined;
    path.push(found[1] ?? Number(found[2]));
  }
  return typeof path[0] === "string" ? path : undefined;
}

/** What stands there; null where nothing does. */
export function valueAt(record: JsonObject, path: Path): unknown {
  let value: unknown = record;
  for (const step of path) {
    if (typeof step === "number") value = Array.isArray(value) ? (value.at(step) as unknown) : undefined;
    else value = isObject(value) && Object.hasOwn(value, step) ? value[step] : undefined;
  }
  return value ?? null;
}
