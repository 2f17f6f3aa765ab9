import type { JsonObject } from "./json.ts";

/** A graph as nodes and edges, as clients draw it. The start and the end are nodes too. */
export interface Drawing {
  readonly nodes: readonly DrawnNode[];
  readonly edges: readonly DrawnEdge[];
}

export interface DrawnNode {
  /** Of a subgraph's node: `<the subgraph's>:<its own>`. */
  readonly id: string;
  /** `schema`: the start or the end. */
  readonly type: "schema" | "runnable";
  /** Of a `schema` a JSON Schema, else `{ id, name }`. */
  readonly data: JsonObject;
  readonly metadata?: JsonObject;
}

/** Some clients refuse an edge with any other member. */
export interface DrawnEdge {
  readonly source: string;
  readonly target: string;
  /** It is not known before the run whether it is taken. */
  readonly conditional: boolean;
  /** What it is called, where that is not its target's name. */
  readonly data?: string;
}
