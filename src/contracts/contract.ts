/** One rule of a port, as a check that any test runner can run. */
export interface ContractCheck<Harness> {
  /** A sentence that says what an adapter must do. Unique in its contract. */
  readonly title: string;
  /** Gets a new harness for each check. @throws AssertionError if the adapter behaves otherwise */
  readonly run: (harness: Harness) => Promise<void>;
}

/** Makes a contract of checks, which are given by their titles. */
export const defineContract = <Harness>(checks: {
  readonly [title: string]: (harness: Harness) => Promise<void>;
}): readonly ContractCheck<Harness>[] => Object.entries(checks).map(([title, run]) => ({ title, run }));
