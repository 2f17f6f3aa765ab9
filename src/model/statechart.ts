/** A statechart as data, in the form of XState's machine definitions. Drawings are made from it. */
export interface StatechartDefinition extends ChartState {
  readonly id: string;
  /**
   * The key of the graph's state that holds the active states, in XState's form. Absent: the active states are the nodes that run.
   */
  readonly valueKey?: string;
}

export interface ChartState {
  readonly id?: string;
  readonly type?: "parallel" | "final";
  readonly initial?: string;
  readonly description?: string;
  readonly on?: { readonly [event: string]: readonly ChartTransition[] };
  readonly states?: { readonly [name: string]: ChartState };
  /** The actors that the state starts when it is entered. */
  readonly invoke?: readonly ChartActor[];
}

/** An actor of a machine. */
export interface ChartActor {
  readonly id: string;
  readonly src: string;
  /**
   * The statechart of the actor, if the actor is a machine. Absent if that machine is the machine that starts the actor, or a machine above
   * it: the drawing would have no end.
   */
  readonly chart?: ChartState;
}

export interface ChartTransition {
  /** `#` and the id of a state. Absent: the transition leaves no state, and only runs actions. */
  readonly target?: string;
  readonly guard?: string;
  readonly description?: string;
}
