import type { StreamEvent } from "./trace.ts";

/** An event as it is kept: as text, which takes a fraction of the memory of its parsed data. */
export interface LoggedEvent extends Omit<StreamEvent, "data"> {
  /** The whole event as JSON. */
  readonly text: string;
}

/** The largest number of events kept. */
const MAX_EVENTS = 2_000;
/**
 * The most characters of all kept events together, unless only the latest one is kept. A limit is needed
 * because each event about a state contains the whole state.
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
