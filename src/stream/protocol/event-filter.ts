import type { EventFilter } from "../../model/protocol-event-filter.ts";
import type { ProtocolEvent } from "./protocol-event.ts";

/** A node in a tree of namespace prefixes, which has one level for each segment. */
interface PrefixNode {
  /** True when a prefix ends here. */
  isEnd: boolean;
  readonly children: Map<string, PrefixNode>;
}

export type EventTest = (event: ProtocolEvent) => boolean;

/**
 * Compiles a filter to a predicate. The namespaces are compiled to a tree of prefixes, because every event is tested and a client may name
 * many namespaces.
 */
export function eventTestOf({ channels, namespaces, depth }: EventFilter): EventTest {
  const isWanted = (channel: string): boolean =>
    channels.has(channel) || (channel.startsWith("custom:") && channels.has("custom"));
  if (namespaces.length === 0) return ({ channel }) => isWanted(channel);
  const root = node();
  for (const prefix of namespaces) {
    let at = root;
    for (const segment of prefix) {
      let child = at.children.get(segment);
      if (child === undefined) at.children.set(segment, (child = node()));
      at = child;
    }
    at.isEnd = true;
  }
  return ({ channel, namespace }) => isWanted(channel) && isIn(root, namespace, 0, depth);
}

const node = (): PrefixNode => ({ isEnd: false, children: new Map() });

function isIn(
  { isEnd, children }: PrefixNode,
  namespace: readonly string[],
  at: number,
  depth: number | undefined,
): boolean {
  if (isEnd && (depth === undefined || namespace.length - at <= depth)) return true;
  const segment = namespace[at];
  if (segment === undefined) return false;
  const exact = children.get(segment);
  if (exact !== undefined && isIn(exact, namespace, at + 1, depth)) return true;
  // A segment of a prefix that is only the name of a node, without `:` and a task id, matches all tasks of that node.
  const colon = segment.indexOf(":");
  const named = colon < 0 ? undefined : children.get(segment.slice(0, colon));
  return named !== undefined && isIn(named, namespace, at + 1, depth);
}
