import type { ModuleExport } from "../model/module-export.ts";
import type { JsonObject } from "../model/json.ts";

/** JSON Schemas (draft 7) of one graph, made from its TypeScript types; null for a part that has no type. */
export interface TypeSchemas {
  readonly input: JsonObject | null;
  readonly output: JsonObject | null;
  readonly state: JsonObject | null;
  readonly config: JsonObject | null;
}

/** Reads the types of graphs that are written in TypeScript. */
export interface GraphTypesReader {
  /**
   * The schemas of a graph and of its subgraphs, by the path of nodes to each (`node|node`; the graph itself has the empty path). Null when
   * the types cannot be read: the file is JavaScript, its project has no compiler, or reading took too much time or memory. MUST NOT throw.
   */
  read(graph: ModuleExport): Promise<ReadonlyMap<string, TypeSchemas> | null>;
}
