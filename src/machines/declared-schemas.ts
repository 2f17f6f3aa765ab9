import { embedSchema, jsonSchemaOf } from "../graph/json-schema-conversion.ts";
import { isSchema, type Schema, type SchemaIssue, type SchemaResult } from "../graph/standard-schema.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import { jsonSchemaFault, resolveReference, standardSchemaOf } from "./json-schema-validator.ts";
import { matchesEventDescriptor, type MachineEvent } from "./machine-driver.ts";
import type { Machine } from "./xstate-types.ts";

/** A schema with its JSON Schema, which is null if the library of the schema makes none. */
interface DescribedSchema {
  readonly schema: Schema;
  readonly json: JsonObject | null;
}

/** The schemas that a machine declares: `setup({ schemas: { input, events: { PAY: ... } } })`. */
export class DeclaredSchemas {
  /** The JSON Schema of the machine's input; null if it is not known. */
  readonly inputJson: JsonObject | null;
  readonly input: Schema | null;
  readonly #events: ReadonlyMap<string, DescribedSchema>;
  /** The JSON Schemas of whole events, with their member `type`. Only events whose data can be described are here. */
  readonly #eventJson: ReadonlyMap<string, JsonObject>;

  constructor(input: DescribedSchema | null, events: ReadonlyMap<string, DescribedSchema>) {
    this.input = input?.schema ?? null;
    this.inputJson = input?.json ?? null;
    this.#events = events;
    const described = [...events].flatMap(([type, { json }]) => {
      const event = json === null ? null : schemaOfEvent(type, json);
      return event === null ? [] : [[type, event] as const];
    });
    this.#eventJson = new Map(described);
  }

