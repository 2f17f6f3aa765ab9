import { type } from "arktype";
import * as v from "valibot";
import { describe, expect, test } from "vitest";
import { createMachine, setup } from "xstate";
import * as oldest from "xstate-5.19";
import { Compile } from "typebox/schema";
import { z } from "zod";
import { toFieldErrors } from "../../src/graph/standard-schema.ts";
import { loadMachine } from "../../src/machines/exported-machine.ts";
import { DeclaredSchemas, parseDeclaredSchemas } from "../../src/machines/declared-schemas.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { Machine } from "../../src/machines/xstate-types.ts";

const machineWith = (schemas: unknown) => setup({ schemas }).createMachine({}) as unknown as Machine;

function declared(schemas: unknown): DeclaredSchemas {
  const found = parseDeclaredSchemas(machineWith(schemas));
  if (!(found instanceof DeclaredSchemas)) throw new Error(JSON.stringify(found));
  return found;
}

const parse = (schema: unknown, event: object) =>
  declared({ events: { PAY: schema } }).parseEvent({ type: "PAY", ...event });

async function faults(schema: unknown, event: object): Promise<readonly string[]> {
  const { issues = [] } = await parse(schema, event);
  return toFieldErrors("event", issues).map(({ at, message }) => `${at}: ${message}`);
}

/** What `types<T>()` of XState 6 returns. */
const placeholder = {
  "~standard": { version: 1, vendor: "xstate.types", validate: (value: unknown) => ({ value }) },
};

/** A Standard Schema with this JSON Schema, which Heddle does not check. */
const describedBy = (json: JsonObject) => ({
  "~standard": {
    version: 1,
    vendor: "test",
    validate: (value: unknown) => ({ value }),
    jsonSchema: { input: () => json },
  },
});

const schemaCheck = (schema: JsonObject | null) => {
  const validator = Compile(schema ?? false);
  return { Check: (value: unknown) => validator.Check(value) };
};

