import * as fc from "fast-check";
import type { Schema } from "./api.ts";

/** JSON text that no value serialises to: `1e400`, a duplicate member. */
export class RawJson {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
  toString(): string {
    return this.text.length > 200 ? `${this.text.slice(0, 200)}... (${this.text.length})` : this.text;
  }
}

/** The id of something that an earlier request has created. It is chosen when the request is sent. */
export class KnownId {
  readonly kind: string;
  readonly index: number;
  constructor(kind: string, index: number) {
    this.kind = kind;
    this.index = index;
  }
  toString(): string {
    return `<${this.kind} ${this.index}>`;
  }
}

const nested = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;
const nestedObjects = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;

/** Texts that often break programs. */
const oddTexts = fc.oneof(
  fc.constantFrom(
    "",
    " ",
    "\0",
    "a\0b",
    "\ud800",
    "\udfff",
    "\ud83d\ude00",
    "e\u0301",
    "\u202eabc",
    "\ufeff",
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "..",
    ".",
    "../../etc/passwd",
    "%2e%2e",
    "a/b",
    "a|b",
    "a:b",
    "a.b",
    "?",
    "#",
    "%",
    "%zz",
    "NaN",
    "null",
    "undefined",
    "true",
    "-0",
    "1e20",
    "[",
    '["a"]',
    "{}",
    '"',
    "\\",
    "\r\n",
    "'; drop table",
    "$in",
    "http://127.0.0.1:1/",
    "0 0 31 2 *",
    "* * * * *",
    "00000000-0000-4000-8000-000000000000",
    "fuzz",
    "approval",
    "values",
    "messages",
    "a".repeat(300),
    "\u00e9".repeat(2_000),
    "*".repeat(70_000),
  ),
  fc.string({ unit: "binary", maxLength: 20 }),
  fc.string({ unit: "grapheme", maxLength: 20 }),
);

const numbers = fc.oneof(
  fc.constantFrom(
    0,
    1,
    -1,
    0.5,
    1e20,
    -1e20,
    2 ** 31,
    2 ** 32,
    2 ** 53,
    2 ** 53 - 1,
    -(2 ** 53),
    1.797e308,
    5e-324,
    1000,
    1001,
  ),
  fc
    .constantFrom("-0", "1e400", "-1e400", "1E+2", "1.0", "123456789012345678901234567890")
    .map((text) => new RawJson(text)),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.integer(),
);

const names = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      "a",
      "b",
      "log",
      "ask",
      "fail",
      "messages",
      "content",
      "role",
      "type",
      "node",
      "goto",
    ),
  },
  { weight: 1, arbitrary: oddTexts },
);

const objectOf = (value: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc.array(fc.tuple(names, value), { maxLength: 4 }).map((members) => new Members(members));

/** An object to serialise, which may have duplicate names. */
export class Members {
  readonly entries: readonly (readonly [string, unknown])[];
  constructor(entries: readonly (readonly [string, unknown])[]) {
    this.entries = entries;
  }
  toString(): string {
    return print(this, (id) => String(id)).slice(0, 1_000);
  }
}

/** Any JSON value. */
export const anything: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthIdentifier: "any" },
    oddTexts,
    numbers,
    fc.constantFrom(null, true, false),
    fc
      .constantFrom(
        nested(3),
        nested(255),
        nested(257),
        nested(300),
        nested(20_000),
        nestedObjects(260),
        '{"a":1,"a":{"b":2}}',
      )
      .map((text) => new RawJson(text)),
    fc.array(tie("value"), { maxLength: 4 }),
    objectOf(tie("value")),
  ),
})).value;

const idKinds: { readonly [name: string]: string } = {
  thread_id: "thread",
  thread_ids: "thread",
  ids: "thread",
  run_id: "run",
  run_ids: "run",
  assistant_id: "assistant",
  checkpoint_id: "checkpoint",
  before: "checkpoint",
  cron_id: "cron",
  delivery_id: "delivery",
  interrupt_id: "interrupt",
};

const knownId = (kind: string) => fc.nat(7).map((index) => new KnownId(kind, index));

