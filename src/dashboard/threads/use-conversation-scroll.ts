import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

/** Events by which the user takes over the scroll position. */
const USER_EVENTS = ["wheel", "touchstart", "pointerdown", "keydown"];

interface ConversationScrollOptions {
  /** After each change of one of these values, the view scrolls to the end if it follows the end. */
  readonly contents: readonly unknown[];
  /** The id of a message that is shown instead of the end; null if there is none. */
  readonly wanted: string | null;
  /** Whether the conversation does not contain the wanted message. The end is then shown. */
  readonly isWantedMissing: boolean;
  /** Whether the beginning of the conversation was read. */
  readonly isWhole: boolean;
  /** Reads the beginning of the conversation. Called when the user presses Home. */
  readonly readWhole: () => void;
}

/**
 * The scroll position of a conversation. The view follows the end until the user scrolls away from it. The keys Home
 * and End jump to the edges, also if the focus is on nothing.
 */
export function useConversationScroll({
  contents,
  wanted,
  isWantedMissing,
  isWhole,
  readWhole,
}: ConversationScrollOptions) {
  const box = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(wanted === null);
  /** Whether the view goes to the beginning as soon as the beginning has been read. */
  const isStartWanted = useRef(false);
  /** Whether the view follows the end again when all of the conversation is seen. */
  const canReturnToEnd = useRef(false);
  canReturnToEnd.current = wanted === null || isWantedMissing;
  /** The latest known scroll position, in pixels. */
  const lastTop = useRef(0);
  /** Takes a new scroll position into account. */
  const look = useRef(() => {
    const { current } = box;
    if (current === null) return;
    const { scrollTop, scrollHeight, clientHeight } = current;
    const distance = scrollHeight - scrollTop - clientHeight;
    // Only the user scrolls up: the page itself scrolls down only, and removed content leaves the view at the end.
    if (distance < 2) isAtEnd.current = true;
    else if (scrollTop !== lastTop.current)
      isAtEnd.current = scrollTop > lastTop.current && (isAtEnd.current || distance < 60);
    lastTop.current = scrollTop;
  });
  // The browser reports a scroll only in the next frame. If the contents changed before that, the view would go back to
  // the end. So the position is read before each rendering, while the page still shows the previous contents.
  if (isAtEnd.current) look.current();
  const toStart = useRef(readWhole);
  toStart.current = () => {
    isStartWanted.current = !isWhole;
    if (!isWhole) readWhole();
  };
  const follow = () => {
    const { current } = box;
    if (current === null) return;
    // The browser reports no scroll when a conversation shrinks whose beginning is shown. If all of it is then seen, so
    // is its end.
    if (canReturnToEnd.current && current.scrollHeight - current.clientHeight < 2) isAtEnd.current = true;
    if (!isAtEnd.current) return;
    current.scrollTop = current.scrollHeight;
    // Otherwise, a scroll up that the browser has not reported yet could look like one down, from the previous end.
    lastTop.current = current.scrollTop;
  };
  useEffect(() => {
    const { current } = box;
    if (current === null) return undefined;
    const onScroll = () => look.current();
    // A smooth scroll, as the browser does it, would draw all messages on its way, and stop at an outdated estimate of
    // the end.
    const jump = (event: KeyboardEvent) => {
      const { key, target } = event;
      if (
        (key !== "End" && key !== "Home") ||
        event.ctrlKey ||
        event.altKey ||
        event.metaKey ||
        event.shiftKey
      )
        return;
      // After a change of the page, the focus may be on a part of the page that contains the conversation.
      const isHere = target instanceof Node && (target.contains(current) || current.contains(target));
      if (!isHere || (target instanceof Element && target.matches("input, textarea, select"))) return;
      event.preventDefault();
      isAtEnd.current = key === "End";
      if (key === "Home") toStart.current();
      current.scrollTop = isAtEnd.current ? current.scrollHeight : 0;
    };
    const stay = () => (isStartWanted.current = false);
    // When the form below grows, the visible part of the conversation shrinks and would no longer show the end.
    const resize = new ResizeObserver(follow);
    resize.observe(current);
    // In the capture phase, because the virtual list draws rows when it gets the event, and calls `follow`.
    current.addEventListener("scroll", onScroll, { passive: true, capture: true });
    for (const event of USER_EVENTS) addEventListener(event, stay, { passive: true, capture: true });
    addEventListener("keydown", jump);
    return () => {
      resize.disconnect();
      current.removeEventListener("scroll", onScroll, { capture: true });
      for (const event of USER_EVENTS) removeEventListener(event, stay, { capture: true });
      removeEventListener("keydown", jump);
    };
  }, []);
  useLayoutEffect(() => {
    if (isWhole && isStartWanted.current && box.current !== null) {
      isStartWanted.current = false;
      box.current.scrollTop = 0;
    }
  }, [isWhole]);
  useLayoutEffect(() => {
    if (wanted !== null) isAtEnd.current = isWantedMissing;
    follow();
  }, [wanted, isWantedMissing]);
  useLayoutEffect(follow, contents);
  return { box, follow, isFollowing: () => isAtEnd.current };
}
