import { isJsonRecord, type JsonRecord, type JsonSchema } from "../api/records.ts";
import { simplifySchema } from "../components/form-schema.ts";
import { isMessage, messageTypeOf } from "../live/chat-messages.ts";
import { valueAt } from "./editable-fields.ts";

export type MessageList = readonly JsonRecord[];
/** Lists of messages, by the names of the state values that contain them. */
export type MessageLists = { readonly [name: string]: MessageList };

/** The roles that the user can choose. A message with another role keeps it until the user chooses one of these. */
export const ROLES = ["human", "ai", "system", "tool"] as const;

const REMOVE_ALL = { type: "remove", id: "__remove_all__" } as const;

/**
 * Returns the lists of messages in a state: those that the schema marks with `langgraph_type`, and a list
 * named `messages` if the schema does not give its type and all of its messages have ids, as reducers of
 * messages assign them. A list that contains anything but messages is not returned; it is edited as JSON.
 */
export function messageListsOf(schema: JsonSchema | null, values: JsonRecord): MessageLists {
  const described = schema?.properties ?? {};
  const names = new Set([...Object.keys(described), ...Object.keys(values)]);
  const lists = [...names].flatMap((name): readonly (readonly [string, MessageList])[] => {
    const one = Object.hasOwn(described, name) ? (described[name] ?? {}) : {};
    const { type, langgraph_type } = simplifySchema(one, schema ?? one);
    const isMarked = langgraph_type === "messages";
    if (!isMarked && (name !== "messages" || type !== undefined)) return [];
    const list = valueAt(values, name) ?? (isMarked ? [] : undefined);
    if (!Array.isArray(list) || !list.every(isMessage)) return [];
    return isMarked || list.every(({ id }) => isText(id)) ? [[name, list]] : [];
  });
  return Object.fromEntries(lists);
}

/**
 * Returns the update that makes the graph change the list `before` to `after`; empty if they are equal. The graph's
 * reducer replaces a stored message by one with the same id, so unchanged messages are left out if ids and order allow
 * that.
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
 * Returns the list that a user has edited (`after`, from `before`), with what others have changed in the list meanwhile
 * (`newer`). A message that both have changed is the user's. Messages that others have added come before those that the user
 * has added at the end.
 */
export function mergeMessages(before: MessageList, after: MessageList, newer: MessageList): MessageList {
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

/** The changes that edited lists of messages make to a state. */
export interface MessageChanges {
  readonly update: MessageLists;
  /** The complete lists after the edit. */
  readonly lists: MessageLists;
  /** The messages that differ, as stored (`before`) and as edited (`after`), for showing both. */
  readonly before: MessageLists;
  readonly after: MessageLists;
  /** True if a changed message cannot be stored. */
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
 * Returns the messages of each list that the other one does not contain unchanged. If the order differs, returns all
 * messages except those at the beginning and the end that are the same in both lists.
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
 * True if the whole list has to be replaced: the kept messages are not in their old order before all new ones, or not
 * every stored message has an id of its own.
 */
function isRearranged(before: MessageList, after: MessageList): boolean {
  const stored = byId(before);
  if (stored.size < before.length) return true;
  const kept = new Set(after.map(({ id }) => id));
  return before.filter(({ id }) => kept.has(id)).some(({ id }, i) => after[i]?.["id"] !== id);
}

/** Returns the messages of a list by id, without those that have no id. */
const byId = (list: MessageList): ReadonlyMap<unknown, JsonRecord> =>
  new Map(list.flatMap((message) => (isText(message["id"]) ? [[message["id"], message]] : [])));

/**
 * True if the graph has made a list of the expected length, with the ids of the expected messages at their
 * positions; a new message, which has no id yet, may get any. False means that the list's reducer is not one
 * for messages.
 */
export const isListOf = (expected: MessageList, made: unknown): boolean =>
  Array.isArray(made) &&
  made.length === expected.length &&
  expected.every(({ id }, i) => id === undefined || (isJsonRecord(made[i]) && made[i]["id"] === id));

/**
 * Returns the message with another role, without the fields that belong to the old role. If the new role is
 * that of the stored message, all stored fields except the content are restored.
 * @param stored the message as it is stored in the thread; null if the user has added it
 */
export function withRole(message: JsonRecord, role: string, stored: JsonRecord | null): JsonRecord {
  const { id, content, name } = message;
  if (stored !== null && messageTypeOf(stored) === role) return { ...stored, content };
  // In a tool's message, `name` is the name of the tool, which other roles do not keep.
  const hasName = name !== undefined && messageTypeOf(message) !== "tool";
  return { ...(id !== undefined && { id }), ...(hasName && { name }), content, type: role };
}

/** Returns the message with other tool calls. The copy of the old calls in `additional_kwargs` is removed, because models would read it. */
export function withCalls(message: JsonRecord, tool_calls: readonly JsonRecord[]): JsonRecord {
  const { additional_kwargs: extra } = message;
  if (!isJsonRecord(extra) || !Object.hasOwn(extra, "tool_calls")) return { ...message, tool_calls };
  const { tool_calls: _, ...additional_kwargs } = extra;
  return { ...message, additional_kwargs, tool_calls };
}

export const callsOf = ({ tool_calls: calls }: JsonRecord): readonly JsonRecord[] =>
  Array.isArray(calls) ? calls.filter(isJsonRecord) : [];

/** True if the content repeats the tool calls as blocks. The messages of some models do. */
export const hasCallBlocks = ({ content }: JsonRecord): boolean =>
  Array.isArray(content) &&
  content.some((block) => isJsonRecord(block) && ["tool_use", "tool_call"].includes(String(block["type"])));

/** Returns a new tool call, with an id that no call of the list has. */
export function newCall(list: MessageList): JsonRecord {
  const ids = new Set(list.flatMap(callsOf).map(({ id }) => id));
  let number = ids.size + 1;
  while (ids.has(`call_${number}`)) number++;
  return { name: "", args: {}, id: `call_${number}`, type: "tool_call" };
}

/** Returns why a message cannot be stored; null if it can. */
export function messageFault(message: JsonRecord): string | null {
  const { content, tool_call_id } = message;
  const isBlocks = Array.isArray(content) && content.every((block) => isJsonRecord(block) || isText(block));
  if (typeof content !== "string" && !isBlocks) return "The content must be a list of blocks, or a text.";
  if (messageTypeOf(message) === "tool" && !isText(tool_call_id)) return "Enter a tool call ID.";
  const call = callsOf(message).find(({ name, args }) => !isText(name) || !isJsonRecord(args));
  if (call === undefined) return null;
  const { name } = call;
  return isText(name) ? `The arguments of ${name} must be a JSON object.` : "A tool call has no name.";
}

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";

const isSame = (a: unknown, b: unknown): boolean => a === b || JSON.stringify(a) === JSON.stringify(b);
