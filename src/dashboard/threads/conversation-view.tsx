import { defaultRangeExtractor, type Range } from "@tanstack/virtual-core";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { JsonRecord } from "../api/records.ts";
import { hrefOf } from "../app/page-location.ts";
import { useVirtualizer } from "../components/use-virtualizer.ts";
import { toChatMessage } from "../live/chat-messages.ts";
import { MessageBubble } from "./message-bubble.tsx";

/** The height of a message without its text, in pixels, for estimates. */
const FRAME_HEIGHT = 44;
/** The height of a line of text, in pixels, for estimates. */
const LINE_HEIGHT = 22;
/** The number of characters in a line of text, for estimates. */
const LINE_CHARACTERS = 95;
/** The space between two messages, in pixels. */
const GAP_PIXELS = 13;
/** The number of messages that are drawn before and after the visible ones. */
const OVERSCAN_MESSAGES = 10;
/** Up to this number of messages, all of them are drawn, so that the browser's own search finds them. */
const MAX_DRAWN_WHOLE = 100;
const USER_EVENTS = ["wheel", "touchstart", "pointerdown", "keydown"];

interface ConversationViewProps {
  readonly thread: string;
  /** The latest messages of the conversation, oldest first. */
  readonly messages: readonly JsonRecord[];
  /** The number of messages before `messages`, which were not read. */
  readonly omitted: number;
  /** The names of the called tools, by the id of the tool call. */
  readonly calls: ReadonlyMap<string, string>;
  /** The id of the message that the page's address names; null if there is none. */
  readonly wanted: string | null;
  /** The scrolling element that contains the list. */
  readonly scroll: { readonly current: HTMLElement | null };
  /** Returns whether the view follows the end of the conversation. */
  readonly isFollowing: () => boolean;
  /** Called when the height of the list has changed. */
  readonly onResize: () => void;
}

/**
 * A list of messages of any length. Draws only the visible messages, some before and after them, and the focused
 * message.
 */
export function ConversationView({
  thread,
  messages,
  omitted,
  calls,
  wanted,
  scroll,
  isFollowing,
  onResize,
}: ConversationViewProps) {
  const count = messages.length;
  const focused = useRef<number | null>(null);
  // The function changes only with the messages, because the virtualizer computes all positions again for each new
  // function.
  const keyOf = useCallback((index: number) => idOf(messages[index]) || omitted + index, [messages, omitted]);
  const virtual = useVirtualizer(scroll, {
    count,
    estimateSize: (index) => assumedHeight(messages[index]),
    gap: GAP_PIXELS,
    overscan: OVERSCAN_MESSAGES,
    getItemKey: keyOf,
    // The visible messages stay in place when messages are added or removed before them.
    anchorTo: "end",
    rangeExtractor: (range) => indexesOf(range, focused.current),
  });
  // When a message is drawn higher or lower than estimated, the messages below it move. The scroll position is adjusted
  // by the difference, so that the visible messages stay in place.
  virtual.shouldAdjustScrollPositionOnItemSizeChange = (
    { key, start, end },
    _,
    { itemSizeCache, scrollOffset },
  ) => !isFollowing() && (itemSizeCache.has(key) ? end : start) < (scrollOffset ?? 0);
  useEffect(() => {
    // Messages that were removed at the beginning would otherwise stay in the cache for as long as the page is open.
    const shown = new Set(messages.map((_, index) => keyOf(index)));
    for (const key of virtual.itemSizeCache.keys())
      if (!shown.has(key as string | number)) virtual.itemSizeCache.delete(key);
  }, [keyOf]);
  const height = virtual.getTotalSize();
  useLayoutEffect(onResize, [height]);
  const wantedIndex = useMemo(
    () => (wanted === null ? -1 : messages.findIndex((message) => idOf(message) === wanted)),
    [messages, wanted],
  );
  useEffect(() => {
    if (wantedIndex >= 0) virtual.scrollToIndex(wantedIndex, { align: "center" });
  }, [wanted, wantedIndex >= 0]);
  useEffect(() => {
    const { current } = scroll;
    // If the user scrolls meanwhile, the page stops scrolling to the message in the address.
    const stop = () => virtual.cancelScroll();
    for (const event of USER_EVENTS) current?.addEventListener(event, stop, { passive: true });
    return () => {
      for (const event of USER_EVENTS) current?.removeEventListener(event, stop);
    };
  }, []);
  return (
    <ol
      class="messages"
      style={{ height: `${height}px` }}
      onFocusIn={({ target }) => (focused.current = indexOfRow(target))}
      onFocusOut={() => (focused.current = null)}
    >
      {virtual.getVirtualItems().map(({ index, key, start }) => {
        const raw = messages[index];
        const id = idOf(raw);
        return (
          raw !== undefined && (
            <MessageBubble
              key={key}
              message={toChatMessage(raw)}
              calls={calls}
              place={{
                index,
                position: omitted + index + 1,
                count: omitted + count,
                top: start,
                measure: virtual.measureElement,
              }}
              {...(id !== "" && {
                href: hrefOf(["threads", thread], { message: id }),
                isWanted: id === wanted,
              })}
            />
          )
        );
      })}
    </ol>
  );
}

/** Estimates the height in pixels of a message that has not been drawn, so that the scroll bar is about right. */
function assumedHeight(message: JsonRecord | undefined): number {
  const { text, calls } = toChatMessage(message ?? {});
  const count = text
    .split("\n")
    .reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / LINE_CHARACTERS)), 0);
  return FRAME_HEIGHT + count * LINE_HEIGHT + calls.length * 3 * LINE_HEIGHT;
}

const idOf = (message: JsonRecord | undefined): string => {
  const id = message?.["id"];
  return typeof id === "string" ? id : "";
};

const indexOfRow = (target: EventTarget | null): number | null => {
  const index =
    target instanceof Element ? target.closest<HTMLElement>("li[data-index]")?.dataset["index"] : undefined;
  return index === undefined ? null : Number(index);
};

/**
 * Returns the indexes of the messages to draw, ascending. `focused`: the index of the message with the keyboard focus,
 * which is always drawn.
 */
function indexesOf(range: Range, focused: number | null): number[] {
  if (range.count <= MAX_DRAWN_WHOLE) return Array.from({ length: range.count }, (_, index) => index);
  const indexes = defaultRangeExtractor(range);
  if (focused === null || focused >= range.count || indexes.includes(focused)) return indexes;
  return [...indexes, focused].toSorted((a, b) => a - b);
}
