import { useState } from "preact/hooks";
import { getThread } from "../api/client.ts";
import type { ApiInterrupt, Run } from "../api/records.ts";
import { runAction } from "../app/notices.ts";
import { ActionButton } from "../components/action-button.tsx";
import { ConfirmDialog } from "../components/dialogs.tsx";
import {
  findRepeatObstacle,
  isRepeatQueued,
  questionsLostByRepeat,
  REPEAT_OBSTACLE_TEXTS,
  createdRunNotice,
  type RepeatObstacle,
} from "../live/repeat-obstacle.ts";
import { lostQuestionsText } from "../threads/event-answer.tsx";

interface RepeatButtonProps {
  readonly run: Run;
  /** Why the run cannot be run again, as far as the page knows; null if it can. */
  readonly obstacle: RepeatObstacle | null;
  readonly isQuiet?: boolean;
  /** Starts the new run. `notice`: what to say when it has been created. */
  readonly onRepeat: (notice: string) => Promise<unknown>;
}

/**
 * A button that runs a run again. If there is an obstacle, the button is disabled and its tooltip says why. Asks for
 * confirmation if a question would be dropped. If the new run is queued, the notice says that it drops a question of the
 * run in progress.
 */
export function RepeatButton({ run, obstacle, isQuiet = false, onRepeat }: RepeatButtonProps) {
  /** The questions that the new run would drop, while the user is asked about them; otherwise null. */
  const [lost, setLost] = useState<readonly ApiInterrupt[] | null>(null);
  const title =
    obstacle === null
      ? "Starts a new run with the same input, from the thread's current state"
      : `${REPEAT_OBSTACLE_TEXTS[obstacle]}.`;
  const repeat = () =>
    runAction(async () => {
      // Reads the thread again, because it may have asked a question that the page does not show yet.
      const thread = await getThread(run.thread_id);
      const found = findRepeatObstacle(run, thread);
      if (found !== null) throw new Error(`${REPEAT_OBSTACLE_TEXTS[found]}.`);
      const questions = questionsLostByRepeat(run, thread);
      if (questions.length > 0) setLost(questions);
      else await onRepeat(createdRunNotice(isRepeatQueued(run, thread)));
    });
  return (
    <>
      <ActionButton
        class={isQuiet ? "quiet" : ""}
        isDisabled={obstacle !== null}
        title={title}
        onAct={repeat}
      >
        Run again
      </ActionButton>
      {lost !== null && (
        <ConfirmDialog
          title="Run again without an answer?"
          text={lostQuestionsText(lost)}
          yes="Run again"
          // A thread that waits for an answer has no run in progress.
          onYes={() => onRepeat(createdRunNotice(false))}
          onClose={() => setLost(null)}
        />
      )}
    </>
  );
}
