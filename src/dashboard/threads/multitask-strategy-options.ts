/** The multitask strategies that the forms offer: the name in the API, the label, and what it does. */
export const MULTITASK_STRATEGY_OPTIONS = [
  ["enqueue", "wait", "wait for the current run"],
  ["interrupt", "interrupt", "stop the current run, keep its changes"],
  ["rollback", "roll back", "stop the current run, undo its changes"],
  ["reject", "reject", "reject the new run"],
] as const;

export type MultitaskStrategyName = (typeof MULTITASK_STRATEGY_OPTIONS)[number][0];
