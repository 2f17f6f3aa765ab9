import type { ChannelChange, ChannelRef } from "../model/checkpoint.ts";
import { ServiceError } from "../model/errors.ts";
import { withoutMember } from "../model/json.ts";
import { SmallMap } from "../model/small-map.ts";
import type { ThreadKey } from "../model/thread.ts";
import {
  andThen,
  andThenWith,
  forEachInOrder,
  runSteps,
  awaitValue,
  type Eventually,
  type Steps,
} from "../ports/eventually.ts";
import type { AppendDraft } from "./append-draft.ts";
import { damagedError, decodeWithChecksum } from "./checksum-envelope.ts";

import { listSpanPrefix, channelValueKey } from "./keys.ts";
import { encodeOrdinal } from "./sortable-numbers.ts";
import type { ChannelRefs } from "./channel-ref-codec.ts";

/**
 * Spread first in each copy of references. In V8 before 12, the copy would otherwise get a hidden class of its own, which makes reads slow
 * (see `EMPTY_OBJECT` in `model/json.ts`).
 */
const EMPTY_REFS: ChannelRefs = Object.freeze({});

type List = Extract<ChannelRef, { kind: "list" }>;
/**
 * The references of a checkpoint to a stored list, in the order of the items.
 *
 * A *segment* is an array of items that one checkpoint added to the list. It is stored under one key and never changes. A *span* is a
 * series of consecutive segments. The key of a segment is the prefix of its span (see {@link listSpanPrefix}), followed by the index of the
 * segment's first item in the list. `at` is the number of the checkpoint that started the span, see {@link deriveChannelRefs}. `end` is the
 * index after the last item that belongs to this checkpoint: later checkpoints may have added further segments to the span.
 */
type Spans = List["spans"];

/**
 * The most {@link Spans} of a list. Each edit of a list adds a span, and each span costs a read. A list that would have more spans is
 * written again as a whole.
 */
const MAX_SPANS = 64;

/**
 * Computes the channel references of a checkpoint from those of its parent, and adds the operations that write the changed values to the
 * draft. Appended items become a new segment of the list's last span (see {@link Spans}). A new span starts only if the list was cut, or if
 * another branch has already added a segment to the last span.
 * @param at the number of this checkpoint, unique in the thread. It is a part of the keys of the values and spans that this checkpoint
 * starts
 */
export function deriveChannelRefs(
  draft: AppendDraft,
  ns: string,
  at: number,
  parent: ChannelRefs,
  changes: { readonly [channel: string]: ChannelChange },
): Eventually<ChannelRefs> {
  const derivation: Derivation = { draft, ns, at, changes, refs: { ...EMPTY_REFS, ...parent } };
  const derived = forEachInOrder(Object.keys(changes), derivation, deriveChannelRef);
  return andThenWith(derived, derivation, resultOf);
}

/** The context of {@link deriveChannelRefs}, with the references that it has derived so far. */
interface Derivation {
  readonly draft: AppendDraft;
  readonly ns: string;
  readonly at: number;
  readonly changes: { readonly [channel: string]: ChannelChange };
  refs: Record<string, ChannelRef>;
}

const resultOf = (_: void, { refs }: Derivation): ChannelRefs => refs;

function deriveChannelRef(channel: string, derivation: Derivation): Eventually<void> {
  const { draft, ns, at, refs } = derivation;
  const change = derivation.changes[channel] as ChannelChange;
  if (channel === "__proto__") {
    throw new ServiceError("value.unstorable", "A channel cannot be named __proto__: the name is reserved");
  }
  switch (change.kind) {
    case "clear":
      derivation.refs = withoutMember(refs, channel);
      break;
    case "set":
      // An array with items is stored as a list, so that later items can be appended to it. An empty one needs no list: the first items
      // that are appended to it start one.
      if (Array.isArray(change.value) && change.value.length > 0)
        refs[channel] = begin(draft, ns, channel, at, 0, change.value);
      else if (isSmall(change.value)) refs[channel] = { kind: "small", value: change.value };
      else {
        draft.put(channelValueKey(draft.head.prefix, ns, channel, at), change.value);
        refs[channel] = { kind: "whole", at };
      }
      break;
    case "append":
      return appendItems(derivation, channel, change);
    default:
      change satisfies never;
  }
}

