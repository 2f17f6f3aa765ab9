import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { ACTS_ONCE } from "../app/ignore-second-clicks.ts";
import { useOneAtATime } from "./use-one-at-a-time.ts";

interface ActionButtonProps {
  /** Does the button's work. MUST NOT reject. */
  readonly onAct: () => Promise<unknown>;
  readonly class?: string;
  readonly title?: string;
  readonly "aria-describedby"?: string;
  readonly isDisabled?: boolean;
  readonly children: ComponentChildren;
}

/**
 * A button that starts an asynchronous action. Clicks are ignored while the action is in progress, and so is the second click of
 * a double click.
 */
export function ActionButton({ onAct, isDisabled = false, children, ...shared }: ActionButtonProps) {
  const [isBusy, setBusy] = useState(false);
  const act = useOneAtATime(async () => {
    setBusy(true);
    await onAct();
    setBusy(false);
  });
  // Busy buttons get `aria-disabled`, because with `disabled` they would lose the keyboard focus.
  return (
    <button
      {...shared}
      {...ACTS_ONCE}
      type="button"
      disabled={isDisabled}
      aria-disabled={isBusy}
      onClick={() => void act()}
    >
      {children}
    </button>
  );
}
