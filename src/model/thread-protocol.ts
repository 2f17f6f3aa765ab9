/** Channels of the thread-centric protocol (version 2), beside `custom:<name>`. */
export const protocolChannels = [
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

export interface EventFilter {
  readonly channels: ReadonlySet<string>;
  /** Prefixes of namespaces; empty for all namespaces. */
  readonly namespaces: readonly (readonly string[])[];
  /** The number of labels by which a namespace may be longer than the prefix; undefined for any number. */
  readonly depth: number | undefined;
}
