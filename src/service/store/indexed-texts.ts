import { isObject, type JsonObject } from "../../model/json.ts";

/** The path of the whole value. */
const WHOLE = "$";

/** One part of a path: a name, `[3]`, `[-1]` or `[*]`. */
const PART = /[^.[\]]+|\[(?:-?\d+|\*)\]/g;

/**
 * The texts at the given paths of a value. A path is a name or a chain of names and indexes, such as
 * `author.name`, `tags[0]` or `chapters[*].text`; `$` is the whole value. Values that are not strings become
 * JSON text. Missing values, nulls and empty texts are skipped; equal texts occur once.
 */
export function textsAtPaths(value: JsonObject, paths: readonly string[]): readonly string[] {
  const texts = new Set<string>();
  for (const path of paths) {
    const found = path === WHOLE ? [value] : at(value, path.match(PART) ?? []);
    for (const one of found) {
      if (one === undefined || one === null || one === "") continue;
      texts.add(typeof one === "string" ? one : JSON.stringify(one));
    }
  }
  return [...texts];
}

function at(value: unknown, parts: readonly string[]): readonly unknown[] {
  let found: readonly unknown[] = [value];
  for (const part of parts) found = found.flatMap((one) => within(one, part));
  return found;
}

function within(value: unknown, part: string): readonly unknown[] {
  if (!part.startsWith("[")) return isObject(value) && Object.hasOwn(value, part) ? [value[part]] : [];
  if (!Array.isArray(value)) return [];
  const items: readonly unknown[] = value;
  return part === "[*]" ? items : [items.at(Number(part.slice(1, -1)))];
}
