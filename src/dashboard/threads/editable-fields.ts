import type { JsonRecord, JsonSchema } from "../api/records.ts";
import { simplifySchema } from "../components/form-schema.ts";

/**
 * Returns a schema of the values that are edited in fields: those that the state's schema describes, and other
 * strings, numbers and booleans. Lists are left out, because most reducers append an update to them, and so are
 * objects without described members.
 */
export function editableFieldsSchema(schema: JsonSchema | null, values: JsonRecord): JsonSchema {
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
  // A state update may leave out any value, so none is required.
  return { ...schema, type: "object", properties: Object.fromEntries(properties), required: [] };
}

/**
 * Returns the values that differ from the stored ones. A cleared field becomes an empty string if its type is string;
 * otherwise it becomes null, which the schema may reject.
 */
export function changedFieldsOf(shown: JsonSchema, values: JsonRecord, fields: JsonRecord): JsonRecord {
  const changed = Object.entries(shown.properties ?? {}).flatMap(([name, schema]) => {
    const [before, after] = [ownValueOf(values, name), ownValueOf(fields, name)];
    if (JSON.stringify(before) === JSON.stringify(after)) return [];
    if (after !== undefined) return [[name, after] as const];
    if (before === null) return [];
    return [[name, simplifySchema(schema, shown).type === "string" ? "" : null] as const];
  });
  return Object.fromEntries(changed);
}

/** Returns the value of an object's own member; undefined for inherited names such as `constructor`. */
export const ownValueOf = (of: JsonRecord, name: string): unknown =>
  Object.hasOwn(of, name) ? of[name] : undefined;
