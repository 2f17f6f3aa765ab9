/**
 * True if a copy by `toStorable` would equal the value, so that no copy is needed.
 * @param depth the most levels of nesting; deeper data count as not plain
 * @param mayBeUndefined true: members may be undefined, because both `JSON.stringify` and `toStorable` leave them out
 */
export function isPlainData(value: unknown, depth: number, mayBeUndefined: boolean): boolean {
  switch (typeof value) {
    case "string":
    case "boolean":
      return true;
    case "number":
      return Number.isFinite(value);
    case "object":
      return value === null || isPlainObject(value, depth, mayBeUndefined);
    default:
      return false;
  }
}

function isPlainObject(value: object, depth: number, mayBeUndefined: boolean): boolean {
  if (depth === 0 || (value as { toJSON?: unknown }).toJSON !== undefined) return false;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++)
      if (!isPlainData(value[i], depth - 1, mayBeUndefined)) return false;
    return true;
  }
  const proto: unknown = Object.getPrototypeOf(value);
  if (proto !== Object.prototype && proto !== null) return false;
  for (const key of Object.keys(value)) {
    if (key === "__proto__") return false;
    const member = (value as { readonly [key: string]: unknown })[key];
    if (member === undefined && mayBeUndefined) continue;
    if (!isPlainData(member, depth - 1, mayBeUndefined)) return false;
  }
  return true;
}
