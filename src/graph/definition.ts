import { ServiceError } from "../model/errors.ts";
import { hex32 } from "../model/ids.ts";
import { isObject } from "../model/json.ts";
import { isChannel, type Rule, type StateSpec } from "./channel.ts";
import { checked } from "./channels/last-value.ts";
import type { Ctx } from "./context.ts";
import { END, isBranch, type Target } from "./moves.ts";
import { isSchema, type Schema } from "./schema.ts";

/** The pseudo node whose task is the input; its edge is `edges.start`. */
export const START = "__start__";

/** A node as the engine sees it. */
export interface NodeRule {
  readonly name: string;
  readonly run: (state: unknown, ctx: Ctx) => unknown;
  /** Checks what the node gets; undefined: it gets the state. */
  readonly input: Schema | undefined;
  /** Tries, at least 1. */
  readonly retry: number;
  /** Milliseconds that a try may take, or null. */
  readonly timeout: number | null;
  /** The nodes that must all have run before it runs; empty: it waits for none. */
  readonly after: readonly string[];
}

/** Where a node leads: always the same, or chosen by the state. */
export type EdgeRule =
  | { readonly kind: "always"; readonly targets: readonly string[] }
  | {
      readonly kind: "choice";
      readonly choose: (state: never) => Target | readonly Target[];
      /** What it may choose among, where that was declared. */
      readonly targets: readonly string[] | null;
    };

/** A graph, checked: immutable data. */
export interface Definition {
  readonly "~heddle": "graph";
  readonly name: string | null;
  /** Changes when the definition does; the same in every process. */
  readonly hash: string;
  readonly rules: ReadonlyMap<string, Rule>;
  readonly nodes: ReadonlyMap<string, NodeRule>;
  /** By the node that they leave; the start is {@link START}. */
  readonly edges: ReadonlyMap<string, EdgeRule>;
  /** The nodes that wait for others. */
  readonly joins: readonly NodeRule[];
  readonly context: Schema | undefined;
}

const RESERVED: ReadonlySet<string> = new Set([
  "start",
  START,
  END,
  "__input__",
  "__copy__",
  "__interrupt__",
  "__error__",
  "__proto__",
]);
const MAX_NAME = 128;
const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

function refuse(what: string): never {
  throw new ServiceError("graph.invalid", what);
}

function checkName(name: string, what: string): void {
  if (RESERVED.has(name)) refuse(`${what} "${name}" has a reserved name; call it something else`);
  if (name === "") refuse(`${what} has an empty name`);
  if (name.length > MAX_NAME)
    refuse(`${what} "${name.slice(0, 32)}..." has a name of over ${MAX_NAME} characters`);
  // oxlint-disable-next-line no-control-regex -- control characters are what is looked for
  if (/[|:\u0000-\u001f]/.test(name)) {
    refuse(`${what} ${JSON.stringify(name)}: a name must not contain "|", ":" or control characters`);
  }
}

function record(value: unknown, what: string): { readonly [key: string]: unknown } {
  return isObject(value) ? value : refuse(`${what} must be a plain object`);
}

function rulesOf(state: unknown): Map<string, Rule> {
  const rules = new Map<string, Rule>();
  for (const [key, spec] of Object.entries(record(state, "state"))) {
    checkName(key, "The state key");
    if (isChannel(spec)) rules.set(key, spec);
    else if (isSchema(spec)) rules.set(key, checked(spec, `state.${key}`));
    else
      refuse(
        `state.${key} must be a schema (zod, valibot, arktype) or a channel such as list() or messages()`,
      );
  }
  return rules;
}

function milliseconds(timeout: unknown, what: string): number | null {
  if (timeout === undefined) return null;
  if (typeof timeout === "number" && Number.isFinite(timeout) && timeout > 0) return timeout;
  const parts = typeof timeout === "string" ? /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(timeout) : null;
  const unit = UNITS[parts?.[2] ?? ""];
  if (parts === null || unit === undefined) {
    return refuse(`${what} must be milliseconds or a text such as "500ms", "30s" or "2m"`);
  }
  return Number(parts[1]) * unit;
}

const OPTIONS: ReadonlySet<string> = new Set(["run", "input", "retry", "timeout", "after"]);

