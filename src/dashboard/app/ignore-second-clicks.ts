/** The longest time between the two clicks of a double click, in milliseconds: the default of common desktops. */
const DOUBLE_CLICK_MS = 500;
/** The largest distance between the two clicks of a double click, in pixels. */
const DOUBLE_CLICK_PX = 6;

/** The attribute of an element, such as a form for an answer, that a click in it may replace by another one. */
export const REPLACED_BY_CLICK = { "data-replaced-by-click": true };

/** The attribute of a button that starts an action, which a double click must not start twice. */
export const ACTS_ONCE = { "data-acts-once": true };

/**
 * Ignores the second click of a double click in two cases. First, in an element with the attribute {@link
 * REPLACED_BY_CLICK}, if the first click has removed or hidden what was clicked: the second click would press whatever
 * has moved to this place, such as a button of the next question. Second, after a click on a button with the attribute
 * {@link ACTS_ONCE}: the action may already have ended, and another button may have moved to this place, such as “Run
 * again” to that of “Cancel run”. Such a button also ignores the second of two quick presses of Enter or Space.
 */
export function ignoreSecondClicks(): void {
  /** The first click in such an element, while the next click may be its second. */
  let first: MouseEvent | null = null;
  /** The latest press of a key on such a button. */
  let press: { readonly button: Element; readonly at: number } | null = null;
  const ignore = (event: MouseEvent) => {
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  const onClick = (event: MouseEvent) => {
    // The keyboard presses what has the focus, wherever it has moved.
    if (event.detail === 0) {
      const button = actingButtonOf(event.target);
      if (button !== null && press?.button === button && event.timeStamp - press.at < DOUBLE_CLICK_MS)
        ignore(event);
      // Also after an ignored press, so that a key that is held down does not start the action again and again.
      press = button === null ? null : { button, at: event.timeStamp };
      return;
    }
    if (
      first !== null &&
      isNear(first, event) &&
      (isGone(first.target) || actingButtonOf(first.target) !== null)
    )
      return ignore(event);
    const isReplaced = event.target instanceof Element && event.target.closest("[data-replaced-by-click]");
    first = isReplaced || actingButtonOf(event.target) !== null ? event : null;
  };
  document.addEventListener("click", onClick, { capture: true });
  // Whoever enters something between two clicks has not made a double click.
  document.addEventListener("input", () => (first = null), { capture: true });
}

const isNear = (first: MouseEvent, second: MouseEvent): boolean =>
  second.timeStamp - first.timeStamp < DOUBLE_CLICK_MS &&
  Math.hypot(second.clientX - first.clientX, second.clientY - first.clientY) < DOUBLE_CLICK_PX;

const actingButtonOf = (target: EventTarget | null): Element | null =>
  target instanceof Element ? target.closest("[data-acts-once]") : null;

const isGone = (target: EventTarget | null): boolean =>
  target instanceof Element && (!target.isConnected || !target.checkVisibility());