describe("the schemas of a machine", () => {
  test.each([
    ["none", undefined],
    ["null", null],
    ["an empty object", {}],
    ["types alone", { context: z.object({}), events: {} as { PAY: number }, input: {} }],
    ["placeholders of XState 6", { input: placeholder, events: { PAY: placeholder } }],
    ["a placeholder for all events", { events: placeholder }],
  ])("are none: %s", (_, schemas) => {
    expect(parseDeclaredSchemas(machineWith(schemas))).toBeNull();
  });

  test("are found where createMachine was called with them, and where the machine was provided with actors", () => {
    const schemas = { events: { PAY: z.object({ amount: z.number() }) } };
    const machine = createMachine({ schemas } as never);
    const older = oldest.setup({ schemas }).createMachine({});
    for (const one of [machine, machine.provide({}), older, older.provide({})])
      expect(parseDeclaredSchemas(one as unknown as Machine)).toBeInstanceOf(DeclaredSchemas);
  });

  const at = "schemas.events.PAY";
  test.each<[schemas: unknown, fault: string]>([
    ["x", "schemas must be an object with input and events"],
    [{ events: "x" }, "schemas.events must be an object with a schema for each event type"],
    [
      { events: z.object({ type: z.literal("PAY") }) },
      "schemas.events is a schema, and must be an object with a schema for each event type",
    ],
    [{ events: { PAY: 5 } }, `${at} must be a Standard Schema (zod, valibot, arktype) or a JSON Schema`],
    [
      { events: { PAY: new Date() } },
      `${at} must be a Standard Schema (zod, valibot, arktype) or a JSON Schema`,
    ],
    [
      { events: { PAY: { "~standard": { version: 1 } } } },
      `${at} must be a Standard Schema (zod, valibot, arktype) or a JSON Schema`,
    ],
    [
      { events: { PAY: { amount: "number" } } },
      `${at} is no JSON Schema: it has none of its keywords, only amount`,
    ],
    [
      { events: { PAY: { properties: { amount: { type: "nmber" } } } } },
      `${at}.properties.amount.type is "nmber", and must be one of array, boolean, integer, null, number, object, string`,
    ],
    [{ events: { PAY: { properties: 3 } } }, `${at}.properties must be an object of JSON Schemas`],
    [{ events: { PAY: { properties: { a: 3 } } } }, `${at}.properties.a must be a JSON Schema`],
    [{ events: { PAY: { required: "amount" } } }, `${at}.required must be a list of property names`],
    [{ events: { PAY: { anyOf: [{ type: "object" }, 4] } } }, `${at}.anyOf[1] must be a JSON Schema`],
    [{ events: { PAY: { allOf: [] } } }, `${at}.allOf must be a list of JSON Schemas`],
    [{ events: { PAY: { enum: "a" } } }, `${at}.enum must be a list of values`],
    [{ events: { PAY: { minProperties: "1" } } }, `${at}.minProperties must be a number`],
    [
      { events: { PAY: { $ref: "#/$defs/None" } } },
      `${at}.$ref is "#/$defs/None", which is not in the schema`,
    ],
    [
      { events: { PAY: { $ref: "https://example.com/pay.json" } } },
      `${at}.$ref is "https://example.com/pay.json", and other documents are not loaded`,
    ],
    ...["#nope", "#/$defs/%E0%A4%A"].map((name): [unknown, string] => [
      { events: { PAY: { $ref: name } } },
      `${at}.$ref is "${name}", which is not in the schema`,
    ]),
    ...["other.json", "urn:x:y"].map((name): [unknown, string] => [
      { events: { PAY: { $ref: name } } },
      `${at}.$ref is "${name}", and other documents are not loaded`,
    ]),
    [
      { events: { PAY: { type: "object", $dynamicRef: "#x" } } },
      `${at}.$dynamicRef is "#x", which is not in the schema`,
    ],
    [{ events: { PAY: { $ref: "#" } } }, `${at}.$ref leads back to the same schema, for the same value`],
    [
      { events: { PAY: { type: "object", $recursiveRef: "#" } } },
      `${at}.$recursiveRef leads back to the same schema, for the same value`,
    ],
    [
      {
        events: {
          PAY: {
            properties: { a: { $ref: "#/$defs/a" } },
            $defs: {
              a: { anyOf: [{ type: "null" }, { $ref: "#/$defs/b" }] },
              b: { not: { $ref: "#/$defs/a" } },
            },
          },
        },
      },
      `${at}.properties.a.$ref.anyOf[1].$ref.not.$ref leads back to the same schema, for the same value`,
    ],
    [
      { events: { PAY: { patternProperties: { "(": { type: "number" } } } } },
      expect.stringContaining(`${at}.patternProperties.( is no regular expression: `) as unknown as string,
    ],
    [
      { events: { PAY: { dependentRequired: { a: "b" } } } },
      `${at}.dependentRequired must be an object with a list of property names for each property`,
    ],
    [
      { input: { type: "string" } },
      "schemas.input describes a value of type string, and must describe an object",
    ],
    [{ input: z.string() }, "schemas.input describes a value of type string, and must describe an object"],
  ])("that are broken are refused with the path: %j", (schemas, fault) => {
    expect(parseDeclaredSchemas(machineWith(schemas))).toEqual({ faults: [fault] });
  });

  test.each<[schema: JsonObject]>([
    [{ type: "object", properties: { a: { $ref: "#" } } }],
    [{ properties: { a: { $ref: "#n" } }, $defs: { n: { $anchor: "n", type: "object" } } }],
    [{ properties: { a: { $ref: "n.json" } }, $defs: { n: { $id: "n.json", type: "object" } } }],
    [{ $id: "urn:x:y", type: "object", properties: { a: { $ref: "urn:x:y" } } }],
    [
      {
        $id: "https://x.test/y",
        properties: { a: { $ref: "https://x.test/y#/$defs/n" } },
        $defs: { n: { type: "object" } },
      },
    ],
    [{ properties: { a: { $dynamicRef: "#n" } }, $defs: { n: { $dynamicAnchor: "n", type: "object" } } }],
    [
      {
        allOf: [{ $ref: "#/$defs/n" }, { $ref: "#/$defs/n" }],
        $defs: { n: { properties: { a: { type: "object" } } } },
      },
    ],
  ])("may refer to their own parts: %j", async (schema) => {
    expect(await faults(schema, { a: {} })).toEqual([]);
    expect(await faults(schema, { a: 1 })).toEqual([
      expect.stringMatching(/^event\.a: must be an object|^event: /),
    ]);
  });

  test("that are broken are all named when the machine is loaded", () => {
    const broken = { input: 1, events: { PAY: { properties: { at: { pattern: "(" } } } } };
    expect(() => loadMachine(machineWith(broken), [import.meta.filename])).toThrow(
      /the machine "\(machine\)" declares schemas that cannot be used: schemas\.input must be .*; schemas\.events\.PAY\.properties\.at\.pattern is no regular expression: /,
    );
    const circle: { [key: string]: unknown } = { type: "object" };
    circle["properties"] = { self: circle };
    expect(parseDeclaredSchemas(machineWith({ input: circle }))).toEqual({
      faults: [expect.stringMatching(/^schemas\.input is no JSON: /)],
    });
  });
});

