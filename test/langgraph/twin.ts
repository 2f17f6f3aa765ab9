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
import type { Rule } from "../../src/graph/channel.ts";
import type { Ctx } from "../../src/graph/context.ts";
import { type Definition, subgraphOf } from "../../src/graph/definition.ts";
import { isSend, isTo, isToParent, type Target, type To } from "../../src/graph/moves.ts";
import type { NodeRule } from "../../src/graph/node.ts";
import { parse, type Schema } from "../../src/graph/schema.ts";

type Config = LangGraphRunnableConfig & { readonly configurable?: { readonly [key: string]: string } };

/** The graph, written in LangGraph.js: the same state, nodes and edges. `ctx.message` has no twin, and `ctx.step` stores nothing. */
export function twin(definition: Definition): ReturnType<Builder["compile"]> {
  const { rules, nodes, edges, input, output } = definition;
  const all = Annotation.Root(
    Object.fromEntries([...rules].map(([key, rule]) => [key, channelOf(rule, key)])),
  );
  const part = (keys: Iterable<string>) =>
    Annotation.Root(Object.fromEntries([...keys].map((key) => [key, all.spec[key] as never])));
  const builder = new StateGraph({
    stateSchema: all,
    ...(input !== null && { input: part(input.keys()) }),
    ...(output !== null && { output: part(output) }),
  } as never) as unknown as Builder;
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
    builder.addNode(node.name, bodyOf(node), {
      defer: node.defer,
      ends: [...nodes.keys(), "__end__"],
      ...(attempts > 1 && { retryPolicy }),
    });
  }
  for (const [from, rule] of edges) {
    if (rule.kind === "always") for (const to of rule.targets) builder.addEdge(from, to);
    else {
      const choose = rule.choose as (state: unknown) => Target | readonly Target[];
      builder.addConditionalEdges(from, (state) => movesOf(choose(state)), rule.targets ?? undefined);
    }
  }
  for (const { name, after } of definition.joins) builder.addEdge([...after], name);
  return builder.compile();
}

interface Builder {
  addNode(name: string, body: unknown, options: object): unknown;
  addEdge(from: string | string[], to: string): unknown;
  addConditionalEdges(from: string, choose: (state: unknown) => unknown, ends?: readonly string[]): unknown;
  compile(): { readonly lg_is_pregel: boolean };
}

function channelOf(rule: Rule, key: string): never {
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

function bodyOf(node: NodeRule): unknown {
  const inner = subgraphOf(node);
  if (inner !== null) return twin(inner);
  return async (state: unknown, config: Config) => {
    const given =
      node.input === undefined ? state : parse(node.input, state, `the input of node "${node.name}"`);
    return returned(await node.run(given, ctxOf(config)));
  };
}

function returned(value: unknown): unknown {
  if (isToParent(value)) {
    return new Command({
      graph: Command.PARENT,
      goto: movesOf(value.parent) as never,
      update: value.write as never,
    });
  }
  if (isTo(value))
    return new Command({ goto: movesOf((value as To).to) as never, update: value.update as never });
  if (isSend(value)) return new Command({ goto: movesOf(value) as never });
  if (Array.isArray(value) && value.length > 0 && value.every(isSend)) {
    return new Command({ goto: movesOf(value) as never });
  }
  return value ?? {};
}

function movesOf(targets: unknown): unknown {
  const moves = Array.isArray(targets) ? (targets as readonly unknown[]) : [targets];
  return moves.map((move) => (isSend(move) ? new Send(move.node, move.input) : move));
}

function ctxOf(config: Config): Ctx {
  const { configurable = {}, writer, signal, context, executionInfo } = config;
  const ns = configurable["checkpoint_ns"] ?? "";
  const ctx = {
    interrupt: async (value: unknown, options?: { readonly schema?: Schema }) => {
      const answer: unknown = interrupt(value);
      return options?.schema === undefined ? answer : parse(options.schema, answer, "the answer");
    },
    step: async (_: string, work: () => unknown) => work(),
    emit: (data: unknown) => writer?.(data),
    signal: signal ?? new AbortController().signal,
    config,
    context: context ?? {},
    runId: configurable["run_id"] ?? "",
    threadId: configurable["thread_id"] ?? "",
    taskId: executionInfo?.taskId ?? "",
    attempt: 1,
    ns: ns.split("|").slice(0, -1).join("|"),
  };
  return ctx as unknown as Ctx;
}
