/** The longest time between the two clicks of a double click, in milliseconds: the default of common desktops. */
const DOUBLE_CLICK_MS = 500;
/** The largest distance between the two clicks of a double click, in pixels. */
const DOUBLE_CLICK_PX = 6;

/**
 * Ignores the second click of a double click if the first click has removed or hidden what was clicked. The second
 * click would press whatever has moved to this place, such as a button of the next question.
 */
export function ignoreSecondClicksOnOtherElements(): void {
  let first: MouseEvent | null = null;
  const onClick = (event: MouseEvent) => {
    // The keyboard presses what has the focus, wherever it has moved.
    if (event.detail === 0) return;
    if (first !== null && isNear(first, event) && isGone(first.target)) {
      event.preventDefault();
      event.stopImmediatePropagation();
      return;
    }
    first = event;
  };
  document.addEventListener("click", onClick, { capture: true });
}

const isNear = (first: MouseEvent, second: MouseEvent): boolean =>
  second.timeStamp - first.timeStamp < DOUBLE_CLICK_MS &&
  Math.hypot(second.clientX - first.clientX, second.clientY - first.clientY) < DOUBLE_CLICK_PX;

const isGone = (target: EventTarget | null): boolean =>
  target instanceof Element && (!target.isConnected || !target.checkVisibility());
