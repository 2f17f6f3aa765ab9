/** A statechart as data, in the words of XState's definitions: what drawings are made of. */
export interface Statechart extends ChartState {
  readonly id: string;
}

export interface ChartState {
  readonly id?: string;
  readonly type?: "parallel" | "final";
  readonly initial?: string;
  readonly description?: string;
  readonly on?: { readonly [event: string]: readonly ChartTransition[] };
  readonly states?: { readonly [name: string]: ChartState };
}

export interface ChartTransition {
  /** `#` and a state's id. */
  readonly target: string;
  readonly guard?: string;
  readonly description?: string;
}
