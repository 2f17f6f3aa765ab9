import type { Runnable, RunnableConfig } from "@langchain/core/runnables";
import type { LangGraphLibrary } from "./user-library.ts";
import type { CompiledGraph } from "./exported-graph.ts";
import { flattenNode, isSequence } from "./flatten-node.ts";
import { addListNamespaces } from "./base-store.ts";

/** A node that is about to run. `run` calls its node function. The argument of `run` replaces members of the configuration. */
export interface InterceptedNode {
  readonly name: string;
  readonly config: RunnableConfig;
  run(given?: Pick<RunnableConfig, "signal" | "configurable">): Promise<unknown>;
}

/** Called instead of every node function. The implementation MUST resolve with the return value of the node function. */
export type Intercept = (call: InterceptedNode) => Promise<unknown>;

/** A node of a compiled graph. Its class is not exported, so nodes are copied member by member. */
type PregelNode = CompiledGraph["nodes"][string];

/** The tag of runnables whose events LangGraph does not report. */
export const TAG_HIDDEN = "langsmith:hidden";

/**
 * Copies a compiled graph so that its nodes, and the nodes of its subgraphs, call `intercept` instead of their node functions. Everything
 * else, such as writes and edges, stays the same. The given graph is not modified.
 */
export function interceptNodes(
  library: LangGraphLibrary,
  graph: CompiledGraph,
  intercept: Intercept,
  done = new Map<CompiledGraph, CompiledGraph>(),
): CompiledGraph {
  const known = done.get(graph);
  if (known !== undefined) return known;
  const hosted = copyGraph(graph);
  // Registered before its nodes are copied, because a graph may contain itself.
  done.set(graph, hosted);
  const nodes: Record<string, PregelNode> = {};
  for (const [name, node] of Object.entries(graph.nodes)) {
    nodes[name] = isHidden(node)
      ? withNode(library, clone(node as PregelNode))
      : hostNode(library, name, node as PregelNode, intercept, done);
  }
  hosted.nodes = nodes;
  return hosted;
}

/** Whether a node is one of LangGraph's own, such as the node that takes the input. These run no user code. */
function isHidden(node: PregelNode): boolean {
  return node.tags?.includes(TAG_HIDDEN) ?? false;
}

/** Copies a graph, so that the copy can have a different checkpointer. */
export function copyGraph(graph: CompiledGraph): CompiledGraph {
  return graph.withConfig({}) as unknown as CompiledGraph;
}

function hostNode(
  library: LangGraphLibrary,
  name: string,
  node: PregelNode,
  intercept: Intercept,
  done: Map<CompiledGraph, CompiledGraph>,
): PregelNode {
  const subgraphs = [...(node.subgraphs ?? []), node.bound].flatMap((part) => graphsIn(part as Runnable));
  const hosted = new Map(
    [...new Set(subgraphs)].map((inner) => [inner, interceptNodes(library, inner, intercept, done)] as const),
  );
  const copy = clone(node);
  copy.bound = actorRunnable(library, name, replaced(library, node.bound as Runnable, hosted), intercept);
  copy.subgraphs = [...hosted.values()] as unknown as NonNullable<PregelNode["subgraphs"]>;
  return withNode(library, copy);
}

const clone = (node: PregelNode) =>
  Object.assign(Object.create(Object.getPrototypeOf(node) as object) as PregelNode, node);

/** Makes the node return its flattened runnable ({@link flattenNode}), which is made only once. */
function withNode(library: LangGraphLibrary, node: PregelNode): PregelNode {
  const whole = node.getNode();
  if (whole === undefined) return node;
  const step = flattenNode(library, whole, node.bound);
  node.getNode = () => step;
  return node;
}

const isGraph = (part: object): part is CompiledGraph =>
  "lg_is_pregel" in part && part.lg_is_pregel === true && "nodes" in part;

function graphsIn(part: Runnable): readonly CompiledGraph[] {
  if (isGraph(part)) return [part];
  return isSequence(part) ? part.steps.flatMap(graphsIn) : [];
}

/** The runnable of a node function, in which graphs are replaced by their copies from {@link interceptNodes}. */
function replaced(
  library: LangGraphLibrary,
  body: Runnable,
  hosted: ReadonlyMap<CompiledGraph, CompiledGraph>,
): Runnable {
  if (isGraph(body)) return (hosted.get(body) ?? body) as unknown as Runnable;
  if (!isSequence(body) || graphsIn(body).length === 0) return body;
  const [first, ...rest] = body.steps.map((step) => replaced(library, step, hosted));
  const last = rest.pop();
  if (first === undefined || last === undefined) return body;
  return new library.runnables.RunnableSequence({ first, middle: rest, last, omitSequenceTags: true });
}

/** A runnable that takes the place of a node function and calls `intercept`. */
function actorRunnable(
  library: LangGraphLibrary,
  name: string,
  body: Runnable,
  intercept: Intercept,
): Runnable {
  return library.makeRunnable(body.getName(), (input, options) => {
    addListNamespaces((options as { readonly store?: unknown }).store);
    const run: InterceptedNode["run"] = (given) =>
      body.invoke(input, given === undefined ? options : { ...options, ...given }) as Promise<unknown>;
    return intercept({ name, config: options, run });
  });
}

/** The graph at a namespace: the root graph, or the subgraph of a node. Undefined if there is none. */
export function compiledGraphAt(graph: CompiledGraph, ns: string): CompiledGraph | undefined {
  if (ns === "") return graph;
  let at: CompiledGraph | undefined = graph;
  for (const part of ns.split("|")) {
    // A number distinguishes the graphs that one node function calls. It is not the name of a node.
    if (/^\d+$/.test(part)) continue;
    const nodes: Partial<CompiledGraph["nodes"]> = at?.nodes ?? {};
    const bound = nodes[part.split(":")[0] ?? ""]?.bound as Runnable | undefined;
    at = bound === undefined ? undefined : graphsIn(bound)[0];
  }
  return at;
}
