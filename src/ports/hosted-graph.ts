/** A loaded graph that another library made. Only the engine of its kind knows its other members. */
export interface HostedGraph {
  /** A hash that changes with the definition of the graph. */
  readonly hash: string;
}
