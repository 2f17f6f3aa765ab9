import type { JsonRecord, JsonSchema } from "../api/records.ts";
import { simplifySchema } from "../components/form-schema.ts";

/**
 * Returns the parts of a state that are edited in fields: the values that its schema describes, and other
 * simple values. Objects without described members are left out, and lists: most append an update's values.
 */
export function fieldsOf(schema: JsonSchema | null, values: JsonRecord): JsonSchema {
  const described = Object.entries(schema?.properties ?? {});
  const names = new Set([...described.map(([name]) => name), ...Object.keys(values)]);
  const properties = [...names].flatMap((name): readonly (readonly [string, JsonSchema])[] => {
    const one = described.find(([other]) => other === name)?.[1] ?? {};
    const { type, enum: choices, properties: inner } = simplifySchema(one, schema ?? one);
    if (type === "array" || (type === "object" && inner === undefined)) return [];
    if (type !== undefined || choices !== undefined) return [[name, one]];
    const kind = typeof (Object.hasOwn(values, name) ? values[name] : undefined);
    return ["string", "number", "boolean"].includes(kind) ? [[name, { ...one, type: kind }]] : [];
  });
  // An update may omit keys, so none is required.
  return { ...schema, type: "object", properties: Object.fromEntries(properties), required: [] };
}

/**
 * Returns the changed values. A cleared field of type string becomes an empty text, any other becomes null, which the
 * schema may reject.
 */
export function changesOf(shown: JsonSchema, values: JsonRecord, fields: JsonRecord): JsonRecord {
  const changed = Object.entries(shown.properties ?? {}).flatMap(([name, schema]) => {
    const [before, after] = [valueAt(values, name), valueAt(fields, name)];
    if (JSON.stringify(before) === JSON.stringify(after)) return [];
    if (after !== undefined) return [[name, after] as const];
    if (before === null) return [];
    return [[name, simplifySchema(schema, shown).type === "string" ? "" : null] as const];
  });
  return Object.fromEntries(changed);
}

/** Returns the value of a member of the object itself; undefined for inherited names such as `constructor`. */
export const valueAt = (of: JsonRecord, name: string): unknown =>
  Object.hasOwn(of, name) ? of[name] : undefined;
