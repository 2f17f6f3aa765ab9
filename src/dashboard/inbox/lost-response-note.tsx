import { useEffect } from "preact/hooks";
import type { JsonRecord, Run } from "../api/records.ts";
import { runHref } from "../app/page-location.ts";
import { useResource } from "../components/use-resource.ts";
import { findLostAnswerOutcome } from "../live/answer-requests.ts";

interface LostResponseProps {
  readonly thread: string;
  /** The answers whose request got no response, by the ids of their questions. */
  readonly answers: JsonRecord;
  /** When the questions were asked; null if this is not known. */
  readonly askedAt: string | null;
  /** Called if the questions are no longer pending, and not because of these answers. `run`: the one that ended them. */
  readonly onOther: (run: Run | undefined) => void;
  /** Goes to the next question. */
  readonly onNext: () => void;
}

/** Says whether answers were stored whose request got no response. Reads it until the server responds. */
export function LostResponseNote({ thread, answers, askedAt, onOther, onNext }: LostResponseProps) {
  const found = useResource(
    async () => ({ of: answers, ...(await findLostAnswerOutcome(thread, answers, askedAt)) }),
    [thread, answers],
  );
  // The outcome of earlier answers is not shown while that of these is read.
  const outcome = found.value?.of === answers ? found.value : undefined;
  useEffect(() => {
    if (outcome?.kind === "other") onOther(outcome.run);
    if (outcome?.kind === "gone") onOther(undefined);
  }, [outcome]);
  return (
    <div class="note" role="alert">
      {outcome === undefined ? (
        <span>
          The server's response was lost. It is not known yet whether the answer was stored.
          {found.error !== null && ` ${found.error}`}
        </span>
      ) : outcome.kind === "stored" ? (
        <>
          <span>The answer was stored. Only the server's response was lost.</span>
          <a href={runHref(thread, outcome.run.run_id)}>Open run</a>
          <button type="button" onClick={onNext}>
            Next question
          </button>
        </>
      ) : (
        <span>
          The server's response was lost, and the answer was not stored: the question is still pending. You
          can send the answer again.
        </span>
      )}
    </div>
  );
}
