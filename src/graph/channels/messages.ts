import { ServiceError } from "../../model/errors.ts";
import type { Changed, Channel } from "../channel.ts";
import {
  isPair,
  REMOVE_ALL,
  toMessage,
  type Message,
  type MessageLike,
  type RemoveMessage,
} from "../message.ts";
import { messagesSchema } from "./channel-schemas.ts";
import { checkList } from "./list.ts";

type Incoming = Message | RemoveMessage;
type Places = Map<string, number>;

export interface MessagesOptions {
  /**
   * What becomes of a message that is being streamed while its run is interrupted or cancelled. `"drop"` (the default): the
   * state is that of the last whole superstep. `"keep"`: what was said so far is appended, without tool calls, and marked by
   * `response_metadata.interrupted`; if the run is gone on with (input null), the whole message takes its place. A rollback
   * keeps nothing. With several such keys, the first takes it.
   */
  readonly onInterrupt?: "keep" | "drop";
}

/**
 * A list of messages: a new one is appended, one whose id is known replaces the old one in its place,
 * `{ type: "remove", id }` takes one out. One that comes without an id gets one.
 * @throws ServiceError `graph.invalid` for an unknown `onInterrupt`
 */
export function messages(
  options: MessagesOptions = {},
): Channel<readonly Message[], readonly MessageLike[] | MessageLike> {
  const { onInterrupt = "drop" } = options;
  if (onInterrupt !== "keep" && onInterrupt !== "drop") {
    throw new ServiceError("graph.invalid", 'messages({ onInterrupt }) must be "keep" or "drop"');
  }
  /**
   * Where each id stands in a list, shared with the lists that it grows into: finding an id must not cost more the longer
   * the conversation is. Nothing but a cache: a list without one gets a new one. A place beyond a list's end belongs to a
   * longer one.
   */
  const known = new WeakMap<readonly Message[], Places>();

  function placesOf(list: readonly Message[]): Places {
    let places = known.get(list);
    if (places === undefined) {
      places = new Map(list.map((message, i) => [message.id, i]));
      known.set(list, places);
    }
    return places;
  }

  function holds(list: readonly Message[], id: string): boolean {
    const place = placesOf(list).get(id);
    return place !== undefined && place < list.length;
  }

  /** Nothing replaced, nothing removed: the usual case, and it leaves the old list as it is. */
  function append(old: readonly Message[], incoming: readonly Message[]): Changed {
    // Spread, not concat: copying a frozen array by concat takes five times as long.
    const value = Object.freeze([...old, ...incoming]);
    let places = placesOf(old);
    // Another list has grown out of the old one already.
    if (places.size !== old.length) places = new Map(old.map((message, i) => [message.id, i]));
    for (let i = old.length; i < value.length; i++) places.set((value[i] as Message).id, i);
    known.set(value, places);
    return { value, change: { kind: "append", keep: old.length, items: incoming } };
  }

  function isNew(incoming: readonly Incoming[], old: readonly Message[]): incoming is readonly Message[] {
    if (incoming.length === 1) {
      const message = incoming[0] as Incoming;
      return message.type !== "remove" && !holds(old, message.id);
    }
    const seen = new Set<string>();
    for (const message of incoming) {
      if (message.type === "remove" || holds(old, message.id) || seen.has(message.id)) return false;
      seen.add(message.id);
    }
    return true;
  }

  return {
    "~channel": {},
    kind: "messages",
    life: "kept",
    initial: Object.freeze([]),
    ...(onInterrupt === "keep" && { keepsPartial: true }),
    check: checkList,
    describe: () => messagesSchema,
    holds: (current, id) => Array.isArray(current) && holds(current as readonly Message[], id),
    read(write, at, mint) {
      const single = !Array.isArray(write) || isPair(write);
      const likes: readonly unknown[] = single ? [write] : write;
      return likes.map((like, i) => toMessage(like, single ? at : `${at}[${i}]`, () => mint(i)));
    },
    update(current, writes, key) {
      const old = Array.isArray(current) ? (current as readonly Message[]) : [];
      const incoming = (writes.length === 1 ? writes[0] : writes.flat()) as readonly Incoming[];
      if (incoming.length === 0) return undefined;
      if (isNew(incoming, old)) return append(old, incoming);
      return edit(old, incoming, key);
    },
  };
}

/** Replaces and removes: the first message that changes, and all after it, are written anew. */
function edit(old: readonly Message[], incoming: readonly Incoming[], key: string): Changed {
  let merged: Message[] = [...old];
  let places: Places = new Map(merged.map((message, i) => [message.id, i]));
  const removed = new Set<string>();
  for (const message of incoming) {
    const { id } = message;
    if (message.type === "remove" && id === REMOVE_ALL) {
      merged = [];
      places = new Map();
      removed.clear();
      continue;
    }
    const place = places.get(id);
    if (message.type === "remove") {
      if (place === undefined) {
        throw new ServiceError("state.invalid", `${key}: there is no message with the id ${id} to remove`);
      }
      removed.add(id);
    } else if (place === undefined) {
      places.set(id, merged.length);
      merged.push(message);
    } else {
      removed.delete(id);
      merged[place] = message;
    }
  }
  const value: readonly Message[] = Object.freeze(
    removed.size === 0 ? merged : merged.filter((message) => !removed.has(message.id)),
  );
  let keep = 0;
  while (keep < old.length && keep < value.length && old[keep] === value[keep]) keep++;
  return { value, change: { kind: "append", keep, items: value.slice(keep) } };
}