/** Valid texts for fields with these names. */
const rightTexts: { readonly [name: string]: readonly string[] } = {
  graph_id: ["fuzz", "approval", "nope"],
  assistant_id: ["fuzz", "approval"],
  schedule: ["* * * * *", "0 0 1 1 *", "nope"],
  timezone: ["Europe/Berlin", "nope"],
  end_time: ["2030-01-01", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z"],
  key: ["k", "l"],
  method: [
    "run.start",
    "input.respond",
    "state.get",
    "state.fork",
    "state.listCheckpoints",
    "subscription.subscribe",
    "nope",
  ],
  as_node: ["begin", "__start__", "__end__", "nope"],
  action: ["interrupt", "rollback"],
  goto: ["begin", "nope"],
  node: ["begin", "nope"],
  last_event_id: ["-1", "0", "999999999999999"],
};

/** Generates a value that mostly fits `schema`, with something unusual in some places. */
export function valueFor(schema: Schema, name = ""): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 14, arbitrary: fitting(schema, name) }, { weight: 1, arbitrary: anything });
}

function fitting(schema: Schema, name: string): fc.Arbitrary<unknown> {
  const { anyOf, type, properties, required = [], items } = schema;
  if (anyOf !== undefined) return fc.oneof(...anyOf.map((one) => fitting(one, name)));
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  if ("const" in schema) return fc.constant(schema.const);
  switch (type) {
    case "string": {
      const kind = idKinds[name];
      const right = rightTexts[name];
      const texts = right === undefined ? [] : [{ weight: 6, arbitrary: fc.constantFrom(...right) }];
      const ids =
        kind === undefined ? [] : [{ weight: 6, arbitrary: knownId(kind) as fc.Arbitrary<unknown> }];
      return fc.oneof({ weight: 1, arbitrary: oddTexts as fc.Arbitrary<unknown> }, ...texts, ...ids);
    }
    case "integer":
    case "number": {
      const { minimum = 0, maximum = 10 } = schema;
      return fc.oneof(
        fc.constantFrom(minimum, Math.min(maximum, minimum + 3)),
        fc.constantFrom(minimum - 1, maximum, maximum + 1, minimum + 0.5),
      );
    }
    case "boolean":
      return fc.boolean();
    case "array":
      return fc.array(valueFor(items ?? {}, name), { maxLength: 3 });
    case "null":
      return fc.constant(null);
    case "object": {
      if (properties === undefined) return objectOf(anything);
      const members = Object.entries(properties).map(([member, inner]) =>
        fc
          .tuple(
            required.includes(member) ? fc.nat(19).map((n) => n > 0) : fc.nat(3).map((n) => n === 0),
            valueFor(inner, member),
          )
          .map(([isGiven, value]) => (isGiven ? [[member, value] as const] : [])),
      );
      const more = fc
        .nat(9)
        .chain((n): fc.Arbitrary<[string, unknown][]> =>
          n > 0 ? fc.constant([]) : fc.tuple(names, anything).map((one) => [one]),
        );
      return fc.tuple(...members, more).map((parts) => new Members(parts.flat() as [string, unknown][]));
    }
    default:
      return anything;
  }
}

/** Serialises a value as JSON text. */
export function print(value: unknown, idOf: (id: KnownId) => string): string {
  if (value instanceof RawJson) return value.text;
  if (value instanceof KnownId) return JSON.stringify(idOf(value));
  if (value instanceof Members) {
    return `{${value.entries.map(([name, member]) => `${JSON.stringify(name)}:${print(member, idOf)}`).join(",")}}`;
  }
  if (Array.isArray(value)) return `[${value.map((one) => print(one, idOf)).join(",")}]`;
  return JSON.stringify(value) ?? "null";
}

/** Generates a path segment or a query parameter. */
export const textFor = (schema: Schema, name: string): fc.Arbitrary<unknown> =>
  fc.oneof(
    { weight: 8, arbitrary: fitting(idKinds[name] === undefined ? schema : { type: "string" }, name) },
    { weight: 1, arbitrary: oddTexts },
  );
