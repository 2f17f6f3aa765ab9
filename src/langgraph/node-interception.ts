import type { Runnable, RunnableConfig } from "@langchain/core/runnables";
import type { Library } from "./user-library.ts";
import type { CompiledGraph } from "./exported-graph.ts";
import { inOneStep, isSequence } from "./flatten-sequence.ts";
import { completeStore } from "./base-store.ts";

/** A node that is about to run. `run` runs its body, with what is given in place of what its configuration has. */
export interface NodeCalled {
  readonly name: string;
  readonly config: RunnableConfig;
  run(given?: Pick<RunnableConfig, "signal" | "configurable">): Promise<unknown>;
}

/** Called in place of every node's body; what it resolves with is what the body returned. */
export type Intercept = (call: NodeCalled) => Promise<unknown>;

/** Nodes are copied member by member: their class is not exported. */
type PregelNode = CompiledGraph["nodes"][string];

const TAG_HIDDEN = "langsmith:hidden";

/**
 * A copy of a compiled graph whose nodes, and those of the graphs that are its nodes, call `intercept` in place of their
 * bodies. Everything else, what a node writes and where it leads, is the graph's own; the graph itself is not touched.
 */
export function hostGraph(
  library: Library,
  graph: CompiledGraph,
  intercept: Intercept,
  done = new Map<CompiledGraph, CompiledGraph>(),
): CompiledGraph {
  const known = done.get(graph);
  if (known !== undefined) return known;
  const hosted = copyOf(graph);
  // A graph may be a node of itself, further down.
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

/** LangGraph's own nodes, e.g. the one that takes the input: no code of a user's. */
function isHidden(node: PregelNode): boolean {
  return node.tags?.includes(TAG_HIDDEN) ?? false;
}

/** A copy that can be given a checkpointer of its own. */
export function copyOf(graph: CompiledGraph): CompiledGraph {
  return graph.withConfig({}) as unknown as CompiledGraph;
}

function hostNode(
  library: Library,
  name: string,
  node: PregelNode,
  intercept: Intercept,
  done: Map<CompiledGraph, CompiledGraph>,
): PregelNode {
  const subgraphs = [...(node.subgraphs ?? []), node.bound].flatMap((part) => graphsIn(part as Runnable));
  const hosted = new Map(
    [...new Set(subgraphs)].map((inner) => [inner, hostGraph(library, inner, intercept, done)] as const),
  );
  const copy = clone(node);
  copy.bound = actorRunnable(library, name, replaced(library, node.bound as Runnable, hosted), intercept);
  copy.subgraphs = [...hosted.values()] as unknown as NonNullable<PregelNode["subgraphs"]>;
  return withNode(library, copy);
}

const clone = (node: PregelNode) =>
  Object.assign(Object.create(Object.getPrototypeOf(node) as object) as PregelNode, node);

/** What LangGraph runs for the node is made once, and is one step. */
function withNode(library: Library, node: PregelNode): PregelNode {
  const whole = node.getNode();
  if (whole === undefined) return node;
  const step = inOneStep(library, whole, node.bound);
  node.getNode = () => step;
  return node;
}

const isGraph = (part: object): part is CompiledGraph =>
  "lg_is_pregel" in part && part.lg_is_pregel === true && "nodes" in part;

function graphsIn(part: Runnable): readonly CompiledGraph[] {
  if (isGraph(part)) return [part];
  return isSequence(part) ? part.steps.flatMap(graphsIn) : [];
}

/** The body, with the graphs in it hosted too. */
function replaced(
  library: Library,
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

/** A runnable that is called where the body would be. */
function actorRunnable(library: Library, name: string, body: Runnable, intercept: Intercept): Runnable {
  return library.runnableOf(body.getName(), (input, options) => {
    completeStore((options as { readonly store?: unknown }).store);
    const run: NodeCalled["run"] = (given) =>
      body.invoke(input, given === undefined ? options : { ...options, ...given }) as Promise<unknown>;
    return intercept({ name, config: options, run });
  });
}

/** The graph at a namespace: the root, or the one that a task's node is; undefined where there is none. */
export function subgraphAt(graph: CompiledGraph, ns: string): CompiledGraph | undefined {
  if (ns === "") return graph;
  let at: CompiledGraph | undefined = graph;
  for (const part of ns.split("|")) {
    // A number counts the graphs that one body runs.
    if (/^\d+$/.test(part)) continue;
    const nodes: Partial<CompiledGraph["nodes"]> = at?.nodes ?? {};
    const bound = nodes[part.split(":")[0] ?? ""]?.bound as Runnable | undefined;
    at = bound === undefined ? undefined : graphsIn(bound)[0];
  }
  return at;
}
