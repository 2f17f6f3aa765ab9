/** A comment without a blank line after it: some clients would take the blank line for an event without data. */
export const HEARTBEAT = ": heartbeat\n";

/** One event on the wire. `data` MUST be one line, `event` MUST have passed {@link eventName}. */
export function frame(event: string, data: string, id: number | string): string {
  return `event: ${event}\ndata: ${data}\nid: ${id}\n\n`;
}

/** A name that cannot break the framing: node names stand in it, and they are the user's. */
export function eventName(name: string): string {
  return name.replaceAll(/[\r\n\0]/g, " ");
}