function nodeOf(name: string, spec: unknown, names: ReadonlySet<string>): NodeRule {
  checkName(name, "The node");
  if (isDefinition(spec)) refuse(`nodes.${name} is a graph: subgraphs are not served yet`);
  if (typeof spec === "function") {
    const run = spec as NodeRule["run"];
    return { name, run, input: undefined, retry: 1, timeout: null, after: [] };
  }
  const options = record(spec, `nodes.${name}`);
  for (const option of Object.keys(options)) {
    if (!OPTIONS.has(option)) refuse(`nodes.${name}.${option} is not known, or not served yet`);
  }
  const { run, input, retry = 1, timeout, after = [] } = options;
  if (typeof run !== "function") refuse(`nodes.${name}.run must be a function`);
  if (input !== undefined && !isSchema(input)) refuse(`nodes.${name}.input must be a schema`);
  if (typeof retry !== "number" || !Number.isInteger(retry) || retry < 1) {
    refuse(`nodes.${name}.retry must be a whole number of tries, at least 1`);
  }
  if (!Array.isArray(after)) refuse(`nodes.${name}.after must be an array of node names`);
  for (const one of after as readonly unknown[]) checkTarget(one, `nodes.${name}.after`, names, false);
  return {
    name,
    run: run as NodeRule["run"],
    input,
    retry,
    timeout: milliseconds(timeout, `nodes.${name}.timeout`),
    after: [...new Set(after as readonly string[])].sort(),
  };
}

function checkTarget(target: unknown, at: string, names: ReadonlySet<string>, end: boolean): void {
  if (end && target === END) return;
  if (typeof target !== "string" || !names.has(target)) {
    const shown = typeof target === "string" ? JSON.stringify(target) : `a ${typeof target}`;
    refuse(`${at} names ${shown}, which is no node; the nodes are ${[...names].join(", ")}`);
  }
}

function edgeOf(spec: unknown, at: string, names: ReadonlySet<string>): EdgeRule {
  if (typeof spec === "function") {
    return { kind: "choice", choose: spec as (state: never) => Target, targets: null };
  }
  if (isBranch(spec)) {
    if (typeof spec.choose !== "function" || !Array.isArray(spec.targets))
      refuse(`${at}: a malformed branch()`);
    for (const target of spec.targets) checkTarget(target, at, names, true);
    return { kind: "choice", choose: spec.choose, targets: [...spec.targets] };
  }
  const targets: readonly unknown[] = Array.isArray(spec) ? spec : [spec];
  for (const target of targets) checkTarget(target, at, names, true);
  return { kind: "always", targets: [...new Set(targets as readonly string[])] };
}

/** Functions count by their source text: an edit that means the same is a change all the same. */
function hashOf(definition: Omit<Definition, "hash">): string {
  const { name, rules, nodes, edges } = definition;
  return hex32(
    JSON.stringify([
      name,
      [...rules].map(([key, rule]) => [key, rule.kind, rule.life, rule.initial ?? null]),
      [...nodes.values()].map((node) => [
        node.name,
        String(node.run),
        node.input !== undefined,
        node.retry,
        node.timeout,
        node.after,
      ]),
      [...edges].map(([from, edge]) => [
        from,
        edge.targets,
        edge.kind === "choice" ? String(edge.choose) : null,
      ]),
    ]),
  );
}

/** Told by a mark, not by its making: a graph file may have loaded its own copy of this module. */
export function isDefinition(value: unknown): value is Definition {
  return typeof value === "object" && value !== null && (value as Partial<Definition>)["~heddle"] === "graph";
}

/**
 * Checks a graph's literal and freezes it.
 * @throws ServiceError `graph.invalid`, naming the part
 */
export function define(literal: {
  readonly name?: string;
  readonly state: StateSpec;
  readonly context?: Schema;
  readonly nodes: object;
  readonly edges: object;
}): Definition {
  const specs = record(literal.nodes, "nodes");
  const names = new Set(Object.keys(specs));
  if (names.size === 0) refuse("nodes is empty: a graph needs at least one node");
  const nodes = new Map<string, NodeRule>();
  for (const name of names) nodes.set(name, Object.freeze(nodeOf(name, specs[name], names)));
  const edges = new Map<string, EdgeRule>();
  for (const [from, spec] of Object.entries(record(literal.edges, "edges"))) {
    if (spec === undefined) continue;
    if (from !== "start") checkTarget(from, "edges", names, false);
    edges.set(from === "start" ? START : from, Object.freeze(edgeOf(spec, `edges.${from}`, names)));
  }
  if (!edges.has(START)) refuse("edges.start is missing: it names the node that runs first");
  if (literal.context !== undefined && !isSchema(literal.context)) refuse("context must be a schema");
  const parts = {
    "~heddle": "graph" as const,
    name: literal.name ?? null,
    rules: rulesOf(literal.state),
    nodes,
    edges,
    joins: [...nodes.values()].filter((node) => node.after.length > 0),
    context: literal.context,
  };
  return Object.freeze({ ...parts, hash: hashOf(parts) });
}
