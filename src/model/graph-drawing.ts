import type { JsonObject } from "./json.ts";

/** A graph as nodes and edges, for clients to draw. The start and the end are nodes too. */
export interface GraphDrawing {
  readonly nodes: readonly DrawnNode[];
  readonly edges: readonly DrawnEdge[];
}

export interface DrawnNode {
  /** The id; for a node of a subgraph `<id of the subgraph>:<own id>`. */
  readonly id: string;
  /** The start and the end of the graph have the type `schema`; every other node has `runnable`. */
  readonly type: "schema" | "runnable";
  /** For a node of the type `schema` a JSON Schema, else `{ id, name }`. */
  readonly data: JsonObject;
  readonly metadata?: JsonObject;
}

/** An edge of a drawing. It has no further members, because some clients refuse an edge with unknown members. */
export interface DrawnEdge {
  readonly source: string;
  readonly target: string;
  /** True when the edge is taken only under a condition, which is evaluated during the run. */
  readonly conditional: boolean;
  /** The label of the edge; absent if the label would be the name of the target. */
  readonly data?: string;
}
