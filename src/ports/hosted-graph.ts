/** A graph that another library made, as it was loaded. What more there is to it, the engine of its kind knows. */
export interface Hosted {
  /** Tells one form of the graph from another. */
  readonly hash: string;
}
