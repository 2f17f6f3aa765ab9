import { isJsonRecord, type JsonRecord, type JsonSchema } from "../api/records.ts";
import { simplifySchema } from "../components/form-schema.ts";
import { isMessage, messageTypeOf } from "../live/chat-messages.ts";
import { ownValueOf } from "./editable-fields.ts";

export type MessageList = readonly JsonRecord[];
/** Lists of messages, by the names of the state values that contain them. */
export type MessageLists = { readonly [name: string]: MessageList };

/**
 * The roles that the user can choose for a message. A message with another role keeps it until the user chooses one of
 * these.
 */
export const MESSAGE_ROLES = ["human", "ai", "system", "tool"] as const;

const REMOVE_ALL = { type: "remove", id: "__remove_all__" } as const;

/**
 * Returns the lists of messages in a state: values that the schema marks with `langgraph_type`, and a value `messages`
 * without a type if all of its messages have ids, as a reducer for messages assigns them. A list with another element
 * is left out, and edited as JSON.
 */
export function messageListsOf(schema: JsonSchema | null, values: JsonRecord): MessageLists {
  const described = schema?.properties ?? {};
  const names = new Set([...Object.keys(described), ...Object.keys(values)]);
  const lists = [...names].flatMap((name): readonly (readonly [string, MessageList])[] => {
    const one = Object.hasOwn(described, name) ? (described[name] ?? {}) : {};
    const { type, langgraph_type } = simplifySchema(one, schema ?? one);
    const isMarked = langgraph_type === "messages";
    if (!isMarked && (name !== "messages" || type !== undefined)) return [];
    const list = ownValueOf(values, name) ?? (isMarked ? [] : undefined);
    if (!Array.isArray(list) || !list.every(isMessage)) return [];
    return isMarked || list.every(({ id }) => isText(id)) ? [[name, list]] : [];
  });
  return Object.fromEntries(lists);
}

/**
 * Returns the update with which the graph's reducer changes the list `before` to `after`; empty if they are equal. The
 * reducer replaces a stored message by one with the same id, so unchanged messages are left out, unless the whole list
 * has to be replaced ({@link isRearranged}).
 */
export function messagesUpdate(before: MessageList, after: MessageList): MessageList {
  if (isSame(before, after)) return [];
  if (isRearranged(before, after)) return [REMOVE_ALL, ...after];
  const [stored, ids] = [byId(before), new Set(after.map(({ id }) => id))];
  const kept = after.filter(({ id }) => stored.has(id));
  return [
    ...kept.filter((message) => !isSame(message, stored.get(message["id"]))),
    ...before.filter(({ id }) => !ids.has(id)).map(({ id }) => ({ type: "remove", id })),
    ...after.slice(kept.length),
  ];
}

/**
 * Merges two changes of the list `before`: that of the user (`after`) and that of others (`newer`). For a message that
 * both have changed, the user's version is kept. Messages that others have added come before those that the user has
 * added at the end.
 */
export function mergeConcurrentMessageChanges(
  before: MessageList,
  after: MessageList,
  newer: MessageList,
): MessageList {
  const [stored, latest] = [byId(before), byId(newer)];
  const isStored = ({ id }: JsonRecord) => stored.has(id);
  const end = after.findLastIndex(isStored) + 1;
  const merge = (list: MessageList) =>
    list.flatMap((message) => {
      const { id } = message;
      if (!isStored(message) || !isSame(message, stored.get(id))) return [message];
      const other = latest.get(id);
      return other === undefined ? [] : [other];
    });
  const added = newer.filter((message) => !isStored(message));
  return [...merge(after.slice(0, end)), ...added, ...merge(after.slice(end))];
}

/** How edited lists of messages change a state. Contains only lists that differ. */
export interface MessageChanges {
  readonly update: MessageLists;
  /** The complete lists as they should be after the update. */
  readonly lists: MessageLists;
  /** The messages that differ, as they were before the edit. */
  readonly before: MessageLists;
  /** The messages that differ, as they are after the edit. */
  readonly after: MessageLists;
  /** Whether a changed message cannot be stored ({@link messageFault}). */
  readonly isInvalid: boolean;
}

export function findMessageChanges(stored: MessageLists, edited: MessageLists): MessageChanges {
  const changed = Object.entries(edited).flatMap(([name, list]) => {
    const before = stored[name] ?? [];
    const update = messagesUpdate(before, list);
    return update.length === 0 ? [] : [{ name, list, update, ...differingParts(before, list) }];
  });
  const by = (what: (one: (typeof changed)[number]) => MessageList): MessageLists =>
    Object.fromEntries(changed.map((one) => [one.name, what(one)]));
  return {
    update: by(({ update }) => update),
    lists: by(({ list }) => list),
    before: by(({ before }) => before),
    after: by(({ after }) => after),
    isInvalid: changed.some(({ name, list }) => {
      const unchanged = new Set(stored[name]);
      return list.some((message) => !unchanged.has(message) && messageFault(message) !== null);
    }),
  };
}

