import { useEffect } from "preact/hooks";

/** Lets the browser ask before the user closes or reloads the tab, while something is entered that is then lost. */
export function useUnloadWarning(isEdited: boolean): void {
  useEffect(() => {
    if (!isEdited) return undefined;
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [isEdited]);
}