function appendItems(
  { draft, ns, at, refs }: Derivation,
  channel: string,
  { keep, items }: Extract<ChannelChange, { kind: "append" }>,
): Eventually<void> {
  return andThen(
    append(draft, ns, channel, at, refs[channel], keep, items),
    (ref) => void (refs[channel] = ref),
  );
}

/**
 * Characters. A longer text is stored under a key of its own. A shorter one is stored in the checkpoint, and repeated in each later
 * checkpoint until the channel changes.
 */
const MAX_SMALL_TEXT = 48;
/** An object with more values than this, at all levels together, is stored under a key of its own. */
const MAX_SMALL_VALUES = 12;
/** An object with more characters than this in its names and texts together is stored under a key of its own. */
const MAX_SMALL_CHARACTERS = 80;

function isSmall(value: unknown): boolean {
  if (typeof value === "string") return value.length <= MAX_SMALL_TEXT;
  if (typeof value !== "object" || value === null) return true;
  return sizeWithin(value, { values: MAX_SMALL_VALUES, characters: MAX_SMALL_CHARACTERS });
}

/**
 * Subtracts the size of an object from `left`. Returns false if the object is larger than what was left, or contains an object that is
 * neither plain nor an array.
 */
function sizeWithin(object: object, left: { values: number; characters: number }): boolean {
  const isList = Array.isArray(object);
  if (!isList && Object.getPrototypeOf(object) !== Object.prototype) return false;
  for (const name in object) {
    const value = (object as Record<string, unknown>)[name];
    if (!isList) left.characters -= name.length;
    if (typeof value === "string") left.characters -= value.length;
    if (--left.values < 0 || left.characters < 0) return false;
    if (typeof value === "object" && value !== null && !sizeWithin(value, left)) return false;
  }
  return true;
}

function append(
  draft: AppendDraft,
  ns: string,
  channel: string,
  at: number,
  ref: ChannelRef | undefined,
  keep: number,
  items: readonly unknown[],
): Eventually<ChannelRef> {
  const spans = ref?.kind === "list" ? ref.spans : [];
  const last = spans.at(-1);
  const length = last?.end ?? 0;
  if (!Number.isSafeInteger(keep) || keep < 0 || keep > length) {
    throw new ServiceError(
      "journal.conflict",
      `An append to channel ${channel} keeps ${keep} items of a list that has ${length}`,
    );
  }
  const branch = (): Eventually<ChannelRef> => {
    const kept = cut(spans, keep);
    if (kept.length < MAX_SPANS) return begin(draft, ns, channel, at, keep, items, kept);
    const { prefix, key } = draft.head;
    const whole: unknown[] = [];
    const read = readListItems({ prefix, key, ns, get: (of) => draft.get(of) }, channel, kept, whole);
    return andThen(runSteps(withoutPauses(read)), () =>
      begin(draft, ns, channel, at, 0, [...whole, ...items]),
    );
  };
  if (last === undefined || keep < length) return branch();
  if (items.length === 0) return { kind: "list", spans };
  const prefix = listSpanPrefix(draft.head.prefix, ns, channel, last.at);
  return andThen(isTip(draft, prefix, length), (isLast) => {
    if (!isLast) return branch();
    draft.put(prefix + encodeOrdinal(length), items);
    (draft.spanEnds ??= new SmallMap()).set(prefix, length + items.length);
    return { kind: "list", spans: [...spans.slice(0, -1), { at: last.at, end: length + items.length }] };
  });
}

/** True if no checkpoint has added a segment at or after the index `end` of a span. `prefix`: the key prefix of the span. */
function isTip(draft: AppendDraft, prefix: string, end: number): Eventually<boolean> {
  const tip = draft.spanEnds?.get(prefix) ?? draft.head.spanEnds.get(prefix);
  if (tip !== undefined) return tip === end;
  return andThen(draft.get(prefix + encodeOrdinal(end)), (found) => found === undefined);
}

/**
 * Starts a new span after the spans `kept`. `start`: the index in the list of the first item of the new span. The span may
 * be empty; the next appended items are then its first segment.
 */
function begin(
  draft: AppendDraft,
  ns: string,
  channel: string,
  at: number,
  start: number,
  items: readonly unknown[],
  kept: Spans = [],
): List {
  const own = listSpanPrefix(draft.head.prefix, ns, channel, at);
  if (items.length > 0) draft.put(own + encodeOrdinal(start), items);
  const end = start + items.length;
  (draft.spanEnds ??= new SmallMap()).set(own, end);
  return { kind: "list", spans: [...kept, { at, end }] };
}

