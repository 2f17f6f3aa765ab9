import { coerceMessageLikeToMessage } from "@langchain/core/messages";
import {
  Annotation,
  Command,
  interrupt,
  type LangGraphRunnableConfig,
  messagesStateReducer,
  Send,
  StateGraph,
  UntrackedValue,
} from "@langchain/langgraph";
import { EphemeralValue } from "@langchain/langgraph/channels";
import { InMemoryCache } from "@langchain/langgraph-checkpoint";
import type { ChannelRule } from "../../src/graph/channel.ts";
import type { Ctx, MessageMaker } from "../../src/graph/node-context.ts";
import { type GraphDefinition, subgraphOf } from "../../src/graph/definition.ts";
import {
  isSendCommand,
  isToCommand,
  isToParentCommand,
  type Target,
  type To,
} from "../../src/graph/commands.ts";
import type { NodeRule } from "../../src/graph/node.ts";
import { parse, type Schema } from "../../src/graph/standard-schema.ts";
import type { StoreOp } from "../../src/model/store-item.ts";
import { isObject } from "../../src/model/json.ts";
import type { NodeStore } from "../../src/graph/node-store.ts";
import { speaking } from "./speaking.ts";

type Config = LangGraphRunnableConfig & { readonly configurable?: { readonly [key: string]: string } };

/** The rewritten graphs of one server: a graph that is part of several graphs is rewritten once. */
export type Twins = Map<GraphDefinition, Compiled>;

/**
 * The graph, written in LangGraph.js: the same state, nodes and edges. `ctx.step` stores nothing.
 * @param name of the node that the graph is
 */
export function twin(definition: GraphDefinition, twins: Twins, name?: string): Compiled {
  const known = twins.get(definition) ?? written(definition, twins, name);
  twins.set(definition, known);
  return known;
}

function written(definition: GraphDefinition, twins: Twins, name: string | undefined): Compiled {
  const { rules, nodes, edges, input, output, context } = definition;
  const all = Annotation.Root(
    Object.fromEntries([...rules].map(([key, rule]) => [key, channelOf(rule, key)])),
  );
  const part = (keys: Iterable<string>) =>
    Annotation.Root(Object.fromEntries([...keys].map((key) => [key, all.spec[key] as never])));
  const parts = {
    stateSchema: all,
    ...(input !== null && { input: part(input.keys()) }),
    ...(output !== null && { output: part(output) }),
  };
  const builder = new StateGraph(parts as never, context as never) as unknown as Builder;
  const spoken = new Set([...rules].flatMap(([key, { kind }]) => (kind === "messages" ? [key] : [])));
  // Targets that nodes choose themselves need not be declared, except for nodes that nothing else leads to.
  const led = new Set([...edges.values()].flatMap(({ targets }) => targets ?? [...nodes.keys()]));
  for (const { name } of definition.joins) led.add(name);
  const unled = [...nodes.keys()].filter((name) => !led.has(name));
  for (const node of nodes.values()) {
    const { attempts, initial, factor, max, when } = node.retry;
    const retryPolicy = {
      maxAttempts: attempts,
      initialInterval: initial,
      backoffFactor: factor,
      maxInterval: max,
      jitter: false,
      ...(when !== undefined && { retryOn: when }),
    };
    const inner = subgraphOf(node);
    builder.addNode(
      node.name,
      inner === null ? bodyOf(node, spoken, context) : twin(inner, twins, node.name),
      {
        defer: node.defer,
        ...(node.cache !== null && { cachePolicy: cachePolicyOf(node.cache) }),
        ...(unled.length > 0 && { ends: [...unled, "__end__"] }),
        ...(attempts > 1 && { retryPolicy }),
      },
    );
  }
  for (const [from, rule] of edges) {
    if (rule.kind === "always") for (const to of rule.targets) builder.addEdge(from, to);
    else {
      const choose = rule.choose as (state: unknown) => Target | readonly Target[];
      builder.addConditionalEdges(from, (state) => movesOf(choose(state)), rule.targets ?? undefined);
    }
  }
  for (const { name, after } of definition.joins) builder.addEdge([...after], name);
  const caches = [...nodes.values()].some(({ cache }) => cache !== null);
  return builder.compile({
    ...(caches && { cache: new InMemoryCache() }),
    ...(name !== undefined && { name }),
  });
}

const cachePolicyOf = ({ ttl, key }: NonNullable<NodeRule["cache"]>) => ({
  ...(ttl !== null && { ttl: ttl / 1000 }),
  ...(key !== undefined && {
    keyFunc: ([input]: readonly unknown[]) => JSON.stringify(key(input as never, {} as never)),
  }),
});

interface Compiled {
  readonly lg_is_pregel: boolean;
}

interface Builder {
  addNode(name: string, body: unknown, options: object): unknown;
  addEdge(from: string | string[], to: string): unknown;
  addConditionalEdges(from: string, choose: (state: unknown) => unknown, ends?: readonly string[]): unknown;
  compile(options: object): Compiled;
}

