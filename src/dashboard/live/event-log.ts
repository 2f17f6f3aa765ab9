import type { StreamEvent } from "./trace.ts";

/** An event in the log. It is kept as text, which takes a fraction of the memory of the parsed data. */
export interface LoggedEvent extends Omit<StreamEvent, "data"> {
  /** The complete event as JSON. */
  readonly text: string;
}

/** The largest number of events that are kept. */
const MAX_EVENTS = 2_000;
/**
 * The largest number of characters of all kept events together, because some events contain a complete state. The
 * latest event is kept even if it is longer.
 */
const MAX_CHARACTERS = 4_000_000;

/** The latest events of a stream, oldest first. */
export class EventLog {
  readonly events: LoggedEvent[] = [];
  #characters = 0;

  add({ id, event, run_id }: StreamEvent, text: string): void {
    this.events.push({ id, event, text, ...(run_id !== undefined && { run_id }) });
    this.#characters += text.length;
    while (this.events.length > MAX_EVENTS || (this.#characters > MAX_CHARACTERS && this.events.length > 1))
      this.#characters -= this.events.shift()?.text.length ?? 0;
  }
}
