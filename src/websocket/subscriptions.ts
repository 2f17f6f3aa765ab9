import { ServiceError } from "../model/errors.ts";
import type { ThreadKey } from "../model/thread.ts";
import { andThen, type Eventually } from "../ports/eventually.ts";
import type { ThreadProtocol } from "../service/thread-protocol.ts";
import type { WebSocketFrames } from "../stream/websocket-frames.ts";
import type { ProtocolEvent } from "../stream/protocol/protocol-event.ts";
import { type EventTest, eventTestOf } from "../stream/protocol/event-filter.ts";
import { createProtocolRenderer } from "../stream/protocol/thread-protocol-rendering.ts";
import type { ChunkSlice } from "../stream/rendering.ts";
import type { RawBody } from "../schemas/read-body.ts";
import { subscriptionOf, unsubscribeSchema } from "../schemas/protocol-schemas.ts";
import { SwitchingEventReader } from "./switching-event-reader.ts";

/** The largest number of subscriptions of one socket. */
const MAX_SUBSCRIPTIONS = 256;
/** The largest number of namespaces that all subscriptions of a socket may name together. */
const MAX_NAMESPACES = 2048;

interface Subscription {
  readonly isWanted: EventTest;
  /** The number of namespaces that the subscription's filter names. */
  readonly namespaces: number;
  /** The number of an event. Only events with a higher number are sent for this subscription. */
  after: number;
}

/**
 * The events for the subscriptions of one socket. An event is sent once if at least one subscription wants it. A new subscription may also
 * want past events. Then the feed reads the thread again from the first of these events, and the other subscriptions skip events that they
 * have already received.
 */
export class SubscriptionFeed {
  readonly reader = new SwitchingEventReader();
  readonly #protocol: ThreadProtocol;
  readonly #key: ThreadKey;
  readonly #subscriptions = new Map<string, Subscription>();
  /** Subscriptions that have not started yet, by id. */
  readonly #waiting = new Map<string, Omit<Subscription, "after"> & { readonly since: number | undefined }>();
  /** True if a subscription was added since the feed's last start: the feed reads nothing until {@link start}. */
  #isHeld = false;
  #starting = false;
  #made = 0;
  #read: (slice: ChunkSlice) => Eventually<readonly ProtocolEvent[]> = () => [];
  /** The number of the last event that was read, whether or not it was sent. */
  #seen = 0;

  constructor(protocol: ThreadProtocol, key: ThreadKey) {
    this.#protocol = protocol;
    this.#key = key;
  }

  /**
   * Adds a subscription, and returns its id. Neither this nor any other subscription gets events before {@link start} is called.
   * @throws ServiceError `validation.failed`, or `server.busy` if the socket has too many subscriptions or namespaces
   */
  subscribe(params: RawBody): string {
    const { filter, since } = subscriptionOf(params);
    if (this.#subscriptions.size + this.#waiting.size >= MAX_SUBSCRIPTIONS) {
      throw new ServiceError(
        "server.busy",
        `There are ${MAX_SUBSCRIPTIONS} subscriptions on this socket already`,
      );
    }
    const namespaces = filter.namespaces.length;
    const named = [...this.#subscriptions.values(), ...this.#waiting.values()];
    if (named.reduce((sum, other) => sum + other.namespaces, namespaces) > MAX_NAMESPACES) {
      const message = `The subscriptions of this socket would name more than ${MAX_NAMESPACES} namespaces`;
      throw new ServiceError("server.busy", message);
    }
    const id = `subscription-${++this.#made}`;
    this.#waiting.set(id, { isWanted: eventTestOf(filter), namespaces, since });
    // Pauses the feed: later events have to wait until the past events of the new subscription were sent.
    this.reader.hold();
    this.#isHeld = true;
    return id;
  }

  /** Removes a subscription. Returns false if there is none with this id. @throws ServiceError `validation.failed` */
  unsubscribe(params: RawBody): boolean {
    const { subscription_id: id } = unsubscribeSchema.parse(params);
    return this.#waiting.delete(id) || this.#subscriptions.delete(id);
  }

  /**
   * Starts all subscriptions that were added since the last start, and sends their past events. They start together, because a client
   * counts an event as received by all of its subscriptions. If they started one by one, the client could get a later event before an
   * earlier one.
   */
  async start(): Promise<void> {
    if (this.#starting || this.reader.closed) return;
    this.#starting = true;
    try {
      while (this.#isHeld) await this.#startThose();
    } finally {
      this.#starting = false;
    }
  }

  async #startThose(): Promise<void> {
    this.#isHeld = false;
    const waiting = [...this.#waiting];
    // Subscriptions that were started before continue after the last event that was read.
    const others = [...this.#subscriptions.values()];
    // If all subscriptions were removed in the meantime, there is nothing to start.
    if (waiting.length === 0 && others.length === 0) return;
    const from = waiting.map(([, { since }]) => since).filter((since) => since !== undefined);
    if (others.length > 0) from.push(this.#seen);
    const isNew = waiting.some(([, { since }]) => since === undefined);
    const reader = await this.#protocol.follow(this.#key, { isNew, after: from });
    for (const other of others) other.after = Math.max(other.after, this.#seen);
    this.#seen = reader.cursor;
    for (const [id, { isWanted, namespaces, since = reader.cursor }] of waiting) {
      // Starts the subscription, unless it was removed while the new reader was opened.
      if (this.#waiting.delete(id)) this.#subscriptions.set(id, { isWanted, namespaces, after: since });
    }
    this.#read = createProtocolRenderer(reader);
    this.reader.switch(reader);
    // If a subscription was added while the new reader was opened, the feed pauses again until that subscription has started too.
    if (this.#isHeld) this.reader.hold();
  }

  /** Returns the messages for a slice of events that was read from {@link reader}. */
  readonly render = (slice: ChunkSlice): Eventually<WebSocketFrames> => {
    const { turn } = this.reader;
    return andThen(this.#read(slice), (events) => {
      if (turn === this.reader.turn) return this.#wanted(events);
      // Skips the rest of the slice, because the source from which it was read has been replaced.
      slice.memo.stoppedAt = undefined;
      return NOTHING;
    });
  };

  #wanted(events: readonly ProtocolEvent[]): WebSocketFrames {
    const messages: string[] = [];
    const subscriptions = [...this.#subscriptions.values()];
    for (const event of events) {
      this.#seen = Math.max(this.#seen, event.seq);
      if (subscriptions.some(({ isWanted, after }) => event.seq > after && isWanted(event))) {
        messages.push(String(event.text));
      }
    }
    return { messages, ids: [] };
  }
}

const NOTHING: WebSocketFrames = { messages: [], ids: [] };
