import type { EventFilter } from "../../model/thread-protocol.ts";
import type { ProtocolEvent } from "./protocol-event.ts";

export function matches(filter: EventFilter, { channel, namespace }: ProtocolEvent): boolean {
  if (!filter.channels.has(channel)) return false;
  if (filter.namespaces.length === 0) return true;
  return filter.namespaces.some((prefix) => {
    if (!prefix.every((segment, i) => isSegment(segment, namespace[i]))) return false;
    return filter.depth === undefined || namespace.length - prefix.length <= filter.depth;
  });
}

/** True for the same segment, and for any task of the node when only the node is named. */
function isSegment(wanted: string, segment: string | undefined): boolean {
  if (segment === undefined) return false;
  return segment === wanted || (!wanted.includes(":") && segment.split(":", 1)[0] === wanted);
}
