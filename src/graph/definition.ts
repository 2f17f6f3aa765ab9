import { type PlainError, ServiceError } from "../model/errors.ts";
import { md5Hex } from "../model/ids.ts";
import type { GraphDrawing } from "../model/graph-drawing.ts";
import type { JsonObject } from "../model/json.ts";
import type { ChildMachineStatus } from "../model/machine-child.ts";
import type { Timer } from "../model/machine-timer.ts";
import type { StatechartDefinition } from "../model/statechart.ts";
import { isChannel, type ChannelRule, type StateSpec } from "./channel.ts";
import { schemaChannel } from "./channels/last-value.ts";
import {
  checkName,
  checkTarget,
  requireObject,
  throwInvalidGraph,
  START,
  describeType,
} from "./definition-checks.ts";
import { isBranch, type Target } from "./commands.ts";
import type { AcceptedEvents, QuestionAfterMigration } from "../model/machine-mailbox.ts";
import { isGraphNode, toNodeRule, type NodeRule } from "./node.ts";
import { isSchema, type Schema, type SchemaResult } from "./standard-schema.ts";

/** The edges of a node: fixed targets, or a function that chooses targets, given the state. */
export type EdgeRule =
  | { readonly kind: "always"; readonly targets: readonly string[] }
  | {
      readonly kind: "choice";
      readonly choose: (state: never) => Target | readonly Target[];
      /** The possible targets; null if they were not declared. */
      readonly targets: readonly string[] | null;
    };

/**
 * A child machine (an XState machine that another machine invokes or spawns) that has started, processed an event or
 * ended in a step of the graph.
 */
export interface ChangedChildMachine {
  /** The number of the child machine. No other actor in the history of the checkpoint has this number. */
  readonly start: number;
  /** The number of the child machine's parent machine; null if the parent is the root machine. */
  readonly parent: number | null;
  readonly ns: string;
  readonly values: JsonObject;
  /** The nodes that run the child's actors or wait for an event. Empty if the child has ended. */
  readonly next: readonly ChildNode[];
  readonly status: ChildMachineStatus;
}

/** A node that runs for a child machine. `start`: the number of the actor that it runs; null for the node that waits for an event. */
export interface ChildNode {
  readonly name: string;
  readonly start: number | null;
}

/** The schemas that a machine declares for its input and its events. */
export interface MachineSchemas {
  /** The JSON Schema of the input; null if it is not known. */
  readonly inputJson: JsonObject | null;
  /** True if `parseEvent` needs the values of the thread, because each version of the machine has schemas of its own. */
  readonly areByVersion: boolean;
  /** The schema of the input; null if none is declared. */
  readonly input: Schema | null;
  /**
   * Validates the data of an event, and returns the event with the data that its schema returns. Returns the event
   * unchanged if it has no schema, if the machine takes it in none of its states, or if it is no event or too large; a
   * later check refuses the latter.
   */
  parseEvent(event: unknown, values: JsonObject | null): Promise<SchemaResult<unknown>>;
}

