import type { Permission, ReadMember } from "../model/permitted-resources.ts";

/** The largest number of conditions in a filter. Each item of a `$contains` list counts as one. */
const MAX_CONDITIONS = 1_000;
/** The largest number of levels of nested `$or` and `$and`. */
const MAX_LEVELS = 8;

type Test = (read: ReadMember) => boolean;
type Scalar = string | number | boolean | null;

/**
 * Compiles a filter that a handler of the project has returned. A resource must meet the conditions of all members of the filter. `name:
 * value` and `name: { $eq: value }` require that the resource's member `name` is equal to the value. `name: { $contains: value }` requires
 * that this member is a list that contains the value or, if the value is a list, all of its items. `$or` and `$and` hold lists of filters.
 *
 * Stricter than LangGraph's own server, which ignores conditions that it does not understand. Here, an undefined value, an empty condition
 * and an unknown operator are errors, because ignoring them would allow more than the author meant.
 * @throws TypeError with what is wrong with the filter
 */
export function compileAuthFilter(filter: unknown): Permission {
  const members: Record<string, Scalar> = {};
  const test = new FilterCompiler().all(filter, 0, members);
  return { members, allows: test };
}

class FilterCompiler {
  #count = 0;

  /**
   * Compiles a filter whose conditions must all be met.
   * @param equal an object to which this method adds the members, with their values, that every matching resource has
   */
  all(filter: unknown, level: number, equal?: Record<string, Scalar>): Test {
    if (typeof filter !== "object" || filter === null || Array.isArray(filter))
      throw new TypeError(`a filter must be an object, not ${kindOf(filter)}`);
    assertPlain(filter, "a filter");
    if (level > MAX_LEVELS) throw new TypeError(`a filter has more than ${MAX_LEVELS} levels`);
    const tests = Object.entries(filter).map(([name, wanted]) => {
      if (name === "$or") return this.#any(wanted, level);
      if (name === "$and") return this.#each(wanted, level, equal);
      if (name.startsWith("$")) throw new TypeError(`a filter has no operator ${quoted(name)}`);
      return this.#condition(name, wanted, equal);
    });
    return (read) => tests.every((test) => test(read));
  }

  #any(filters: unknown, level: number): Test {
    const tests = this.#list(filters, "$or").map((filter) => this.all(filter, level + 1));
    return (read) => tests.some((test) => test(read));
  }

  #each(filters: unknown, level: number, equal?: Record<string, Scalar>): Test {
    const tests = this.#list(filters, "$and").map((filter) => this.all(filter, level + 1, equal));
    return (read) => tests.every((test) => test(read));
  }

  #condition(name: string, wanted: unknown, equal: Record<string, Scalar> | undefined): Test {
    if (isScalar(wanted)) return this.#equals(name, wanted, equal);
    if (typeof wanted !== "object" || wanted === null || Array.isArray(wanted))
      throw new TypeError(`the filter's ${quoted(name)} is ${kindOf(wanted)}`);
    assertPlain(wanted, `the filter's ${quoted(name)}`);
    const operators = Object.entries(wanted);
    if (operators.length === 0) throw new TypeError(`the filter's ${quoted(name)} has no operator`);
    const tests = operators.map(([operator, operand]): Test => {
      const at = `${quoted(name)}.${operator}`;
      if (operator === "$eq") {
        if (!isScalar(operand)) throw new TypeError(`the filter's ${at} is ${kindOf(operand)}`);
        return this.#equals(name, operand, equal);
      }
      if (operator === "$contains") return this.#contains(name, operand, at);
      throw new TypeError(`a filter has no operator ${quoted(operator)}`);
    });
    return (read) => tests.every((test) => test(read));
  }

  #equals(name: string, wanted: Scalar, equal: Record<string, Scalar> | undefined): Test {
    this.#noteCondition();
    // Not assigned, because an assignment to `__proto__` would set the prototype.
    if (equal !== undefined && wanted !== null)
      Object.defineProperty(equal, name, {
        value: wanted,
        enumerable: true,
        configurable: true,
        writable: true,
      });
    return (read) => read(name) === wanted;
  }

  #contains(name: string, operand: unknown, at: string): Test {
    const wanted = Array.isArray(operand) ? this.#list(operand, at) : [operand];
    for (const one of wanted) {
      if (!isScalar(one)) throw new TypeError(`the filter's ${at} holds ${kindOf(one)}`);
      this.#noteCondition();
    }
    return (read) => {
      const list = read(name);
      return Array.isArray(list) && wanted.every((one) => list.includes(one));
    };
  }

  #list(value: unknown, at: string): readonly unknown[] {
    if (!Array.isArray(value) || value.length === 0)
      throw new TypeError(`the filter's ${at} must be a list with entries`);
    return value;
  }

  #noteCondition(): void {
    if (++this.#count > MAX_CONDITIONS)
      throw new TypeError(`a filter has more than ${MAX_CONDITIONS} conditions`);
  }
}

/**
 * Refuses instances of classes. Many of them, such as maps and dates, have no members of their own: as a filter, they would match every
 * resource.
 */
function assertPlain(value: object, what: string): void {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === null || prototype === Object.prototype) return;
  const { constructor } = prototype as { readonly constructor?: { readonly name?: unknown } };
  throw new TypeError(`${what} must be a plain object, not of the class ${String(constructor?.name)}`);
}

function isScalar(value: unknown): value is Scalar {
  if (typeof value === "number") return Number.isFinite(value);
  return value === null || typeof value === "string" || typeof value === "boolean";
}

const kindOf = (value: unknown): string =>
  value === null ? "null" : Array.isArray(value) ? "a list" : `of the type ${typeof value}`;

const quoted = (text: string): string => JSON.stringify(text.slice(0, 100));