/** Returns the spans of the first `keep` items of a list. */
function cut(spans: Spans, keep: number): Spans {
  const kept: { at: number; end: number }[] = [];
  let start = 0;
  for (const { at, end } of spans) {
    if (start >= keep) break;
    // An empty span is dropped, because it has no segment to read.
    if (end > start) kept.push({ at, end: Math.min(end, keep) });
    start = end;
  }
  return kept;
}

/** Access to the stored values of one checkpoint. */
export interface ValueSource {
  readonly prefix: string;
  readonly key: ThreadKey;
  readonly ns: string;
  get(key: string): Eventually<Buffer | undefined>;
  /**
   * Keys of values that take long to read, as far as they are known. Absent: no keys are collected, and large values are read like small
   * ones.
   */
  readonly slowKeys?: Set<string>;
  /** Returns what `decode` returns, or the same value if another read has already decoded it. Absent: each read decodes its own values. */
  decode?(key: string, bytes: Buffer, decode: () => unknown): unknown;
}

/**
 * The reason why a read pauses. A promise: the read needs its result. `turn`: the read must continue in a
 * later turn of the event loop. Undefined: the pause is optional, and the caller of the read decides by the
 * duration of the current turn.
 */
export type PauseReason = Promise<unknown> | "turn" | undefined;

/** A read that can be paused. */
export type PausableRead<T> = Generator<PauseReason, T, unknown>;

/** Runs a read without pauses, even where the read asks for a later turn of the event loop. Waits only for promises. */
function* withoutPauses<T>(read: PausableRead<T>): Steps<T> {
  let step = read.next();
  while (step.done !== true) step = read.next(step.value instanceof Promise ? yield step.value : undefined);
  return step.value;
}

/** A value with more bytes than this takes long to read and to decode, so it gets a turn of the event loop of its own. */
export const LARGE_VALUE_BYTES = 256 * 1024;

/**
 * Reads stored bytes. A large value waits for a turn of the event loop of its own, because decoding it takes some 20 ms. Without
 * `slowKeys`, no value waits.
 */
function* readBytes(source: ValueSource, key: string): PausableRead<Buffer | undefined> {
  const { slowKeys } = source;
  if (slowKeys?.has(key) !== true) {
    const bytes = yield* awaitValue(source.get(key));
    if (slowKeys === undefined || bytes === undefined || bytes.length <= LARGE_VALUE_BYTES) return bytes;
    // The bytes are dropped, and read again in a later turn, so that they take no memory until then.
    slowKeys.add(key);
  }
  yield "turn";
  return yield* awaitValue(source.get(key));
}

/** Reads and decodes a value. Throws if it does not exist. `what` and `is` describe the value in errors. */
function* readStored(
  source: ValueSource,
  key: string,
  what: string,
  is: "is" | "are",
): PausableRead<unknown> {
  const bytes = yield* readBytes(source, key);
  if (bytes === undefined) throw damagedError(source.key, `${what} ${is} missing`);
  const decode = () => decodeWithChecksum(bytes, source.key, what);
  return source.decode === undefined ? decode() : source.decode(key, bytes, decode);
}

/**
 * Reads the items of a list into `out`, segment by segment (see {@link Spans}). The length of a segment gives the key of the next one, so
 * no range scan is needed. The read can pause after each segment, so that a long list is not read in one turn of the event loop.
 */
export function* readListItems(
  source: ValueSource,
  channel: string,
  spans: Spans,
  out: unknown[],
): PausableRead<void> {
  let next = 0;
  for (const { at, end } of spans) {
    const prefix = listSpanPrefix(source.prefix, source.ns, channel, at);
    while (next < end) {
      const what = `items from ${next} on of channel ${channel}`;
      const items = yield* readStored(source, prefix + encodeOrdinal(next), what, "are");
      if (!Array.isArray(items) || items.length === 0) throw damagedError(source.key, `${what} are no list`);
      const count = Math.min(items.length, end - next);
      for (let i = 0; i < count; i++) out.push(items[i]);
      next += count;
      yield;
    }
  }
}

/** Reads a value that is stored in one piece. */
export function* readWholeValue(source: ValueSource, channel: string, at: number): PausableRead<unknown> {
  return yield* readStored(
    source,
    channelValueKey(source.prefix, source.ns, channel, at),
    `the value of channel ${channel}`,
    "is",
  );
}
