import type ts from "typescript-5";
import type { JsonObject } from "../model/json.ts";

export type Compiler = typeof ts;

/** The JSON Schema dialect that LangGraph's tools expect for schemas made from types. */
const DIALECT = "http://json-schema.org/draft-07/schema#";

/**
 * The largest depth of nested types. A type nested deeper gets a schema that allows any value, because the depth of a generic type may be
 * infinite.
 */
const MAX_DEPTH = 24;
/** The largest number of types in one schema. */
const MAX_TYPES = 5_000;

/**
 * The schema of a LangChain message in the JSON form that clients receive. It is written by hand, because the message class
 * has other members than this form.
 */
const MESSAGE: JsonObject = {
  description: "A message of a conversation",
  type: "object",
  properties: {
    type: { type: "string" },
    content: { anyOf: [{ type: "string" }, { type: "array", items: { type: "object" } }] },
    id: { type: "string" },
    name: { type: "string" },
    additional_kwargs: { type: "object" },
    response_metadata: { type: "object" },
  },
};

/** Keywords of JSON Schema that a JSDoc tag may set. */
const TAGS: ReadonlySet<string> = new Set(
  (
    "title format default examples pattern multipleOf minimum maximum exclusiveMinimum exclusiveMaximum " +
    "minLength maxLength minItems maxItems uniqueItems"
  ).split(" "),
);

interface Definition {
  readonly name: string;
  isReferenced: boolean;
  schema: JsonObject | undefined;
}

/**
 * Writes one JSON Schema document for the JSON form of TypeScript types. Named and recursive types are in `definitions`. As in the schemas
 * of LangGraph's own server, no property is required, because a state may lack any of them.
 */
export class SchemaWriter {
  readonly #ts: Compiler;
  readonly #program: ts.Program;
  readonly #checker: ts.TypeChecker;
  readonly #definitions = new Map<ts.Type, Definition>();
  readonly #names = new Set<string>(["BaseMessage"]);
  #hasMessages = false;
  #depth = 0;
  #types = 0;

  constructor(compiler: Compiler, program: ts.Program) {
    this.#ts = compiler;
    this.#program = program;
    this.#checker = program.getTypeChecker();
  }

  /**
   * The document for a value of this type.
   * @throws RangeError for a type with more parts than a schema may have
   */
  document(type: ts.Type): JsonObject {
    return this.#document(this.#schema(type));
  }

  /**
   * The document for an object with these properties.
   * @throws RangeError for an object with more parts than a schema may have
   */
  documentOf(properties: Iterable<readonly [name: ts.Symbol, type: ts.Type]>): JsonObject {
    return this.#document({ type: "object", properties: this.#properties(properties, true) });
  }

