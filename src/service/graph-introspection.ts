import type { GraphDrawing } from "../model/graph-drawing.ts";
import type { GraphSchemas } from "../model/graph-schemas.ts";
import type { Engine } from "../ports/engine.ts";
import type { Assistants } from "./assistants.ts";

export interface SubgraphQuery {
  /** The path to one subgraph, as names of nodes with `|` between them; undefined: all subgraphs. */
  readonly ns?: string;
  /** True: includes the subgraphs of subgraphs. */
  readonly recurse: boolean;
}

/** Drawings and schemas of an assistant's graph. Each method throws ServiceError `assistant.not_found`, `graph.not_found`. */
export interface GraphIntrospection {
  /** Draws the graph; subgraphs are expanded `levels` deep. */
  drawing(tenant: string, assistant: string, levels: number): Promise<GraphDrawing>;
  schemas(tenant: string, assistant: string): Promise<GraphSchemas>;
  /** The schemas of the graph's subgraphs, by the path of node names to each. */
  subgraphs(
    tenant: string,
    assistant: string,
    query: SubgraphQuery,
  ): Promise<{ readonly [ns: string]: GraphSchemas }>;
}

export function createGraphIntrospection(engine: Engine, assistants: Assistants): GraphIntrospection {
  return {
    async drawing(tenant, assistant, levels) {
      const { graph_id, config } = await assistants.resolve(tenant, assistant);
      return engine.drawing(graph_id, levels, config);
    },

    async schemas(tenant, assistant) {
      const { graph_id, config } = await assistants.resolve(tenant, assistant);
      return engine.schemas(graph_id, config);
    },

    async subgraphs(tenant, assistant, { ns, recurse }) {
      const { graph_id, config } = await assistants.resolve(tenant, assistant);
      const wanted = ns === undefined ? undefined : withoutTasks(ns);
      const all = [...(await engine.subgraphs(graph_id, config))];
      return Object.fromEntries(
        all.filter(([path]) => (recurse || !path.includes("|")) && (wanted === undefined || path === wanted)),
      );
    },
  };
}

/**
 * Removes the task ids from a path. Streams and interrupts use paths with task ids (`node:task|node:task`), so clients may send such a
 * path.
 */
const withoutTasks = (ns: string) =>
  ns
    .split("|")
    .map((part) => part.split(":", 1)[0])
    .join("|");
