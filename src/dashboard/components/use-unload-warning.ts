import { useLayoutEffect } from "preact/hooks";
import { isUnsavedInputKept } from "../app/page-location.ts";

/**
 * While `isEdited`, lets the browser ask before the user closes or reloads the tab, which would lose unsaved input.
 */
export function useUnloadWarning(isEdited: boolean): void {
  // A layout effect, because the user may leave before the next frame.
  useLayoutEffect(() => {
    if (!isEdited) return undefined;
    const warn = (event: BeforeUnloadEvent) => {
      if (isUnsavedInputKept()) event.preventDefault();
    };
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [isEdited]);
}
