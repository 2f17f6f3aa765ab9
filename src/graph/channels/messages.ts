import { ServiceError } from "../../model/errors.ts";
import type { ChannelResult, Channel } from "../channel.ts";
import { throwInvalidGraph, requireObject } from "../definition-checks.ts";
import {
  isRolePair,
  REMOVE_ALL,
  toMessage,
  type Message,
  type MessageLike,
  type RemoveMessage,
} from "../message.ts";
import { messageListSchema } from "./value-schemas.ts";
import { checkList } from "./list.ts";

type Incoming = Message | RemoveMessage;
type Positions = Map<string, number>;

export interface MessagesOptions {
  /**
   * What happens to a message that is being streamed when its run is interrupted or cancelled. `"drop"` (the default): the
   * state is that of the last complete superstep. `"keep"`: the partial message is appended, without tool calls, and marked by
   * `response_metadata.interrupted`; if the run is continued (input null), the whole message replaces it. A rollback keeps
   * nothing. If several keys have `"keep"`, the first one is used.
   */
  readonly onInterrupt?: "keep" | "drop";
}

/**
 * A key with a list of messages. A message with a new id is appended, a message with the id of an old message takes the
 * place of that message, and `{ type: "remove", id }` removes a message. A message without an id gets a new id.
 * @throws ServiceError `graph.invalid` for options that are not an object, and for an unknown `onInterrupt`
 */
export function messages(
  options: MessagesOptions = {},
): Channel<readonly Message[], readonly MessageLike[] | MessageLike> {
  const { onInterrupt = "drop" } = requireObject(options, "The options of messages()");
  if (onInterrupt !== "keep" && onInterrupt !== "drop") {
    throwInvalidGraph('messages({ onInterrupt }) must be "keep" or "drop"');
  }
  /**
   * For each list, a map of the positions by message id. A list shares its map with the longer lists that are made from it, so
   * that the cost of finding an id does not grow with the conversation. A position beyond the end of a list belongs to a longer
   * list. The maps are only a cache: a list without a map gets a new one.
   */
  const positionsByList = new WeakMap<readonly Message[], Positions>();

  function positionsOf(list: readonly Message[]): Positions {
    let places = positionsByList.get(list);
    if (places === undefined) {
      places = new Map(list.map((message, i) => [message.id, i]));
      positionsByList.set(list, places);
    }
    return places;
  }

  function hasMessage(list: readonly Message[], id: string): boolean {
    const position = positionsOf(list).get(id);
    return position !== undefined && position < list.length;
  }

  /** Appends messages, the usual case: nothing is replaced or removed. */
  function append(old: readonly Message[], incoming: readonly Message[]): ChannelResult {
    // Uses spread, because copying a frozen array with `concat` takes five times as long.
    const value = Object.freeze([...old, ...incoming]);
    let places = positionsOf(old);
    // Another list has already been made from the old list and has extended its map, so this list needs a map of its own.
    if (places.size !== old.length) places = new Map(old.map((message, i) => [message.id, i]));
    for (let i = old.length; i < value.length; i++) places.set((value[i] as Message).id, i);
    positionsByList.set(value, places);
    return { value, change: { kind: "append", keep: old.length, items: incoming } };
  }

  function isNew(incoming: readonly Incoming[], old: readonly Message[]): incoming is readonly Message[] {
    if (incoming.length === 1) {
      const message = incoming[0] as Incoming;
      return message.type !== "remove" && !hasMessage(old, message.id);
    }
    const seen = new Set<string>();
    for (const message of incoming) {
      if (message.type === "remove" || hasMessage(old, message.id) || seen.has(message.id)) return false;
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
    describe: () => messageListSchema,
    holds: (current, id) => Array.isArray(current) && hasMessage(current as readonly Message[], id),
    read(write, at, mint) {
      const single = !Array.isArray(write) || isRolePair(write);
      const likes: readonly unknown[] = single ? [write] : write;
      return likes.map((like, i) => toMessage(like, single ? at : `${at}[${i}]`, () => mint(i)));
    },
    update(current, writes, key) {
      const old = Array.isArray(current) ? (current as readonly Message[]) : [];
      const incoming = (writes.length === 1 ? writes[0] : writes.flat()) as readonly Incoming[];
      if (incoming.length === 0) return undefined;
      if (isNew(incoming, old)) return append(old, incoming);
      return replaceAndRemove(old, incoming, key);
    },
  };
}

/** Replaces and removes messages. The first changed message, and all messages after it, are stored again. */
function replaceAndRemove(
  old: readonly Message[],
  incoming: readonly Incoming[],
  key: string,
): ChannelResult {
  let merged: Message[] = [...old];
  let positions: Positions = new Map(merged.map((message, i) => [message.id, i]));
  const removed = new Set<string>();
  for (const message of incoming) {
    const { id } = message;
    if (message.type === "remove" && id === REMOVE_ALL) {
      merged = [];
      positions = new Map();
      removed.clear();
      continue;
    }
    const position = positions.get(id);
    if (message.type === "remove") {
      if (position === undefined) {
        throw new ServiceError("state.invalid", `${key}: there is no message with the id ${id} to remove`);
      }
      removed.add(id);
    } else if (position === undefined) {
      positions.set(id, merged.length);
      merged.push(message);
    } else {
      removed.delete(id);
      merged[position] = message;
    }
  }
  const value: readonly Message[] = Object.freeze(
    removed.size === 0 ? merged : merged.filter((message) => !removed.has(message.id)),
  );
  let keep = 0;
  while (keep < old.length && keep < value.length && old[keep] === value[keep]) keep++;
  return { value, change: { kind: "append", keep, items: value.slice(keep) } };
}