describe("an event", () => {
  const amount = { amount: { type: "number", minimum: 1 }, currency: { type: "string", default: "EUR" } };
  const json = { type: "object", properties: amount, required: ["amount"], additionalProperties: false };

  test.each([
    ["zod", z.strictObject({ amount: z.number().min(1), currency: z.string().default("EUR") })],
    ["a JSON Schema", json],
    [
      "valibot",
      v.strictObject({ amount: v.pipe(v.number(), v.minValue(1)), currency: v.optional(v.string(), "EUR") }),
    ],
    ["arktype", type({ "+": "reject", amount: "number >= 1", currency: "string = 'EUR'" })],
  ])("is validated without its type, and gets what the schema returns: %s", async (_, schema) => {
    expect(await parse(schema, { amount: 2 })).toEqual({
      value: { type: "PAY", amount: 2, currency: "EUR" },
    });
    expect(await faults(schema, { amount: 0 })).toEqual([expect.stringMatching(/^event\.amount: /)]);
    expect(await faults(schema, { amount: 2, other: 1 })).toEqual([expect.stringContaining("other")]);
  });

  test("is validated whole by a schema that asks for its type", async () => {
    for (const schema of [
      z.strictObject({ type: z.literal("PAY"), amount: z.number() }),
      {
        type: "object",
        properties: { type: { const: "PAY" }, amount: { type: "number" } },
        required: ["type", "amount"],
      },
    ]) {
      expect(await parse(schema, { amount: 2 })).toEqual({ value: { type: "PAY", amount: 2 } });
      expect(await parse(schema, { amount: "2" })).toMatchObject({ issues: [{ path: ["amount"] }] });
    }
  });

  test("of another type is not validated; a wildcard is for the types without a schema of their own", async () => {
    const none = z.object({ a: z.number() });
    const all = declared({
      events: { "order.*": none, "order.lost.*": z.object({}), "order.paid": z.object({}) },
    });
    const parsed = async (name: string) => "value" in (await all.parseEvent({ type: name }));
    expect(await parsed("PAY")).toBe(true);
    expect(await parsed("order.paid")).toBe(true);
    expect(await parsed("order.lost.today")).toBe(true);
    expect(await parsed("order.other")).toBe(false);
  });

  test("has nothing but its own members: names of prototypes are only names", async () => {
    const hostile = JSON.parse(
      '{"type":"object","properties":{"__proto__":{"type":"object","default":{"polluted":true}},"constructor":{"type":"string"}},"required":["__proto__"]}',
    ) as object;
    const events = JSON.parse('{"__proto__":{"type":"object","required":["a"]}}') as object;
    const { value } = (await parse(hostile, JSON.parse('{"constructor":"x"}') as object)) as {
      value: object;
    };
    expect(JSON.stringify(value)).toBe('{"constructor":"x","__proto__":{"polluted":true},"type":"PAY"}');
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(await parse(hostile, JSON.parse('{"__proto__":1}') as object)).toMatchObject({
      issues: [{ message: "must be an object", path: ["__proto__"] }],
    });
    const all = declared({ events });
    expect(await all.parseEvent({ type: "__proto__" })).toMatchObject({ issues: [{ path: ["a"] }] });
    expect(await all.parseEvent({ type: "constructor" })).toEqual({ value: { type: "constructor" } });
    expect(all.eventSchema("toString")).toBeNull();
  });

  test("gets the defaults of its JSON Schema also behind references, in lists and in allOf", async () => {
    const nested = {
      type: "object",
      properties: {
        named: { $ref: "#/$defs/named" },
        missing: { $ref: "#/$defs/size" },
        list: { type: "array", items: { $ref: "#/$defs/named" } },
        pair: {
          prefixItems: [true, { properties: { first: { default: 1 } } }],
          items: { $ref: "#/$defs/named" },
        },
        next: { $ref: "#" },
      },
      allOf: [{ properties: { all: { default: [] } } }],
      $defs: { named: { properties: { size: { $ref: "#/$defs/size" } } }, size: { default: 7 } },
    };
    const value = { named: {}, list: [{}, { size: 1 }], pair: [{}, {}, {}], next: { named: {} } };
    expect(await parse(nested, value)).toEqual({
      value: {
        type: "PAY",
        named: { size: 7 },
        missing: 7,
        list: [{ size: 7 }, { size: 1 }],
        pair: [{}, { first: 1 }, { size: 7 }],
        next: { named: { size: 7 }, missing: 7, all: [] },
        all: [],
      },
    });
  });

  test("has no members that every object inherits", async () => {
    const named = {
      type: "object",
      properties: {
        toString: { type: "string" },
        valueOf: { type: "number" },
        a: { required: ["toString"] },
      },
    };
    expect(await parse(named, {})).toEqual({ value: { type: "PAY" } });
    expect(await faults(named, { toString: 1 })).toEqual(["event.toString: must be a string"]);
    expect(await faults(named, { a: {} })).toEqual(["event.a.toString: is required"]);
    expect(await parse(named, { toString: "x", a: { toString: 1 } })).toEqual({
      value: { type: "PAY", toString: "x", a: { toString: 1 } },
    });
  });

  test("whose schema returns no object is an error of the schema", async () => {
    await expect(
      parse(
        z.object({}).transform(() => 1),
        {},
      ),
    ).rejects.toThrow('its schema returned no object for the event "PAY"');
  });
});

