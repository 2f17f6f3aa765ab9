import type { Drawing } from "../model/graph-drawing.ts";
import type { GraphSchemas } from "../model/graph-schemas.ts";
import type { Engine } from "../ports/engine.ts";
import type { Assistants } from "./assistants.ts";

export interface SubgraphQuery {
  /** The nodes that lead to the one that is wanted, `node|node`; undefined: every one. */
  readonly ns?: string;
  /** Those of subgraphs, too. */
  readonly recurse: boolean;
}

/** What an assistant's graph looks like. Each throws ServiceError `assistant.not_found`, `graph.not_found`. */
export interface Drawings {
  /** `levels` of subgraphs are drawn in the place of their nodes. */
  drawing(tenant: string, assistant: string, levels: number): Promise<Drawing>;
  schemas(tenant: string, assistant: string): Promise<GraphSchemas>;
  /** What its subgraphs take and give, by the nodes that lead to them. */
  subgraphs(
    tenant: string,
    assistant: string,
    query: SubgraphQuery,
  ): Promise<{ readonly [ns: string]: GraphSchemas }>;
}

export function createDrawings(engine: Engine, assistants: Assistants): Drawings {
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

/** `node:task|node:task`, as streams and interrupts have it, is good too. */
const withoutTasks = (ns: string) =>
  ns
    .split("|")
    .map((part) => part.split(":", 1)[0])
    .join("|");
