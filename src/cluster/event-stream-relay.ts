const NEWLINE = 0x0a;
const COLON = 0x3a;
const END_OF_EVENT = "\n\n";
const ID = "\nid: ";
const NOTHING = new Uint8Array(0);

/**
 * Passes on the server-sent events of a response. If its connection breaks, a further response can continue the stream, because the relay
 * passes on only complete events and remembers the last one. Several events may have the same id, and the connection may break between
 * them. So the further response begins after an earlier id ({@link EventStreamRelay.after}), and the relay leaves out the events that it
 * has already passed on.
 *
 * The relay expects the format that Heddle writes: the data of an event is one line, and its id is the last line.
 */
export class EventStreamRelay {
  /** The received bytes of the event that is not complete yet. */
  #held: Uint8Array[] = [];
  /** The id of the last event that was passed on; undefined if there is none. */
  #last: string | undefined;
  /** The number of events with the id `#last` that were passed on. */
  #passed = 0;
  /** The id of the last event passed on with another id than `#last`. If there is none, the id after which the first response began. */
  #before: string | undefined;
  /** After a break: how many events with the id `#last` the relay still has to leave out. */
  #repeated = 0;

  /** @param after the event id after which the first response begins; undefined if it is not known */
  constructor(after: string | undefined) {
    this.#before = after;
  }

  /** The event id after which the next response must begin. Undefined: the next response must begin like the first one. */
  get after(): string | undefined {
    return this.#before;
  }

  /** MUST be called before the first bytes of a response that continues the stream. */
  resume(): void {
    this.#held = [];
    this.#repeated = this.#passed;
  }

  /** Takes bytes of the response. Returns the events and comments that are now complete and were not passed on before. */
  take(piece: Uint8Array): Uint8Array {
    const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.length);
    const end = this.#endOfEvents(bytes);
    if (end < bytes.length) {
      const rest = bytes.subarray(end);
      if (end > 0) this.#held.push(bytes.subarray(0, end));
      const whole = end > 0 ? this.#takeHeld() : undefined;
      this.#held.push(rest);
      return whole === undefined ? NOTHING : this.#pass(whole);
    }
    this.#held.push(bytes);
    return this.#pass(this.#takeHeld());
  }

  /** Returns the bytes of an event that the response did not complete. MUST be called only when the response has ended. */
  rest(): Uint8Array {
    return this.#takeHeld();
  }

  #takeHeld(): Buffer {
    const held = this.#held;
    this.#held = [];
    return (held.length === 1 ? held[0] : Buffer.concat(held)) as Buffer;
  }

  /** Returns how many bytes at the start of `bytes` belong to events and comments that end within `bytes`. */
  #endOfEvents(bytes: Buffer): number {
    const at = bytes.lastIndexOf(END_OF_EVENT);
    let end = at + END_OF_EVENT.length;
    if (at < 0) {
      const before = this.#held.at(-1)?.at(-1);
      if (before === undefined) end = 0;
      else if (before === NEWLINE && bytes[0] === NEWLINE) end = 1;
      else return 0;
    }
    // Comments between two events keep the connection alive, so they are passed on without waiting for the next event.
    while (bytes[end] === COLON) {
      const line = bytes.indexOf(NEWLINE, end);
      if (line < 0) break;
      end = line + 1;
    }
    return end;
  }

  #pass(bytes: Buffer): Uint8Array {
    const from = this.#repeated > 0 ? this.#skip(bytes) : 0;
    const passed = from === 0 ? bytes : bytes.subarray(from);
    this.#note(passed);
    return passed;
  }

  /** Returns the position of the first event that was not passed on before. */
  #skip(bytes: Buffer): number {
    let from = 0;
    while (this.#repeated > 0) {
      const end = bytes.indexOf(END_OF_EVENT, from);
      if (end < 0) break;
      const at = bytes.subarray(0, end).lastIndexOf(ID);
      if (at < from || idAt(bytes, at) !== this.#last) {
        this.#repeated = 0;
        break;
      }
      this.#repeated--;
      from = end + END_OF_EVENT.length;
    }
    return from;
  }

  /** Remembers the ids of the events that are passed on, going through them from the last to the first. */
  #note(bytes: Buffer): void {
    let at = bytes.lastIndexOf(ID);
    if (at < 0) return;
    const last = idAt(bytes, at);
    let count = 0;
    for (; at >= 0; at = at === 0 ? -1 : bytes.lastIndexOf(ID, at - 1)) {
      const id = idAt(bytes, at);
      if (id !== last) {
        this.#before = id;
        this.#passed = count;
        this.#last = last;
        return;
      }
      count++;
    }
    if (last === this.#last) this.#passed += count;
    else {
      this.#before = this.#last ?? this.#before;
      this.#passed = count;
      this.#last = last;
    }
  }
}

/**
 * Reads the event id from the line that begins after `at`. An id of a protocol event may end with a dot and a number, which counts the
 * events with the same id. Both are removed.
 */
function idAt(bytes: Buffer, at: number): string {
  const from = at + ID.length;
  const [id = ""] = bytes.toString("latin1", from, bytes.indexOf(NEWLINE, from)).split(".");
  return id;
}
