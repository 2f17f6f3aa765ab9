import { ServiceError } from "../model/errors.ts";
import type { EventFilter } from "../model/thread-protocol.ts";
import type { ThreadKey } from "../model/thread.ts";
import { andThen, type Eventually } from "../ports/eventually.ts";
import type { Protocol } from "../service/thread-protocol.ts";
import type { Frames } from "../stream/websocket-frames.ts";
import type { ProtocolEvent } from "../stream/protocol/protocol-event.ts";
import { matches } from "../stream/protocol/event-filter.ts";
import { protocolOf } from "../stream/protocol/render-protocol.ts";
import type { Segment } from "../stream/rendering.ts";
import type { RawBody } from "../schemas/body.ts";
import { filterOf, unsubscribe } from "../schemas/protocol-schemas.ts";
import { SwitchingReader } from "./switching-reader.ts";

/** Subscriptions of one socket. */
const MOST = 256;

interface Subscription {
  readonly filter: EventFilter;
  /** The number of the last event that it has been sent, or does not want. */
  after: number;
}

/**
 * What the subscriptions of one socket are sent: each event as soon as one of them wants it, and once. A new one is told
 * what was before, so the thread is read again from there; the others have had that.
 */
export class Feed {
  readonly reader = new SwitchingReader();
  readonly #protocol: Protocol;
  readonly #key: ThreadKey;
  readonly #subscriptions = new Map<string, Subscription>();
  /** Those that have not been started yet. */
  readonly #waiting = new Map<string, { readonly filter: EventFilter; readonly since: number | undefined }>();
  /** Nothing is read until {@link start}. */
  #held = false;
  #starting = false;
  #made = 0;
  #read: (segment: Segment) => Eventually<readonly ProtocolEvent[]> = () => [];
  /** The number of the last event that was looked at. */
  #seen = 0;

  constructor(protocol: Protocol, key: ThreadKey) {
    this.#protocol = protocol;
    this.#key = key;
  }

  /** Its id. It is told of nothing before {@link start}. @throws ServiceError `validation.failed`, `server.busy` */
  subscribe(params: RawBody): string {
    const { filter, since } = filterOf(params);
    if (this.#subscriptions.size + this.#waiting.size >= MOST) {
      throw new ServiceError("server.busy", `There are ${MOST} subscriptions on this socket already`);
    }
    const id = `subscription-${++this.#made}`;
    this.#waiting.set(id, { filter, since });
    // What comes meanwhile is for after what was before.
    this.reader.hold();
    this.#held = true;
    return id;
  }

  /** @throws ServiceError `validation.failed` */
  unsubscribe(params: RawBody): boolean {
    const { subscription_id: id } = unsubscribe.parse(params);
    return this.#waiting.delete(id) || this.#subscriptions.delete(id);
  }

  /**
   * Tells the subscriptions that were made since of what was before. Many that are made together are told together: clients
   * take an event that one of them is sent for all of them, and would see a later one before an earlier one.
   */
  async start(): Promise<void> {
    if (this.#starting || this.reader.closed) return;
    this.#starting = true;
    try {
      while (this.#held) await this.#startThose();
    } finally {
      this.#starting = false;
    }
  }

  async #startThose(): Promise<void> {
    this.#held = false;
    const waiting = [...this.#waiting];
    // Whoever was told already goes on where that was.
    const others = [...this.#subscriptions.values()];
    // All were taken back: nobody is to be told anything.
    if (waiting.length === 0 && others.length === 0) return;
    const from = waiting.map(([, { since }]) => since).filter((since) => since !== undefined);
    if (others.length > 0) from.push(this.#seen);
    const isNew = waiting.some(([, { since }]) => since === undefined);
    const reader = await this.#protocol.follow(this.#key, { isNew, after: from });
    for (const other of others) other.after = Math.max(other.after, this.#seen);
    this.#seen = reader.cursor;
    for (const [id, { filter, since = reader.cursor }] of waiting) {
      // It may have been taken back meanwhile.
      if (this.#waiting.delete(id)) this.#subscriptions.set(id, { filter, after: since });
    }
    this.#read = protocolOf(reader);
    this.reader.switch(reader);
    // One more has come meanwhile, and is told next.
    if (this.#held) this.reader.hold();
  }

  /** For a pump that reads {@link reader}. */
  readonly render = (segment: Segment): Eventually<Frames> => {
    const { turn } = this.reader;
    return andThen(this.#read(segment), (events) =>
      turn === this.reader.turn ? this.#wanted(events) : NOTHING,
    );
  };

  #wanted(events: readonly ProtocolEvent[]): Frames {
    const messages: string[] = [];
    const subscriptions = [...this.#subscriptions.values()];
    for (const event of events) {
      this.#seen = Math.max(this.#seen, event.seq);
      if (subscriptions.some(({ filter, after }) => event.seq > after && matches(filter, event))) {
        messages.push(event.text);
      }
    }
    return { messages, ids: [] };
  }
}

const NOTHING: Frames = { messages: [], ids: [] };
