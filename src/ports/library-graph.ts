/** A loaded graph of another library. Only the engine for that library knows its other members. */
export interface LibraryGraph {
  /** A hash that changes with the definition of the graph. */
  readonly hash: string;
}
