import type { Ctx } from "./node-context.ts";
import { isObject } from "../model/json.ts";
import {
  checkName,
  checkTarget,
  requireDurationMs,
  requireObject,
  throwInvalidGraph,
  describeType,
} from "./definition-checks.ts";
import { isSchema, type Schema } from "./standard-schema.ts";

/** The retry policy of a node, with defaults filled in. Times are in milliseconds. */
export interface RetryRule {
  /** The number of attempts of a task, at least 1. */
  readonly attempts: number;
  /** The pause after the first failure, in milliseconds. */
  readonly initial: number;
  /** The factor by which each pause is longer than the pause before it. */
  readonly factor: number;
  /** The longest pause, in milliseconds. */
  readonly max: number;
  /** True: pauses are randomized, so that nodes that failed at the same time do not retry at the same time. */
  readonly jitter: boolean;
  /**
   * Returns true if a retry makes sense after this error. Undefined: all errors are retried except permanent errors,
   * such as HTTP status 400.
   */
  readonly when: ((error: unknown) => boolean) | undefined;
}

/** The result cache of a node: the time to live and the key of its results. */
export interface CacheRule {
  /** Milliseconds that a result may be used; null: no limit. */
  readonly ttl: number | null;
  readonly key: ((input: never, context: never) => unknown) | undefined;
}

/** A graph as a node. The full type, `GraphDefinition`, is in `definition.ts`, which imports this file. */
export interface GraphNode {
  readonly "~heddle": "graph";
  readonly hash: string;
}

/** True if the value is a graph. Checks a brand and not a class, because a graph file may have loaded its own copy of this module. */
export function isGraphNode(value: unknown): value is GraphNode {
  return typeof value === "object" && value !== null && (value as Partial<GraphNode>)["~heddle"] === "graph";
}

/** A validated node, with defaults filled in. */
export interface NodeRule {
  readonly name: string;
  readonly run: (state: unknown, ctx: Ctx) => unknown;
  /** The subgraph, if the node is one; null for a function. */
  readonly graph: GraphNode | null;
  /** Validates the node's input. Undefined: the node gets the state. */
  readonly input: Schema | undefined;
  readonly retry: RetryRule;
  /** The timeout of an attempt of a task in milliseconds; null: none. */
  readonly timeout: number | null;
  /** The nodes that must all have run before this one; may be empty. */
  readonly after: readonly string[];
  /** True if the node waits until no other node is left to run. */
  readonly defer: boolean;
  readonly cache: CacheRule | null;
}

/** LangGraph's default retry policy, except for the number of attempts: by default there is no retry. */
const NO_RETRY: RetryRule = Object.freeze({
  attempts: 1,
  initial: 500,
  factor: 2,
  max: 128_000,
  jitter: true,
  when: undefined,
});

const OPTIONS: ReadonlySet<string> = new Set(["run", "input", "retry", "timeout", "after", "defer", "cache"]);

/** Validates one entry of `nodes`. @throws ServiceError `graph.invalid`, with the name of the node and the option */
export function toNodeRule(name: string, spec: unknown, names: ReadonlySet<string>): NodeRule {
  checkName(name, "The node");
  const at = `nodes.${name}`;
  if (typeof spec !== "function" && !isObject(spec)) {
    throwInvalidGraph(`${at} must be a function, an object with run, or a graph, not ${describeType(spec)}`);
  }
  const options = typeof spec === "function" || isGraphNode(spec) ? { run: spec } : spec;
  checkOptions(options, OPTIONS, at);
  const { run, input, retry, timeout, after = [], defer = false, cache } = options;
  if (typeof run !== "function" && !isGraphNode(run)) {
    throwInvalidGraph(`${at}.run must be a function or a graph, not ${describeType(run)}`);
  }
  if (input !== undefined && !isSchema(input)) throwInvalidGraph(`${at}.input must be a schema`);
  if (!Array.isArray(after)) throwInvalidGraph(`${at}.after must be an array of node names`);
  for (const one of after as readonly unknown[]) checkTarget(one, `${at}.after`, names, false);
  if (isGraphNode(run) && cache !== undefined)
    throwInvalidGraph(`${at}.cache is for functions: a graph has nodes of its own`);
  if (typeof defer !== "boolean") throwInvalidGraph(`${at}.defer must be true or false`);
  return Object.freeze({
    name,
    run: isGraphNode(run) ? noFunction : (run as NodeRule["run"]),
    graph: isGraphNode(run) ? run : null,
    input,
    retry: retryOf(retry, `${at}.retry`),
    timeout: timeout === undefined ? null : requireDurationMs(timeout, `${at}.timeout`),
    after: [...new Set(after as readonly string[])].sort(),
    defer,
    cache: cacheOf(cache, `${at}.cache`),
  });
}

const noFunction = (): never => {
  throw new TypeError("A node that is a graph has no body");
};

function checkOptions(options: object, known: ReadonlySet<string>, at: string): void {
  for (const option of Object.keys(options)) {
    if (!known.has(option))
      throwInvalidGraph(`${at}.${option} is not known; known are ${[...known].join(", ")}`);
  }
}

const RETRY: ReadonlySet<string> = new Set(["attempts", "initial", "factor", "max", "jitter", "when"]);

function attemptsOf(value: unknown, at: string): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= 1) return value;
  return throwInvalidGraph(`${at} must be a whole number of tries, at least 1`);
}

function retryOf(spec: unknown, at: string): RetryRule {
  if (spec === undefined) return NO_RETRY;
  if (typeof spec === "number") return Object.freeze({ ...NO_RETRY, attempts: attemptsOf(spec, at) });
  const options = requireObject(spec, at);
  checkOptions(options, RETRY, at);
  const { attempts = 3, initial, factor = NO_RETRY.factor, max, jitter = true, when } = options;
  if (typeof factor !== "number" || !Number.isFinite(factor) || factor < 1) {
    throwInvalidGraph(`${at}.factor must be a number, at least 1`);
  }
  if (typeof jitter !== "boolean") throwInvalidGraph(`${at}.jitter must be true or false`);
  if (when !== undefined && typeof when !== "function")
    throwInvalidGraph(`${at}.when must be a function of the error`);
  return Object.freeze({
    attempts: attemptsOf(attempts, `${at}.attempts`),
    initial: initial === undefined ? NO_RETRY.initial : requireDurationMs(initial, `${at}.initial`),
    factor,
    max: max === undefined ? NO_RETRY.max : requireDurationMs(max, `${at}.max`),
    jitter,
    when: when as RetryRule["when"],
  });
}

const CACHE: ReadonlySet<string> = new Set(["ttl", "key"]);

function cacheOf(spec: unknown, at: string): CacheRule | null {
  if (spec === undefined) return null;
  const options = requireObject(spec, at);
  checkOptions(options, CACHE, at);
  const { ttl, key } = options;
  if (key !== undefined && typeof key !== "function")
    throwInvalidGraph(`${at}.key must be a function of the input`);
  return Object.freeze({
    ttl: ttl === undefined ? null : requireDurationMs(ttl, `${at}.ttl`),
    key: key as CacheRule["key"],
  });
}
