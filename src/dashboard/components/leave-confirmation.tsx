import { useEffect, useState } from "preact/hooks";
import { Confirm } from "./dialogs.tsx";
import { useUnloadWarning } from "./use-unload-warning.ts";

/** Returns the path in an address of this page, without its query. */
const pathOf = (hash: string): string | undefined => hash.split("?", 1)[0];

/**
 * Asks before the user follows a link to another page, or closes the tab, while a form has changes that are not saved. The browser's own buttons
 * within the page, such as *Back*, are followed without a question.
 */
export function LeaveConfirmation({ isEdited }: { readonly isEdited: boolean }) {
  const [target, setTarget] = useState<string | null>(null);
  useUnloadWarning(isEdited);
  useEffect(() => {
    if (!isEdited) return undefined;
    const ask = (event: MouseEvent) => {
      const link = event.target instanceof Element ? event.target.closest("a") : null;
      if (!(link instanceof HTMLAnchorElement) || link.href === "") return;
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      const { hash, pathname, origin } = new URL(link.href);
      const isWithin = origin === location.origin && pathname === location.pathname;
      if (!isWithin || pathOf(hash) === pathOf(location.hash)) return;
      event.preventDefault();
      setTarget(hash);
    };
    document.addEventListener("click", ask, { capture: true });
    return () => document.removeEventListener("click", ask, { capture: true });
  }, [isEdited]);
  if (target === null) return null;
  return (
    <Confirm
      title="Leave without saving?"
      text="Unsaved changes will be lost."
      yes="Leave"
      onYes={() => (location.hash = target)}
      onClose={() => setTarget(null)}
    />
  );
}
