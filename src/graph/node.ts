import type { Ctx } from "./node-context.ts";
import { checkName, checkTarget, milliseconds, record, refuse } from "./definition-checks.ts";
import { isSchema, type Schema } from "./standard-schema.ts";

/** How a failed node is tried again. Times in milliseconds. */
export interface RetryRule {
  /** Tries in all, at least 1. */
  readonly attempts: number;
  /** The pause after the first failure. */
  readonly initial: number;
  /** What each further pause is multiplied by. */
  readonly factor: number;
  /** No pause is longer. */
  readonly max: number;
  /** Spread pauses by chance, so that many that failed together do not come back together. */
  readonly jitter: boolean;
  /** Is an error worth another try? Undefined: the errors that may pass are. */
  readonly when: ((error: unknown) => boolean) | undefined;
}

/** How long the results of a node are kept, and by what they are found. */
export interface CacheRule {
  /** Milliseconds, or null for as long as the process lives. */
  readonly ttl: number | null;
  readonly key: ((input: never, context: never) => unknown) | undefined;
}

/** A graph in the place of a body; `definition.ts` knows all of it. */
export interface GraphNode {
  readonly "~heddle": "graph";
  readonly hash: string;
}

/** Told by a mark, not by its making: a graph file may have loaded its own copy of this module. */
export function isGraphNode(value: unknown): value is GraphNode {
  return typeof value === "object" && value !== null && (value as Partial<GraphNode>)["~heddle"] === "graph";
}

/** A node as the engine sees it. */
export interface NodeRule {
  readonly name: string;
  readonly run: (state: unknown, ctx: Ctx) => unknown;
  /** The graph that the node is, in place of a body; null where it has one. */
  readonly graph: GraphNode | null;
  /** Checks what the node gets; undefined: it gets the state. */
  readonly input: Schema | undefined;
  readonly retry: RetryRule;
  /** Milliseconds that a try may take, or null. */
  readonly timeout: number | null;
  /** The nodes that must all have run before it runs; empty: it waits for none. */
  readonly after: readonly string[];
  /** Does it wait until nothing else is left to run? */
  readonly defer: boolean;
  readonly cache: CacheRule | null;
}

/** LangGraph's default policy, but for the number of tries: who says nothing wants no second one. */
const ONCE: RetryRule = Object.freeze({
  attempts: 1,
  initial: 500,
  factor: 2,
  max: 128_000,
  jitter: true,
  when: undefined,
});

const OPTIONS: ReadonlySet<string> = new Set(["run", "input", "retry", "timeout", "after", "defer", "cache"]);

/** Checks one entry of `nodes`. @throws ServiceError `graph.invalid`, naming the node and the option */
export function nodeOf(name: string, spec: unknown, names: ReadonlySet<string>): NodeRule {
  checkName(name, "The node");
  const at = `nodes.${name}`;
  const options = typeof spec === "function" || isGraphNode(spec) ? { run: spec } : record(spec, at);
  checkOptions(options, OPTIONS, at);
  const { run, input, retry, timeout, after = [], defer = false, cache } = options;
  if (typeof run !== "function" && !isGraphNode(run)) refuse(`${at}.run must be a function or a graph`);
  if (input !== undefined && !isSchema(input)) refuse(`${at}.input must be a schema`);
  if (!Array.isArray(after)) refuse(`${at}.after must be an array of node names`);
  for (const one of after as readonly unknown[]) checkTarget(one, `${at}.after`, names, false);
  if (isGraphNode(run) && cache !== undefined)
    refuse(`${at}.cache is for functions: a graph has nodes of its own`);
  if (typeof defer !== "boolean") refuse(`${at}.defer must be true or false`);
  return Object.freeze({
    name,
    run: isGraphNode(run) ? noBody : (run as NodeRule["run"]),
    graph: isGraphNode(run) ? run : null,
    input,
    retry: retryOf(retry, `${at}.retry`),
    timeout: timeout === undefined ? null : milliseconds(timeout, `${at}.timeout`),
    after: [...new Set(after as readonly string[])].sort(),
    defer,
    cache: cacheOf(cache, `${at}.cache`),
  });
}

const noBody = (): never => {
  throw new TypeError("A node that is a graph has no body");
};

function checkOptions(options: object, known: ReadonlySet<string>, at: string): void {
  for (const option of Object.keys(options)) {
    if (!known.has(option)) refuse(`${at}.${option} is not known; known are ${[...known].join(", ")}`);
  }
}

const RETRY: ReadonlySet<string> = new Set(["attempts", "initial", "factor", "max", "jitter", "when"]);

function attemptsOf(value: unknown, at: string): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= 1) return value;
  return refuse(`${at} must be a whole number of tries, at least 1`);
}

function retryOf(spec: unknown, at: string): RetryRule {
  if (spec === undefined) return ONCE;
  if (typeof spec === "number") return Object.freeze({ ...ONCE, attempts: attemptsOf(spec, at) });
  const options = record(spec, at);
  checkOptions(options, RETRY, at);
  const { attempts = 3, initial, factor = ONCE.factor, max, jitter = true, when } = options;
  if (typeof factor !== "number" || !Number.isFinite(factor) || factor < 1) {
    refuse(`${at}.factor must be a number, at least 1`);
  }
  if (typeof jitter !== "boolean") refuse(`${at}.jitter must be true or false`);
  if (when !== undefined && typeof when !== "function") refuse(`${at}.when must be a function of the error`);
  return Object.freeze({
    attempts: attemptsOf(attempts, `${at}.attempts`),
    initial: initial === undefined ? ONCE.initial : milliseconds(initial, `${at}.initial`),
    factor,
    max: max === undefined ? ONCE.max : milliseconds(max, `${at}.max`),
    jitter,
    when: when as RetryRule["when"],
  });
}

const CACHE: ReadonlySet<string> = new Set(["ttl", "key"]);

function cacheOf(spec: unknown, at: string): CacheRule | null {
  if (spec === undefined) return null;
  const options = record(spec, at);
  checkOptions(options, CACHE, at);
  const { ttl, key } = options;
  if (key !== undefined && typeof key !== "function") refuse(`${at}.key must be a function of the input`);
  return Object.freeze({
    ttl: ttl === undefined ? null : milliseconds(ttl, `${at}.ttl`),
    key: key as CacheRule["key"],
  });
}
