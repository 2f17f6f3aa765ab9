/** Channels of the thread-centric protocol (version 2), in addition to `custom:<name>`. */
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
  /**
   * Prefixes: only events of namespaces that begin with one of them are shown. An empty list: events of all
   * namespaces.
   */
  readonly namespaces: readonly (readonly string[])[];
  /** How many labels longer than the prefix a namespace may be; undefined: any number. */
  readonly depth: number | undefined;
}
