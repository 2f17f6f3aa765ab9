import { ActionButton } from "../components/action-button.tsx";
import { REPEAT_OBSTACLE_TEXTS, type RepeatObstacle } from "../live/repeat-obstacle.ts";

interface RepeatButtonProps {
  /** Why the run cannot be run again; null: it can. */
  readonly obstacle: RepeatObstacle | null;
  readonly isQuiet?: boolean;
  readonly onRepeat: () => Promise<unknown>;
}

/** The button that runs a run again. If that can only fail, it is disabled and its title says why. */
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