/** Extra data of a graph that was made from an XState machine. */
export interface MachineParts {
  /** The machine's own statechart, which is drawn instead of the graph's nodes. */
  chart(name: string): StatechartDefinition;
  drawing(): GraphDrawing;
  /** The state key that receives the whole input. */
  readonly inputKey: string;
  /** Undefined if the machine declares no schemas. */
  readonly schemas?: MachineSchemas | undefined;
  /** The default of `recursion_limit`, in steps. */
  readonly recursionLimit: number;
  /** The reason to refuse `answer`, given the value of the interrupt (`question`); undefined if the answer is accepted. */
  refusesAnswer(answer: unknown, question: unknown): string | undefined;
  /**
   * The question that the machine asks after its stored state was migrated, with the schema of the answer; null if the state needs no
   * migration or cannot be migrated.
   */
  migratedQuestion(values: JsonObject): QuestionAfterMigration | null;
  /**
   * The error with which the machine cannot continue from a state; null if it can, or if the state contains no machine. The graph lacks the
   * version of the state, its migration fails, or the version no longer has the state. The last of these is only checked if `isChanged`:
   * the graph has changed since the state was stored.
   */
  continuationError(values: JsonObject, isChanged: boolean): PlainError | null;
  /** The reason to refuse an event that the machine accepts in none of its states; undefined for other events. */
  refusesEvent(event: unknown): string | undefined;
  /** The events that the machine accepts while some of its invoked actors are running; null if none of them is running. */
  acceptedEvents(values: JsonObject): AcceptedEvents | null;
  /**
   * What is wrong with a client's write to a key that the machine keeps for itself; undefined if nothing is. `values` returns the state
   * with the write.
   */
  writeFault(
    write: JsonObject,
    values: () => JsonObject,
  ): { readonly key: string; readonly message: string } | undefined;
  /**
   * The write that puts the machine into one of its states, named by path or id. Other regions of parallel states stay as
   * they are in `values`. Undefined if the machine has no such state.
   */
  updateEnteringState(name: string, values: JsonObject): JsonObject | undefined;
  /** The paths of the machine's states. */
  stateNames(): readonly string[];
  /** The reason why the machine cannot begin with an input; undefined if nothing speaks against it. */
  whyNotInput(input: unknown): string | undefined;
  /** The reason why the machine cannot begin without an input; undefined if it can. */
  whyNeedsInput(): string | undefined;
  /** The context with which the machine begins for the input `{}`; undefined if it cannot begin with this input. */
  firstContext(): JsonObject | undefined;
  /** The timers that are set in a stored state of the machine. */
  timers(values: JsonObject): readonly Timer[];
  /**
   * The update that sends the event of a timer to the machine; null when the state does not have this timer any more.
   * @throws an error if the machine cannot take the event; the timer is then over, and the state stays as it is
   */
  timerUpdate(values: JsonObject, timer: Timer): JsonObject | null;
  /** The queued runs whose events the machine has processed in a step, read from the update of its node. */
  takenRuns(update: JsonObject | null): readonly string[];
  /** The child machines that have changed, read from the update of a node. A machine comes before its own children. */
  changedChildren(update: JsonObject | null): readonly ChangedChildMachine[];
  /**
   * The child machine to which the actor of a task belongs, read from the task's input; null if the task runs no actor of a
   * child machine.
   */
  childOfTask(input: unknown): { readonly ns: string; readonly start: number } | null;
  /** The numbers of the child machines that a stored state of the machine contains. */
  children(values: JsonObject): readonly number[];
  /**
   * The machines that this machine may start as children, directly or through other children, by their path of names
   * (`name|name`). Machines may start each other in a circle: a machine that occurs again within itself is listed once more,
   * without its children.
   */
  childMachines(): ReadonlyMap<string, DescribedGraph>;
  /**
   * The number of steps that the event of a queued run takes. A machine processes such events during the run in progress, so
   * each event adds this number to the step limit of that run.
   */
  readonly stepsOfEvent: number;
  /** Called when the execution of a run is over. Stops the actors that still work for the run. */
  runEnded(run: string): void;
}

/** The parts of a graph, or of a child machine, from which its JSON Schemas are made. */
export type DescribedGraph = Pick<
  GraphDefinition,
  "name" | "rules" | "required" | "context" | "input" | "output" | "outputSchemas"
> & { readonly machine?: Pick<MachineParts, "inputKey" | "firstContext" | "schemas"> };

/** A validated graph definition: immutable data. */
export interface GraphDefinition {
  readonly "~heddle": "graph";
  readonly name: string | null;
  /**
   * Identifies the version of the graph's structure. It covers names, edges, kinds of channels, and the schemas of
   * channels if these can be described, but not the code of functions. It is the same in every process.
   */
  readonly hash: string;
  readonly rules: ReadonlyMap<string, ChannelRule>;
  readonly nodes: ReadonlyMap<string, NodeRule>;
  /** The edges by the node where they start. The edges of {@link START} lead to the first nodes of the graph. */
  readonly edges: ReadonlyMap<string, EdgeRule>;
  /** The keys of the state that must have a value when a run starts. */
  readonly required: readonly string[];
  /** True if a node of the graph has the option `defer`. */
  readonly defers: boolean;
  /** The nodes with the option `after`, which wait until other nodes have run. */
  readonly joins: readonly NodeRule[];
  readonly context: Schema | undefined;
  /**
   * The state keys that an input may have; null if it may have all keys. The map gives an additional schema
   * for each key, or null if the key has none.
   */
  readonly input: ReadonlyMap<string, Schema | null> | null;
  /** The state keys that a run returns as its values; null: all. */
  readonly output: readonly string[] | null;
  /** Schemas that describe the output keys, for clients. */
  readonly outputSchemas: ReadonlyMap<string, Schema | null> | null;
  /** Converts a state that another version of this graph made. */
  readonly migrate: ((state: JsonObject, from: { readonly from: string }) => unknown) | undefined;
  readonly machine?: MachineParts;
}

