/** One rule of a port, as a check that any test runner can run. */
export interface ContractCheck<Harness> {
  /** A sentence that says what an adapter must do. Unique in its contract. */
  readonly title: string;
  /** Carries out the check. Each check needs a new harness. @throws AssertionError if the adapter breaks the rule */
  readonly run: (harness: Harness) => Promise<void>;
}

/** Makes a contract. `checks`: by title, the functions that carry out its checks. */
export const defineContract = <Harness>(checks: {
  readonly [title: string]: (harness: Harness) => Promise<void>;
}): readonly ContractCheck<Harness>[] => Object.entries(checks).map(([title, run]) => ({ title, run }));
