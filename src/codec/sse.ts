/** A comment without a blank line after it: some clients would take the blank line for an event without data. */
export const HEARTBEAT = ": heartbeat\n";

/** One event on the wire. `data` MUST be one line, `event` MUST have passed {@link eventName}. */
export function frame(event: string, data: string, id: number | string): string {
  return `event: ${event}\ndata: ${data}\nid: ${id}\n\n`;
}

/** Events on the wire, one after the other: gathered as parts and joined once, which is a third sooner than text that grows. */
export class FrameText {
  readonly #parts: string[] = [];
  #event = "";
  #head = "";

  /** As {@link frame} has it. */
  put(event: string, data: string, id: number): void {
    if (event !== this.#event) {
      this.#event = event;
      this.#head = `event: ${event}\ndata: `;
    }
    this.#parts.push(this.#head, data, `\nid: ${id}\n\n`);
  }

  bytes(): Uint8Array {
    return this.#parts.length === 0 ? NONE : Buffer.from(this.#parts.join(""));
  }
}

const NONE = new Uint8Array(0);

/** A name that cannot break the framing: node names stand in it, and they are the user's. */
export function eventName(name: string): string {
  return name.replaceAll(/[\r\n\0]/g, " ");
}
