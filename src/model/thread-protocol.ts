/** What may be subscribed to in the thread-centric protocol (version 2), beside `custom:<name>`. */
export const channels = [
  "values",
  "updates",
  "messages",
  "tools",
  "lifecycle",
  "input",
  "checkpoints",
  "tasks",
  "custom",
] as const;

/** Which events of the protocol are wanted. */
export interface EventFilter {
  readonly channels: ReadonlySet<string>;
  /** Those whose namespace begins with one of these; none: of every namespace. */
  readonly namespaces: readonly (readonly string[])[];
  /** How much longer it may be. */
  readonly depth: number | undefined;
}