  #document(schema: JsonObject): JsonObject {
    const named = [...this.#definitions.values()].filter(({ isReferenced }) => isReferenced);
    const definitions: Record<string, unknown> = Object.fromEntries(
      named.map(({ name, schema: found = {} }) => [name, found]),
    );
    if (this.#hasMessages) definitions["BaseMessage"] = MESSAGE;
    return {
      $schema: DIALECT,
      ...schema,
      ...(Object.keys(definitions).length > 0 && { definitions }),
    };
  }

  #schema(type: ts.Type): JsonObject {
    if (++this.#types > MAX_TYPES) throw new RangeError(`its types have more than ${MAX_TYPES} parts`);
    if (this.#depth >= MAX_DEPTH) return {};
    this.#depth++;
    try {
      return this.#schemaOfKind(type);
    } finally {
      this.#depth--;
    }
  }

  #schemaOfKind(type: ts.Type): JsonObject {
    const { TypeFlags } = this.#ts;
    const { flags } = type;
    if (flags & TypeFlags.EnumLiteral && type.isUnion())
      return this.#defined(type, () => this.#literals(type.types));
    if (type.isLiteral() || flags & TypeFlags.BooleanLiteral) return this.#literals([type]);
    if (flags & TypeFlags.String) return { type: "string" };
    if (flags & TypeFlags.Number || flags & TypeFlags.Enum) return { type: "number" };
    if (flags & TypeFlags.Boolean) return { type: "boolean" };
    if (flags & TypeFlags.Null) return { type: "null" };
    if (flags & TypeFlags.TemplateLiteral) return templatePattern(this.#ts, type as ts.TemplateLiteralType);
    if (flags & TypeFlags.StringMapping) return { type: "string" };
    if (flags & TypeFlags.NonPrimitive) return { type: "object" };
    if (type.isUnion()) return this.#union(type);
    if (type.isIntersection()) {
      // A branded primitive type, such as `string & { brand: "id" }`.
      const primitive = type.types.find(({ flags: part }) => part & primitiveFlags(this.#ts));
      return primitive === undefined
        ? this.#defined(type, () => this.#object(type))
        : this.#schema(primitive);
    }
    if (flags & TypeFlags.Object) return this.#objectKind(type);
    const constraint =
      flags & TypeFlags.Instantiable ? this.#checker.getBaseConstraintOfType(type) : undefined;
    return constraint === undefined || constraint === type ? {} : this.#schema(constraint);
  }

  #objectKind(type: ts.Type): JsonObject {
    const checker = this.#checker;
    if (this.#isMessage(type)) return this.#message();
    if (checker.isArrayType(type)) {
      const [item] = checker.getTypeArguments(type as ts.TypeReference);
      if (item !== undefined && this.#hasMessage(item)) return this.#messages();
      return this.#defined(type, () => ({
        type: "array",
        items: item === undefined ? {} : this.#schema(item),
      }));
    }
    if (checker.isTupleType(type)) return this.#defined(type, () => this.#tuple(type as ts.TypeReference));
    const name = type.symbol?.name;
    const isBuiltIn = this.#isBuiltIn(type);
    if (isBuiltIn && name === "Date") return { type: "string", format: "date-time" };
    const toJson = type.getProperty("toJSON");
    const written = toJson && checker.getTypeOfSymbol(toJson).getCallSignatures()[0]?.getReturnType();
    if (written !== undefined && written !== type) return this.#schema(written);
    // Functions, and built-in classes such as `Map`, have no JSON form, so any value is allowed.
    if (isBuiltIn || isFunction(type)) return {};
    return this.#defined(type, () => this.#object(type));
  }

  /**
   * The schema of a type that `write` describes: a reference (`$ref`) to its definition if the type has a name or contains itself, otherwise
   * the schema itself.
   */
  #defined(type: ts.Type, write: () => JsonObject): JsonObject {
    const known = this.#definitions.get(type);
    if (known !== undefined) {
      if (known.schema !== undefined && !known.isReferenced) return known.schema;
      known.isReferenced = true;
      return { $ref: `#/definitions/${known.name}` };
    }
    const ownName = this.#nameOf(type);
    const definition: Definition = {
      name: this.#freeName(ownName ?? "Recursive"),
      isReferenced: ownName !== undefined,
      schema: undefined,
    };
    this.#definitions.set(type, definition);
    definition.schema = write();
    if (definition.isReferenced) return { $ref: `#/definitions/${definition.name}` };
    // Nothing refers to the definition, so the schema is used in place and the definition's name becomes free again.
    this.#names.delete(definition.name);
    return definition.schema;
  }

  /**
   * The name that the user gave to the type (an interface, class, enum or alias), with its type arguments; undefined if
   * the user gave none.
   */
  #nameOf(type: ts.Type): string | undefined {
    const { SymbolFlags } = this.#ts;
    const named = SymbolFlags.Interface | SymbolFlags.Class | SymbolFlags.Enum;
    const symbol = type.aliasSymbol ?? (type.symbol?.flags & named ? type.symbol : undefined);
    if (symbol === undefined || this.#isOfLibrary(symbol)) return undefined;
    const args = type.aliasSymbol === undefined ? this.#argumentsOf(type) : (type.aliasTypeArguments ?? []);
    return [symbol.name, ...args.map((arg) => this.#checker.typeToString(arg))].join("_");
  }

  #argumentsOf(type: ts.Type): readonly ts.Type[] {
    if (!this.#isReference(type)) return [];
    // The last type argument may be the type of `this`.
    return this.#checker.getTypeArguments(type).slice(0, type.target.typeParameters?.length ?? 0);
  }

  /** Reserves and returns an unused name for `definitions` that needs no escapes in a `$ref`. */
  #freeName(wanted: string): string {
    const letters = wanted.replace(/[^\w.-]+/g, "_").replace(/^_+|_+$/g, "");
    const plain = letters.slice(0, 80) || "Type";
    let name = plain;
    for (let count = 2; this.#names.has(name); count++) name = `${plain}_${count}`;
    this.#names.add(name);
    return name;
  }

  #union(type: ts.UnionType): JsonObject {
    const { TypeFlags } = this.#ts;
    const isAbsent = (part: ts.Type) => (part.flags & (TypeFlags.Undefined | TypeFlags.Void)) !== 0;
    // The type of a channel with a reducer also allows LangGraph's wrapper that replaces the value. Schemas leave it out.
    const isOverwrite = (part: ts.Type) => part.getProperty("__overwrite__") !== undefined;
    const parts = type.types.filter((part) => !isAbsent(part) && !isOverwrite(part));
    if (parts.some((part) => this.#isMessageList(part))) return this.#messages();
    const [only] = parts;
    if (only === undefined) return {};
    if (parts.length === 1) return this.#schema(only);
    // Passes the whole union, including `undefined`, because a type alias names the whole union.
    return this.#defined(type, () => this.#alternatives(parts));
  }

  #alternatives(parts: readonly ts.Type[]): JsonObject {
    const { TypeFlags } = this.#ts;
    const simple = TypeFlags.String | TypeFlags.Number | TypeFlags.Null;
    const isBoolean = (part: ts.Type) => (part.flags & TypeFlags.BooleanLiteral) !== 0;
    const hasBothBooleans = parts.filter(isBoolean).length === 2;
    const types = parts.flatMap((part) => (part.flags & simple ? [String(this.#schema(part)["type"])] : []));
    if (hasBothBooleans) types.push("boolean");
    const literals = parts.filter((part) => part.isLiteral() || (isBoolean(part) && !hasBothBooleans));
    const others = parts.filter(
      (part) => !(part.flags & simple) && !isBoolean(part) && !literals.includes(part),
    );
    const schemas: JsonObject[] = [];
    if (types.length > 0) schemas.push({ type: types.length === 1 ? (types[0] ?? "null") : types });
    if (literals.length > 0) schemas.push(this.#literals(literals));
    schemas.push(...others.map((part) => this.#schema(part)));
    const [only = {}] = schemas;
    return schemas.length === 1 ? only : { anyOf: schemas };
  }

  #literals(types: readonly ts.Type[]): JsonObject {
    const values = types.map((type): string | number | boolean | null => {
      if (type.flags & this.#ts.TypeFlags.BooleanLiteral) return this.#checker.typeToString(type) === "true";
      const { value } = type as ts.LiteralType;
      // An object here is a bigint, which has no JSON form.
      return typeof value === "object" ? null : (value ?? null);
    });
    const kinds = new Set(values.map((value) => typeof value));
    if (values.includes(null)) return {};
    const [kind = "string"] = kinds;
    return {
      ...(kinds.size === 1 && { type: kind }),
      ...(values.length === 1 ? { const: values[0] ?? null } : { enum: values }),
    };
  }

  #tuple(type: ts.TypeReference): JsonObject {
    const { elementFlags } = type.target as ts.TupleType;
    const { ElementFlags } = this.#ts;
    const items = this.#checker.getTypeArguments(type).map((item) => this.#schema(item));
    const rest = elementFlags.findIndex((flags) => flags & ElementFlags.Variable);
    const required = elementFlags.filter((flags) => flags & ElementFlags.Required).length;
    if (rest < 0) return { type: "array", items, minItems: required, maxItems: items.length };
    return {
      type: "array",
      items: items.slice(0, rest),
      // Elements after a rest element have no fixed position.
      additionalItems: rest === items.length - 1 ? (items[rest] ?? {}) : {},
      minItems: required,
    };
  }

  #object(type: ts.Type): JsonObject {
    const checker = this.#checker;
    const properties = this.#properties(
      checker.getPropertiesOfType(type).map((symbol) => [symbol, checker.getTypeOfSymbol(symbol)] as const),
      false,
    );
    const index = type.getStringIndexType();
    const named = type.aliasSymbol ?? type.symbol;
    // The documentation of utility types such as `Partial` says nothing about the user's type.
    const about =
      named === undefined || this.#isOfLibrary(named) ? [] : named.getDocumentationComment(checker);
    const description = textOf(this.#ts, about);
    return {
      ...(description !== "" && { description }),
      type: "object",
      ...(Object.keys(properties).length > 0 && { properties }),
      ...(index !== undefined && { additionalProperties: this.#schema(index) }),
    };
  }

  /**
   * The schemas of properties, by name. Leaves out private members.
   * @param isState true for the keys of a state, which are listed even if their values are functions; false: functions
   * are left out
   */
  #properties(
    all: Iterable<readonly [symbol: ts.Symbol, type: ts.Type]>,
    isState: boolean,
  ): Record<string, JsonObject> {
    const described: Record<string, JsonObject> = {};
    for (const [symbol, type] of all) {
      // `__@` begins the name of a symbol such as `Symbol.iterator`, `__#` that of a private member.
      if (/^__[@#]/.test(symbol.name) || this.#isHidden(symbol)) continue;
      if (!isState && isFunction(this.#checker.getNonNullableType(type))) continue;
      const notes = this.#notesOf(symbol);
      const schema = this.#schema(type);
      Object.defineProperty(described, symbol.name, {
        value: { ...schema, ...notes },
        enumerable: true,
        configurable: true,
        writable: true,
      });
    }
    return described;
  }

  /** The schema keywords from the JSDoc comment of a property. */
  #notesOf(symbol: ts.Symbol): JsonObject {
    const description = textOf(this.#ts, symbol.getDocumentationComment(this.#checker));
    const tags = symbol
      .getJsDocTags(this.#checker)
      .filter(({ name }) => TAGS.has(name))
      .map(({ name, text }) => [name, jsonOrText(textOf(this.#ts, text ?? []))] as const);
    return { ...(description !== "" && { description }), ...Object.fromEntries(tags) };
  }

  #isHidden({ declarations = [] }: ts.Symbol): boolean {
    const { ModifierFlags } = this.#ts;
    const hidden = ModifierFlags.Private | ModifierFlags.Protected;
    return declarations.some((declared) => this.#ts.getCombinedModifierFlags(declared) & hidden);
  }

  #message(): JsonObject {
    this.#hasMessages = true;
    return { $ref: "#/definitions/BaseMessage" };
  }

  #messages(): JsonObject {
    return { type: "array", items: this.#message(), langgraph_type: "messages" };
  }

  #isMessageList(type: ts.Type): boolean {
    if (!this.#checker.isArrayType(type)) return false;
    const [item] = this.#checker.getTypeArguments(type as ts.TypeReference);
    return item !== undefined && this.#hasMessage(item);
  }

  #hasMessage(type: ts.Type): boolean {
    return type.isUnion() ? type.types.some((part) => this.#isMessage(part)) : this.#isMessage(type);
  }

  /** True for the class `BaseMessage` of `@langchain/core`, and for the classes that extend it. */
  #isMessage(type: ts.Type): boolean {
    // For an instantiation of a generic class, such as `ToolMessage<T>`, takes the declaration of the class.
    const declared = this.#isReference(type) ? type.target : type;
    if (!declared.isClassOrInterface()) return false;
    const { symbol } = declared;
    if (symbol.name === "BaseMessage") return isDeclaredIn(symbol, /[\\/]@langchain[\\/]core[\\/]/);
    return this.#checker.getBaseTypes(declared).some((base) => this.#isMessage(base));
  }

  #isReference(type: ts.Type): type is ts.TypeReference {
    const { ObjectFlags, TypeFlags } = this.#ts;
    if (!(type.flags & TypeFlags.Object)) return false;
    return ((type as ts.ObjectType).objectFlags & ObjectFlags.Reference) !== 0;
  }

  /** True for classes and interfaces of the language and its environment, such as `Map`. */
  #isBuiltIn({ symbol }: ts.Type): boolean {
    const { SymbolFlags } = this.#ts;
    if (symbol === undefined || !(symbol.flags & (SymbolFlags.Class | SymbolFlags.Interface))) return false;
    return this.#isOfLibrary(symbol) || isDeclaredIn(symbol, /[\\/]@types[\\/]node[\\/]/);
  }

  #isOfLibrary({ declarations = [] }: ts.Symbol): boolean {
    return declarations.some((declared) =>
      this.#program.isSourceFileDefaultLibrary(declared.getSourceFile()),
    );
  }
}

const primitiveFlags = ({ TypeFlags }: Compiler) =>
  TypeFlags.StringLike | TypeFlags.NumberLike | TypeFlags.BooleanLike | TypeFlags.BigIntLike;

function isFunction(type: ts.Type): boolean {
  return type.getCallSignatures().length > 0 || type.getConstructSignatures().length > 0;
}

function isDeclaredIn({ declarations = [] }: ts.Symbol, path: RegExp): boolean {
  return declarations.some((declared) => path.test(declared.getSourceFile().fileName));
}

function templatePattern({ TypeFlags }: Compiler, { texts, types }: ts.TemplateLiteralType): JsonObject {
  const escaped = texts.map((text) => text.replace(/[.*+?^${}()|[\]\\/]/g, String.raw`\$&`));
  const part = (type: ts.Type | undefined) =>
    type !== undefined && type.flags & TypeFlags.Number ? "[0-9.eE+-]+" : ".*";
  const pattern = escaped.map((text, i) => (i === 0 ? text : part(types[i - 1]) + text)).join("");
  return { type: "string", pattern: `^${pattern}$` };
}

function textOf({ displayPartsToString }: Compiler, parts: readonly ts.SymbolDisplayPart[]): string {
  return displayPartsToString([...parts]).trim();
}

/** The value of a JSDoc tag: parsed as JSON if possible, else its text. */
function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
