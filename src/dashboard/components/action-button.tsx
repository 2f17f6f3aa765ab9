import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useOneAtATime } from "./use-one-at-a-time.ts";

interface ActionButtonProps {
  /** Does the work. Never rejects. */
  readonly onAct: () => Promise<unknown>;
  readonly class?: string;
  readonly title?: string;
  readonly isDisabled?: boolean;
  readonly children: ComponentChildren;
}

/** A button that starts a request. Clicks are ignored until the request has ended. */
export function ActionButton({ onAct, isDisabled = false, children, ...shared }: ActionButtonProps) {
  const [isBusy, setBusy] = useState(false);
  const act = useOneAtATime(async () => {
    setBusy(true);
    await onAct();
    setBusy(false);
  });
  // With `disabled`, the button would lose the keyboard focus.
  return (
    <button {...shared} type="button" disabled={isDisabled} aria-disabled={isBusy} onClick={() => void act()}>
      {children}
    </button>
  );
}