/**
 * Returns the messages of each list that the other list does not contain. If the order differs, returns all messages
 * between the common beginning and the common end of the two lists.
 */
function differingParts(before: MessageList, after: MessageList) {
  if (isRearranged(before, after)) {
    const most = Math.min(before.length, after.length);
    let head = 0;
    while (head < most && isSame(before[head], after[head])) head++;
    let tail = 0;
    while (tail < most - head && isSame(before.at(-1 - tail), after.at(-1 - tail))) tail++;
    const between = (list: MessageList) => list.slice(head, list.length - tail);
    return { before: between(before), after: between(after) };
  }
  const without = (list: MessageList, other: MessageList) => {
    const texts = new Set(other.map((message) => JSON.stringify(message)));
    return list.filter((message) => !texts.has(JSON.stringify(message)));
  };
  return { before: without(before, after), after: without(after, before) };
}

/**
 * Returns whether the update has to replace the whole list: a stored message has no unique id, or the stored messages
 * that are kept are not in their old order before all new ones.
 */
function isRearranged(before: MessageList, after: MessageList): boolean {
  const stored = byId(before);
  if (stored.size < before.length) return true;
  const kept = new Set(after.map(({ id }) => id));
  return before.filter(({ id }) => kept.has(id)).some(({ id }, i) => after[i]?.["id"] !== id);
}

/** Returns the messages of a list by id. Messages without an id are left out. */
const byId = (list: MessageList): ReadonlyMap<unknown, JsonRecord> =>
  new Map(list.flatMap((message) => (isText(message["id"]) ? [[message["id"], message]] : [])));

/**
 * Returns whether the list that the graph's reducer made has the expected length, with the expected ids in the same
 * order. A new message is expected without an id, and may get any. False shows that the reducer is not one for
 * messages.
 */
export const isExpectedList = (expected: MessageList, made: unknown): boolean =>
  Array.isArray(made) &&
  made.length === expected.length &&
  expected.every(({ id }, i) => id === undefined || (isJsonRecord(made[i]) && made[i]["id"] === id));

/**
 * Returns the message with another role, without the fields that only the old role has. If the stored message had the
 * new role, all its fields are restored, except for the content.
 * @param stored the message as it is stored in the thread; null if the user has added it
 */
export function withRole(message: JsonRecord, role: string, stored: JsonRecord | null): JsonRecord {
  const { id, content, name } = message;
  if (stored !== null && messageTypeOf(stored) === role) return { ...stored, content };
  // The `name` of a tool message is the name of the tool, so it is not kept.
  const hasName = name !== undefined && messageTypeOf(message) !== "tool";
  return { ...(id !== undefined && { id }), ...(hasName && { name }), content, type: role };
}

/**
 * Returns the message with other tool calls. The copy of the old calls in `additional_kwargs` is removed, because some
 * models read it.
 */
export function withToolCalls(message: JsonRecord, tool_calls: readonly JsonRecord[]): JsonRecord {
  const { additional_kwargs: extra } = message;
  if (!isJsonRecord(extra) || !Object.hasOwn(extra, "tool_calls")) return { ...message, tool_calls };
  const { tool_calls: _, ...additional_kwargs } = extra;
  return { ...message, additional_kwargs, tool_calls };
}

export const toolCallsOf = ({ tool_calls: calls }: JsonRecord): readonly JsonRecord[] =>
  Array.isArray(calls) ? calls.filter(isJsonRecord) : [];

/** Returns whether the content also contains the tool calls, as blocks. Some models write such messages. */
export const hasToolCallBlocks = ({ content }: JsonRecord): boolean =>
  Array.isArray(content) &&
  content.some((block) => isJsonRecord(block) && ["tool_use", "tool_call"].includes(String(block["type"])));

/** Returns a new tool call, with an id that no other call in the list has. */
export function newToolCall(list: MessageList): JsonRecord {
  const ids = new Set(list.flatMap(toolCallsOf).map(({ id }) => id));
  let number = ids.size + 1;
  while (ids.has(`call_${number}`)) number++;
  return { name: "", args: {}, id: `call_${number}`, type: "tool_call" };
}

/** Returns why a message cannot be stored; null if it can be. */
export function messageFault(message: JsonRecord): string | null {
  const { content, tool_call_id } = message;
  const isBlocks = Array.isArray(content) && content.every((block) => isJsonRecord(block) || isText(block));
  if (typeof content !== "string" && !isBlocks) return "The content must be a list of blocks, or a text.";
  if (messageTypeOf(message) === "tool" && !isText(tool_call_id)) return "Enter a tool call ID.";
  const call = toolCallsOf(message).find(({ name, args }) => !isText(name) || !isJsonRecord(args));
  if (call === undefined) return null;
  const { name } = call;
  return isText(name) ? `The arguments of ${name} must be a JSON object.` : "A tool call has no name.";
}

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";

const isSame = (a: unknown, b: unknown): boolean => a === b || JSON.stringify(a) === JSON.stringify(b);
