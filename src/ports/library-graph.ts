/**
 * A loaded graph of another library, such as LangGraph.js. Only the engine for that library knows the graph's other
 * members.
 */
export interface LibraryGraph {
  /** A hash that changes with the definition of the graph. */
  readonly hash: string;
}
