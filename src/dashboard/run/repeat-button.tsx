import { useState } from "preact/hooks";
import type { ApiInterrupt } from "../api/records.ts";
import { ActionButton } from "../components/action-button.tsx";
import { ConfirmDialog } from "../components/dialogs.tsx";
import { REPEAT_OBSTACLE_TEXTS, type RepeatObstacle } from "../live/repeat-obstacle.ts";
import { questionLine } from "../threads/event-answer.tsx";

interface RepeatButtonProps {
  /** Why the run cannot be run again; null if it can. */
  readonly obstacle: RepeatObstacle | null;
  /** The pending questions that the new run would drop. */
  readonly lost: readonly ApiInterrupt[];
  readonly isQuiet?: boolean;
  readonly onRepeat: () => Promise<unknown>;
}

/**
 * A button that runs a run again. If there is an obstacle, the button is disabled and its tooltip says why. Asks for
 * confirmation if a question would be dropped.
 */
export function RepeatButton({ obstacle, lost, isQuiet = false, onRepeat }: RepeatButtonProps) {
  const [isAsking, setAsking] = useState(false);
  const title =
    obstacle === null
      ? "Starts a new run with the same input, from the thread's current state"
      : `${REPEAT_OBSTACLE_TEXTS[obstacle]}.`;
  return (
    <>
      <ActionButton
        class={isQuiet ? "quiet" : ""}
        isDisabled={obstacle !== null}
        title={title}
        onAct={lost.length === 0 ? onRepeat : async () => setAsking(true)}
      >
        Run again
      </ActionButton>
      {isAsking && (
        <ConfirmDialog
          title="Run again without an answer?"
          text={`The thread waits for an answer to ${lost.map(({ value }) => `“${questionLine(value)}”`).join(" and ")}. The new run drops the ${lost.length === 1 ? "question, which" : "questions, which"} can then no longer be answered.`}
          yes="Run again"
          onYes={onRepeat}
          onClose={() => setAsking(false)}
        />
      )}
    </>
  );
}