function rulesOf(state: unknown): Map<string, ChannelRule> {
  const rules = new Map<string, ChannelRule>();
  for (const [key, spec] of Object.entries(requireObject(state, "state"))) {
    checkName(key, "The state key");
    if (isChannel(spec)) rules.set(key, spec);
    else if (isSchema(spec)) rules.set(key, schemaChannel(spec, `state.${key}`));
    else
      throwInvalidGraph(
        `state.${key} must be a schema (zod, valibot, arktype) or a channel such as list() or messages()`,
      );
  }
  return rules;
}

function readEdgeRule(spec: unknown, at: string, names: ReadonlySet<string>): EdgeRule {
  if (typeof spec === "function") {
    return { kind: "choice", choose: spec as (state: never) => Target, targets: null };
  }
  if (isBranch(spec)) {
    if (typeof spec.choose !== "function" || !Array.isArray(spec.targets))
      throwInvalidGraph(`${at}: a malformed branch()`);
    for (const target of spec.targets) checkTarget(target, at, names, true);
    return { kind: "choice", choose: spec.choose, targets: [...spec.targets] };
  }
  const targets: readonly unknown[] = Array.isArray(spec) ? spec : [spec];
  for (const target of targets) checkTarget(target, at, names, true);
  return { kind: "always", targets: [...new Set(targets as readonly string[])] };
}

/**
 * Reads the keys of `input` or `output`: a list of state keys, or a record with a schema for each. Returns null, which
 * means all keys, if `spec` is undefined.
 */
function readKeys(
  spec: unknown,
  at: string,
  rules: ReadonlyMap<string, ChannelRule>,
): ReadonlyMap<string, Schema | null> | null {
  if (spec === undefined) return null;
  const keys = new Map<string, Schema | null>();
  const entries: readonly (readonly [unknown, unknown])[] = Array.isArray(spec)
    ? spec.map((key: unknown) => [key, null])
    : Object.entries(requireObject(spec, at));
  for (const [key, schema] of entries) {
    if (typeof key !== "string" || !rules.has(key)) {
      throwInvalidGraph(
        `${at} names "${String(key)}", which is no key of the state; it has ${[...rules.keys()].join(", ")}`,
      );
    }
    if (schema !== null && !isSchema(schema)) throwInvalidGraph(`${at}.${key} must be a schema`);
    keys.set(key, schema);
  }
  return keys;
}

function readInputKeys(spec: unknown, rules: ReadonlyMap<string, ChannelRule>): GraphDefinition["input"] {
  const input = readKeys(spec, "input", rules);
  for (const [key, rule] of rules) {
    if (input === null || rule.required !== true || input.has(key)) continue;
    throwInvalidGraph(`state.${key} is required but missing in input: add it to input, or make it optional`);
  }
  return input;
}

function hashOf({ rules, nodes, edges }: Pick<GraphDefinition, "rules" | "nodes" | "edges">): string {
  return md5Hex(
    JSON.stringify([
      [...rules].map(([key, { kind, life, shape }]) => [key, kind, life, shape ?? null]).sort(),
      [...nodes.values()]
        .map(({ name, graph, input, after, defer }) => [
          name,
          input !== undefined,
          after,
          defer,
          ...(graph === null ? [] : [graph.hash]),
        ])
        .sort(),
      [...edges].map(([from, { kind, targets }]) => [from, kind, targets]).sort(),
    ]),
  );
}

export function isDefinition(value: unknown): value is GraphDefinition {
  return isGraphNode(value);
}

interface GraphLiteral {
  readonly name?: string;
  readonly state: StateSpec;
  readonly context?: Schema;
  readonly input?: unknown;
  readonly output?: unknown;
  readonly migrate?: unknown;
  readonly nodes: object;
  readonly edges: object;
}

