import { ActionButton } from "../components/action-button.tsx";
import { REPEAT_OBSTACLE_TEXTS, type RepeatObstacle } from "../live/repeat-obstacle.ts";

interface RepeatButtonProps {
  /** Why the run cannot be run again; null if it can. */
  readonly obstacle: RepeatObstacle | null;
  readonly isQuiet?: boolean;
  readonly onRepeat: () => Promise<unknown>;
}

/** A button that runs a run again. It is disabled if that is not possible, and its tooltip says why. */
export function RepeatButton({ obstacle, isQuiet = false, onRepeat }: RepeatButtonProps) {
  const title =
    obstacle === null
      ? "Starts a new run with the same input, from the thread's current state"
      : `${REPEAT_OBSTACLE_TEXTS[obstacle]}.`;
  return (
    <ActionButton
      class={isQuiet ? "quiet" : ""}
      isDisabled={obstacle !== null}
      title={title}
      onAct={onRepeat}
    >
      Run again
    </ActionButton>
  );
}
