/** A loaded graph of another library. Only its own engine knows its other members. */
export interface HostedGraph {
  /** A hash that changes with the definition of the graph. */
  readonly hash: string;
}