const PARTS: ReadonlySet<string> = new Set([
  "name",
  "state",
  "context",
  "input",
  "output",
  "migrate",
  "nodes",
  "edges",
]);

/**
 * The required members of a graph literal (the argument of `graph()`), each with an explanation for the error message.
 */
const REQUIRED_PARTS = [
  ["state", "it names the keys of the state, each with a schema or a channel"],
  ["nodes", "it names the nodes, each with its function"],
  ["edges", "it says what runs after each node; edges.start names the node that runs first"],
] as const;

/**
 * Validates a graph literal (the argument of `graph()`) and freezes it.
 * @throws ServiceError `graph.invalid`, which names the graph and the invalid member
 */
export function defineGraph(literal: GraphLiteral): GraphDefinition {
  if (typeof literal !== "object" || literal === null || Array.isArray(literal)) {
    throwInvalidGraph(`graph() takes an object with state, nodes and edges, not ${describeType(literal)}`);
  }
  try {
    return definitionOf(literal);
  } catch (thrown) {
    const { name } = literal;
    if (!(thrown instanceof ServiceError) || typeof name !== "string" || name === "") throw thrown;
    throw new ServiceError(thrown.code, `Graph "${name.slice(0, 128)}": ${thrown.message}`, {
      cause: thrown,
    });
  }
}

function definitionOf(literal: GraphLiteral): GraphDefinition {
  for (const part of Object.keys(literal)) {
    if (!PARTS.has(part)) throwInvalidGraph(`${part} is not known; a graph has ${[...PARTS].join(", ")}`);
  }
  for (const [part, what] of REQUIRED_PARTS) {
    if (literal[part] === undefined) throwInvalidGraph(`${part} is missing: ${what}`);
  }
  const { name, context, migrate } = literal;
  if (name !== undefined && typeof name !== "string") throwInvalidGraph("name must be a text");
  const specs = requireObject(literal.nodes, "nodes");
  const names = new Set(Object.keys(specs));
  if (names.size === 0) throwInvalidGraph("nodes is empty: a graph needs at least one node");
  const nodes = new Map<string, NodeRule>();
  for (const node of names) {
    nodes.set(node, toNodeRule(node, specs[node], names));
  }
  const edges = new Map<string, EdgeRule>();
  for (const [from, spec] of Object.entries(requireObject(literal.edges, "edges"))) {
    if (spec === undefined) continue;
    if (from !== "start") checkTarget(from, "edges", names, false);
    edges.set(from === "start" ? START : from, Object.freeze(readEdgeRule(spec, `edges.${from}`, names)));
  }
  if (!edges.has(START)) throwInvalidGraph("edges.start is missing: it names the node that runs first");
  if (context !== undefined && !isSchema(context)) throwInvalidGraph("context must be a schema");
  if (migrate !== undefined && typeof migrate !== "function")
    throwInvalidGraph("migrate must be a function of the state");
  const rules = rulesOf(literal.state);
  const output = readKeys(literal.output, "output", rules);
  return Object.freeze({
    "~heddle": "graph" as const,
    name: name ?? null,
    hash: hashOf({ rules, nodes, edges }),
    rules,
    nodes,
    edges,
    required: [...rules].filter(([, rule]) => rule.required === true).map(([key]) => key),
    defers: [...nodes.values()].some((node) => node.defer),
    joins: [...nodes.values()].filter((node) => node.after.length > 0),
    context,
    input: readInputKeys(literal.input, rules),
    output: output && [...output.keys()],
    outputSchemas: output,
    migrate: migrate as GraphDefinition["migrate"],
  });
}

/** The subgraph of a node; null if the node is a function. */
export function subgraphOf(node: NodeRule | undefined): GraphDefinition | null {
  return (node?.graph ?? null) as GraphDefinition | null;
}

/**
 * The subgraph at a namespace (`node:task|node:task`) of a graph.
 * @throws ServiceError `graph.not_found`
 */
export function subgraphDefinitionAt(root: GraphDefinition, ns: string): GraphDefinition {
  let graph = root;
  for (const node of ns === "" ? [] : ns.split("|").map((part) => part.split(":", 1)[0] ?? "")) {
    const inner = subgraphOf(graph.nodes.get(node));
    if (inner === null) throw new ServiceError("graph.not_found", `Node "${node}" is no graph`);
    graph = inner;
  }
  return graph;
}