describe("the JSON Schema of an event", () => {
  const schemaOf = (schema: unknown) => declared({ events: { PAY: schema } }).eventSchema("PAY");
  const is = { type: { const: "PAY" } };

  test("has the event's type and its data", () => {
    expect(schemaOf(z.object({ amount: z.number() }))).toMatchObject({
      type: "object",
      properties: { amount: { type: "number" }, ...is },
      required: ["type", "amount"],
    });
    expect(schemaOf({ properties: { type: { const: "PAY" }, a: {} }, required: ["type"] })).toEqual({
      type: "object",
      properties: { a: {}, ...is },
      required: ["type"],
    });
  });

  test("has the type in each case of a union, and behind references", () => {
    const $defs = { Card: { type: "object", properties: { card: { type: "string" } }, required: ["card"] } };
    const card = {
      type: "object",
      properties: { card: { type: "string" }, ...is },
      required: ["type", "card"],
    };
    const cash = { type: "object", properties: is, required: ["type"] };
    expect(schemaOf({ $ref: "#/$defs/Card", $defs })).toEqual({ ...card, $defs });
    expect(schemaOf({ oneOf: [{ $ref: "#/$defs/Card" }, { type: "object" }], $defs })).toEqual({
      oneOf: [card, cash],
      $defs,
    });
  });

  test("asks for the type only once where the data contain themselves", () => {
    const size = { type: "number" };
    const tree = {
      type: "object",
      properties: { size: { $ref: "#/$defs/size" }, next: { $ref: "#" } },
      required: ["size"],
      $defs: { size },
    };
    const described = schemaOf(tree);
    expect(described).toMatchObject({
      properties: { ...is, next: { $ref: "#/$defs/data" } },
      required: ["type", "size"],
    });
    const { Check } = schemaCheck(described);
    expect(Check({ type: "PAY", size: 1, next: { size: 2, next: { size: 3 } } })).toBe(true);
    expect(Check({ type: "PAY", size: 1, next: { size: 2, next: { size: "3" } } })).toBe(false);
    expect(Check({ type: "PAY", size: 1, next: {} })).toBe(false);
    expect(Check({ size: 1 })).toBe(false);
    const anchored = { ...tree, properties: { ...tree.properties, size: { $ref: "#size" } } };
    const withAnchor = schemaOf({ ...anchored, $defs: { size: { ...size, $anchor: "size" } } });
    expect(schemaCheck(withAnchor).Check({ type: "PAY", size: 1, next: { size: 2 } })).toBe(true);
    const Tree = z.object({
      name: z.string(),
      get child() {
        return Tree.optional();
      },
    });
    expect(schemaCheck(schemaOf(Tree)).Check({ type: "PAY", name: "a", child: { name: "b" } })).toBe(true);
  });

  test("is unknown where the library makes none, or where it leads in a circle", () => {
    expect(schemaOf(v.object({ amount: v.number() }))).toBeNull();
    expect(schemaOf(describedBy({ $ref: "#" }))).toBeNull();
    expect(schemaOf(describedBy({ anyOf: [{ $ref: "#" }] }))).toBeNull();
  });
});

test("the hash of a machine without schemas is that which it had, and changes with the schemas", () => {
  const hashOf = (schemas?: object) => loadMachine(machineWith(schemas), [import.meta.filename]).hash;
  const number = { type: "object", properties: { a: { type: "number" } } };
  expect(hashOf()).toBe(hashOf({}));
  expect(hashOf({ input: number })).not.toBe(hashOf());
  expect(hashOf({ events: { A: number } })).not.toBe(hashOf({ events: { B: number } }));
});