function channelOf(rule: ChannelRule, key: string): never {
  if (rule.life === "never") return (() => new UntrackedValue()) as never;
  if (rule.life === "step") return (() => new EphemeralValue(false)) as never;
  if (rule.kind === "messages")
    return Annotation({ reducer: messagesStateReducer, default: () => [] }) as never;
  const { initial } = rule;
  if (rule.kind === "value" && initial === undefined) return Annotation() as never;
  return Annotation<unknown>({
    reducer: (current: unknown, write: unknown) => {
      const read = rule.read(write, key, (n) => `${key}-${n}`);
      const changed = rule.update(rule.kind === "value" ? undefined : current, [read], key);
      return changed === undefined ? current : changed.value;
    },
    ...(initial !== undefined && { default: () => initial }),
  } as never) as never;
}

/** `spoken`: the keys that contain messages. */
function bodyOf(node: NodeRule, spoken: ReadonlySet<string>, context: Schema | undefined): unknown {
  return async (state: unknown, config: Config) => {
    const given =
      node.input === undefined ? state : parse(node.input, state, `the input of node "${node.name}"`);
    const said = speaking(placeOf(config), config);
    try {
      return returned(await node.run(given, ctxOf(config, said.message, context)), spoken);
    } finally {
      await said.ended();
    }
  };
}

function returned(value: unknown, spoken: ReadonlySet<string>): unknown {
  if (isToParentCommand(value)) {
    return new Command({
      graph: Command.PARENT,
      goto: movesOf(value.parent) as never,
      update: value.write as never,
    });
  }
  if (isToCommand(value)) {
    const { to, update } = value as To;
    return new Command({ goto: movesOf(to) as never, update: inClasses(update, spoken) as never });
  }
  if (isSendCommand(value)) return new Command({ goto: movesOf(value) as never });
  if (Array.isArray(value) && value.length > 0 && value.every(isSendCommand)) {
    return new Command({ goto: movesOf(value) as never });
  }
  return inClasses(value, spoken);
}

/** Replaces messages by LangChain's classes: LangGraph would store literals too, but stream none of them. */
function inClasses(update: unknown, spoken: ReadonlySet<string>): unknown {
  if (!isObject(update)) return update;
  const all = Object.entries(update).map(([key, value]) => [key, spoken.has(key) ? said(value) : value]);
  return Object.fromEntries(all) as unknown;
}

function said(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((one) => (isObject(one) ? said(one) : one));
  return isObject(value) && value["type"] !== "remove" ? coerceMessageLikeToMessage(value as never) : value;
}

function movesOf(targets: unknown): unknown {
  const moves = Array.isArray(targets) ? (targets as readonly unknown[]) : [targets];
  return moves.map((move) => (isSendCommand(move) ? new Send(move.node, move.input) : move));
}

function placeOf({ configurable = {}, executionInfo }: Config) {
  const ns = (configurable["checkpoint_ns"] ?? "").split("|").slice(0, -1).join("|");
  return { task: executionInfo?.taskId ?? "", attempt: 1, try: executionInfo?.nodeAttempt ?? 1, ns };
}

function ctxOf(config: Config, message: MessageMaker, schema: Schema | undefined): Ctx {
  const { configurable = {}, writer, signal, context = {} } = config;
  const { task: taskId, ns } = placeOf(config);
  const ctx = {
    interrupt: async (value: unknown, options?: { readonly schema?: Schema }) => {
      const answer: unknown = interrupt(value);
      return options?.schema === undefined ? answer : parse(options.schema, answer, "the answer");
    },
    step: async (_: string, work: () => unknown) => work(),
    emit: (data: unknown) => writer?.(data),
    signal: signal ?? new AbortController().signal,
    config,
    // LangGraph checks the context with the schema, but does not replace it with the schema's output.
    context: schema === undefined ? context : parse(schema, context, "context"),
    runId: configurable["run_id"] ?? "",
    threadId: configurable["thread_id"] ?? "",
    taskId,
    attempt: 1,
    ns,
    message,
    log: { debug: unsaid, info: unsaid, warn: unsaid, error: unsaid },
    store: config.store === undefined ? undefined : storeOf(config.store),
  };
  return ctx as unknown as Ctx;
}

/** Authors of LangGraph.js graphs use a logger of their own. */
const unsaid = () => undefined;

/** LangGraph's store, with the interface of Heddle's. */
function storeOf(store: NonNullable<Config["store"]>): NodeStore {
  const plain = (labels: readonly string[]) => [...labels];
  const one = (op: StoreOp): unknown => {
    if (op.kind === "put") return store.put(plain(op.namespace), op.key, op.value);
    if (op.kind === "delete") return store.delete(plain(op.namespace), op.key);
    throw new TypeError(`The twin's batch does not know ${op.kind}`);
  };
  return {
    batch: async (ops) => (await Promise.all(ops.map(one))) as never,
    get: async (namespace, key) => (await store.get(plain(namespace), key)) as never,
    put: (namespace, key, value, { index } = {}) => store.put(plain(namespace), key, value, index as never),
    delete: (namespace, key) => store.delete(plain(namespace), key),
    search: async (prefix, options) => (await store.search(plain(prefix), options)) as never,
    listNamespaces: (options) => store.listNamespaces(options as never),
  };
}
