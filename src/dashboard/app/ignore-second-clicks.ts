/** The longest time between the two clicks of a double click, in milliseconds: the default of common desktops. */
const DOUBLE_CLICK_MS = 500;
/** The largest distance between the two clicks of a double click, in pixels. */
const DOUBLE_CLICK_PX = 6;

/** The attribute of an element, such as a form for an answer, that a click in it may replace by another one. */
export const REPLACED_BY_CLICK = { "data-replaced-by-click": true };

/**
 * Ignores the second click of a double click if the first click has removed or hidden what was clicked, in an element
 * with the attribute {@link REPLACED_BY_CLICK}. The second click would press whatever has moved to this place, such as a
 * button of the next question.
 */
export function ignoreSecondClicksOnOtherElements(): void {
  /** The first click in such an element, while the next click may be its second. */
  let first: MouseEvent | null = null;
  const onClick = (event: MouseEvent) => {
    // The keyboard presses what has the focus, wherever it has moved.
    if (event.detail === 0) return;
    if (first !== null && isNear(first, event) && isGone(first.target)) {
      event.preventDefault();
      event.stopImmediatePropagation();
      return;
    }
    const isReplaced = event.target instanceof Element && event.target.closest("[data-replaced-by-click]");
    first = isReplaced ? event : null;
  };
  document.addEventListener("click", onClick, { capture: true });
  // Whoever enters something between two clicks has not made a double click.
  document.addEventListener("input", () => (first = null), { capture: true });
}

const isNear = (first: MouseEvent, second: MouseEvent): boolean =>
  second.timeStamp - first.timeStamp < DOUBLE_CLICK_MS &&
  Math.hypot(second.clientX - first.clientX, second.clientY - first.clientY) < DOUBLE_CLICK_PX;

const isGone = (target: EventTarget | null): boolean =>
  target instanceof Element && (!target.isConnected || !target.checkVisibility());
