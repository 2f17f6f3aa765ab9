import { useLayoutEffect, useState } from "preact/hooks";
import { currentLocation, goToHash, guardAgainstLeaving, isUnloadGuarded } from "../app/page-location.ts";
import { ConfirmDialog } from "./dialogs.tsx";

/** Returns the part of an address that decides which form is shown: the path, and the tab of a thread's page. */
function placeOf(hash: string): string {
  const [path = "", query] = hash.split("?", 2);
  return `${path}?${new URLSearchParams(query).get("tab") ?? ""}`;
}

interface LeaveConfirmationProps {
  readonly isEdited: boolean;
  readonly title?: string;
  readonly text?: string;
}

/**
 * While a form has unsaved changes, asks before the user follows a link to another page, goes back or forward in the
 * browser's history, or closes or reloads the page.
 */
export function LeaveConfirmation({
  isEdited,
  title = "Leave without saving?",
  text = "Unsaved changes will be lost.",
}: LeaveConfirmationProps) {
  const [leave, setLeave] = useState<(() => void) | null>(null);
  // A layout effect, because the user may leave before the next frame.
  useLayoutEffect(() => {
    if (!isEdited) return undefined;
    const ask = (event: MouseEvent) => {
      const link = event.target instanceof Element ? event.target.closest("a") : null;
      if (!(link instanceof HTMLAnchorElement) || link.href === "") return;
      // Another form with unsaved input may have asked already.
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey) return;
      const { hash, pathname, origin } = new URL(link.href);
      const isWithin = origin === location.origin && pathname === location.pathname;
      if (!isWithin || placeOf(hash) === placeOf(location.hash)) return;
      event.preventDefault();
      setLeave(() => () => goToHash(hash));
    };
    document.addEventListener("click", ask, { capture: true });
    // Lets the browser ask before the tab is closed or reloaded.
    const warn = (event: BeforeUnloadEvent) => {
      if (isUnloadGuarded()) event.preventDefault();
    };
    addEventListener("beforeunload", warn);
    const unguard = guardAgainstLeaving({
      isKept: (hash) => placeOf(hash) !== placeOf(currentLocation.peek().hash),
      ask: (go) => setLeave(() => go),
    });
    return () => {
      document.removeEventListener("click", ask, { capture: true });
      removeEventListener("beforeunload", warn);
      unguard();
    };
  }, [isEdited]);
  if (leave === null) return null;
  return <ConfirmDialog title={title} text={text} yes="Leave" onYes={leave} onClose={() => setLeave(null)} />;
}