  /** A text that identifies the schemas, for the machine's hash. */
  get fingerprint(): string {
    return JSON.stringify([this.inputJson, [...this.#events].map(([type, { json }]) => [type, json])]);
  }

  /** The JSON Schema of events of a type, or of those that a descriptor such as `order.*` matches; null if none is known. */
  eventSchema(descriptor: string): JsonObject | null {
    const name = descriptor.endsWith("*") ? descriptor : this.#nameFor(descriptor);
    return (name === undefined ? undefined : this.#eventJson.get(name)) ?? null;
  }

  /**
   * Validates the data of an event, which are its members without `type`. Returns the event with the data that the schema returns, or the
   * event itself if its type has no schema. A schema that asks for a `type` gets the whole event.
   */
  async parseEvent(event: MachineEvent): Promise<SchemaResult<unknown>> {
    const name = this.#nameFor(event.type);
    const described = name === undefined ? undefined : this.#events.get(name);
    if (described === undefined) return { value: event };
    const { type, ...data } = event;
    const { validate } = described.schema["~standard"];
    let result = await validate(data);
    if (result.issues?.some(isAboutType) === true) result = await validate(event);
    if (result.issues !== undefined) return result;
    if (!isObject(result.value)) throw new TypeError(`its schema returned no object for the event "${type}"`);
    return { value: { ...result.value, type } };
  }

  /**
   * The name under which the schema of an event type is declared: the type itself, or else the longest wildcard that matches it. Undefined
   * if there is neither.
   */
  #nameFor(type: string): string | undefined {
    if (this.#events.has(type)) return type;
    return [...this.#events.keys()]
      .filter((name) => name.endsWith("*") && matchesEventDescriptor(type, [name]))
      .toSorted((a, b) => b.length - a.length)[0];
  }
}

const isAboutType = ({ path }: SchemaIssue) => {
  const [first] = path ?? [];
  return (typeof first === "object" ? first.key : first) === "type";
};

/** The most references and unions that are followed to find the object that a schema describes. More are probably a circle. */
const MAX_HOPS = 8;

/**
 * Returns the JSON Schema of an event's data with the additional member `type`; null if the schema does not describe objects. References of
 * the schema to itself become references to a copy under `$defs`, which has no additional `type`.
 */
function schemaOfEvent(type: string, data: JsonObject): JsonObject | null {
  const json = refersToWhole(data) ? withCopyOfItself(data) : data;
  const is = type.endsWith("*") ? { type: "string" } : { const: type };
  const addType = (schema: unknown, hops: number): JsonObject | null => {
    if (!isObject(schema)) return null;
    const { $ref, ...rest } = schema;
    if (typeof $ref === "string") {
      const named = resolveReference(json, $ref);
      return hops > MAX_HOPS || !isObject(named) ? null : addType({ ...named, ...rest }, hops + 1);
    }
    const { properties, required } = schema;
    for (const keyword of ["anyOf", "oneOf", "allOf"] as const) {
      const list = schema[keyword];
      if (!Array.isArray(list) || properties !== undefined) continue;
      if (hops > MAX_HOPS) return null;
      const parts = list.map((one) => addType(one, hops + 1));
      return parts.includes(null) ? null : { ...schema, [keyword]: parts };
    }
    if (schema["type"] !== undefined && schema["type"] !== "object") return null;
    const names = Array.isArray(required) ? (required as readonly unknown[]) : [];
    return {
      ...schema,
      type: "object",
      properties: { ...(isObject(properties) && properties), type: is },
      required: ["type", ...names.filter((name) => name !== "type")],
    };
  };
  return addType(json, 0);
}

/** Whether a part of the schema refers to the whole schema, or to a part outside `$defs` and `definitions`. */
function refersToWhole(part: unknown): boolean {
  if (typeof part !== "object" || part === null) return false;
  return Object.entries(part).some(([name, value]) =>
    name === "$ref" && typeof value === "string"
      ? value.startsWith("#") && !/^#(\/(\$defs|definitions)\/|[^/])/.test(value)
      : refersToWhole(value),
  );
}

/** The schema with a copy of itself under `$defs`. All its references are to parts of the copy. */
function withCopyOfItself(json: JsonObject): JsonObject {
  const copy = embedSchema(json, "/$defs/data");
  return { ...copy, $defs: { data: copy } };
}

/**
 * Reads the schemas that a machine declares. Null if it declares none, or only placeholders that carry a type for the compiler.
 * @returns the schemas, or what is wrong with them, as sentences that begin with the path of the broken part
 */
export function parseDeclaredSchemas(
  machine: Machine,
): DeclaredSchemas | null | { readonly faults: readonly string[] } {
  const declared = machine.schemas ?? (machine.config as { readonly schemas?: unknown }).schemas;
  if (declared === undefined || declared === null) return null;
  if (typeof declared !== "object") return { faults: ["schemas must be an object with input and events"] };
  const { input, events } = declared as { readonly input?: unknown; readonly events?: unknown };
  const faults: string[] = [];
  const read = (value: unknown, at: string): DescribedSchema | null => {
    const found = describeSchema(value, at);
    if (typeof found !== "string") return found;
    faults.push(found);
    return null;
  };
  const inputSchema = read(input, "schemas.input");
  const byType = new Map<string, DescribedSchema>();
  if (isSchema(events) && !isPlaceholder(events))
    faults.push("schemas.events is a schema, and must be an object with a schema for each event type");
  else if (typeof events === "object" && events !== null && !isSchema(events)) {
    for (const [type, value] of Object.entries(events)) {
      const one = read(value, `schemas.events.${type}`);
      if (one !== null) byType.set(type, one);
    }
  } else if (events !== undefined && events !== null && !isPlaceholder(events))
    faults.push("schemas.events must be an object with a schema for each event type");
  if (faults.length > 0) return { faults };
  return inputSchema === null && byType.size === 0 ? null : new DeclaredSchemas(inputSchema, byType);
}

/** Whether a schema only carries a type for the compiler, as `types<T>()` of XState 6 does. */
const isPlaceholder = (value: unknown) => isSchema(value) && value["~standard"].vendor === "xstate.types";

/** Reads one declared schema: null if it is absent or only a placeholder, a sentence with the fault if it is broken. */
function describeSchema(value: unknown, at: string): DescribedSchema | string | null {
  if (value === undefined || value === null || isPlaceholder(value)) return null;
  if (isSchema(value)) return describeObjects(value, jsonSchemaOf(value, "input"), at);
  const isPlain = typeof value === "object" && isPlainObject(value);
  if (!isPlain || "~standard" in value)
    return `${at} must be a Standard Schema (zod, valibot, arktype) or a JSON Schema`;
  let json: JsonObject;
  try {
    json = JSON.parse(JSON.stringify(value)) as JsonObject;
  } catch (thrown) {
    return `${at} is no JSON: ${(thrown as Error).message}`;
  }
  // A schema such as `{} as Input` only carries a type for the compiler.
  if (Object.keys(json).length === 0) return null;
  return jsonSchemaFault(json, at) ?? describeObjects(standardSchemaOf(json), json, at);
}

function describeObjects(schema: Schema, json: JsonObject | null, at: string): DescribedSchema | string {
  const type = json?.["type"];
  const types = Array.isArray(type) ? (type as readonly unknown[]) : [type];
  if (type !== undefined && !types.includes("object"))
    return `${at} describes a value of type ${types.join(" or ")}, and must describe an object`;
  return { schema, json };
}

function isPlainObject(value: object): boolean {
  const prototype = Object.getPrototypeOf(value) as object | null;
  // Objects of another realm have another `Object.prototype`.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
