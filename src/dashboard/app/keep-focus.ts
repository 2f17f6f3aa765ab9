/** Returns an element and its ancestors, from the inside out. */
function pathOf(element: Element): readonly Element[] {
  const path: Element[] = [];
  for (let at: Element | null = element; at !== null && at !== document.body; at = at.parentElement)
    path.push(at);
  return path;
}

const isShown = (element: Element): boolean => element.isConnected && element.closest("[hidden]") === null;

/** Returns whether an element can have the focus. */
const isUsable = (element: Element): boolean => isShown(element) && !element.matches(":disabled");

/** Focuses an element that usually cannot have the focus. It can have it until it loses it. */
function focusOnce(element: HTMLElement): void {
  if (!element.hasAttribute("tabindex")) {
    element.tabIndex = -1;
    element.addEventListener("blur", () => element.removeAttribute("tabindex"), { once: true });
  }
  element.focus({ preventScroll: true });
}

/**
 * Keeps the focus near its place when the focused element is removed, hidden or disabled, such as with a deleted row, a
 * closed dialog or the previous page. The browser would take the focus away, and whoever uses the keyboard would have to
 * begin at the top of the page. Now the innermost ancestor that is still there gets the focus.
 */
export function keepFocus(): void {
  /** The element that has the focus, and its ancestors; empty if none has it, or if the user has taken it away. */
  let path: readonly Element[] = [];
  document.addEventListener("focusin", ({ target }) => {
    path = target instanceof Element ? pathOf(target) : [];
  });
  document.addEventListener("focusout", ({ target, relatedTarget }) => {
    if (relatedTarget !== null || !(target instanceof Element)) return;
    // If the element is being removed, this event comes just before that. Otherwise, the user has clicked beside all
    // elements that can have the focus, or has left the window.
    setTimeout(() => {
      if (path[0] === target && isUsable(target)) path = [];
    });
  });
  const restore = () => {
    const [focused, ...ancestors] = path;
    if (focused === undefined || isUsable(focused)) return;
    const { activeElement } = document;
    if (activeElement !== null && activeElement !== document.body && activeElement !== focused) return;
    // Nothing outside of an open dialog can have the focus. The last one is the innermost.
    const dialog = [...document.querySelectorAll("dialog:modal")].at(-1);
    const place = ancestors.find((one) => isShown(one) && (dialog === undefined || dialog.contains(one)));
    if (place instanceof HTMLElement) focusOnce(place);
  };
  new MutationObserver(restore).observe(document.body, {
    childList: true,
    subtree: true,
    attributeFilter: ["disabled", "hidden"],
  });
}
