import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { createRun, getThread } from "../api/client.ts";
import {
  type ApiInterrupt,
  type InterruptQuestion,
  hasRunEnded,
  type JsonRecord,
  type ThreadState,
} from "../api/records.ts";
import { runAction } from "../app/notices.ts";
import { runHref } from "../app/page-location.ts";
import { Age } from "../components/age.tsx";
import {
  AlreadyAnsweredError,
  type AnswerRefusalReason,
  answerRefusalOf,
  type AnswerSubmission,
  findAnsweringRun,
  givesAnswers,
  readPendingQuestions,
  isResponseLost,
  answerRefusalFromText,
  sendAnswers,
  waitForAnswerOutcome,
} from "../live/answer-requests.ts";
import { resumeRequestOf } from "../live/repeat-and-resume-requests.ts";
import type { ThreadSubscription } from "../live/thread-subscription.ts";
import { questionsLostByInput } from "../live/repeat-obstacle.ts";
import { ActionButton } from "../components/action-button.tsx";
import { ConfirmDialog } from "../components/dialogs.tsx";
import { useAssistantList } from "../components/use-assistants.ts";
import { useResource } from "../components/use-resource.ts";
import { lostQuestionsText } from "./event-answer.tsx";
import { InterruptAnswers } from "./interrupt-answers.tsx";
import { graphNameOf } from "./thread-title.ts";
import { StateEditor } from "./state-editor.tsx";
import { RunForm } from "./run-form.tsx";
import { Loading } from "../components/empty-state.tsx";

interface AnswerOrRunProps {
  readonly watch: ThreadSubscription;
  readonly state: ThreadState;
}

/**
 * The area below the conversation: the form for an answer if a question is pending, otherwise the form for a new run.
 */
export function AnswerOrRunForm({ watch, state }: AnswerOrRunProps) {
  // The dialog is outside `AnswerOrRun`, whose form is replaced when somebody else resumes the thread.
  const [edited, setEdited] = useState<ThreadState | null>(null);
  const { assistant_id, graph_id } = watch.record.value?.metadata ?? {};
  return (
    <>
      <AnswerOrRun watch={watch} state={state} onEdit={() => setEdited(state)} />
      {edited !== null && (
        <StateEditor
          watch={watch}
          assistant={[assistant_id, graph_id].find((one) => typeof one === "string")}
          state={edited}
          onStored={() => watch.refresh()}
          onClose={() => setEdited(null)}
        />
      )}
    </>
  );
}

function AnswerOrRun({ watch, state, onEdit }: AnswerOrRunProps & { readonly onEdit: () => void }) {
  const list = useAssistantList();
  const assistants = list.value ?? [];
  /** Whether the user has chosen to start another run in place of an answer or of Resume. */
  const [isRunFormChosen, setRunFormChosen] = useState(false);
  /** Shows the form for a run in place of that for an answer, or that again. Its first field gets the focus. */
  const chooseForm = (isRun: boolean) => {
    setRunFormChosen(isRun);
    requestAnimationFrame(focusFirstField);
  };
  const { metadata = {} } = watch.record.value ?? {};
  /** The user's latest answer; null if there is none. */
  const [sentAnswer, setSentAnswer] = useState<SentAnswer | null>(null);
  const unfinished = watch.runs.value.filter((run) => !hasRunEnded(run));
  const isBusy = unfinished.length > 0;
  const answerRun = watch.runs.value.find(({ run_id }) => run_id === sentAnswer?.runId);
  const hasAnswerRunEnded = answerRun !== undefined && hasRunEnded(answerRun);
  /** Whether the form is waiting to learn if the user's latest answer is refused. */
  const isSending = sentAnswer?.phase === "creating" || sentAnswer?.phase === "checking";
  // While the user's own answer is processed, the question and the input stay visible, because the user may have to
  // correct the answer. After a refusal, the page may show the run as unfinished until its next read.
  const isThreadWaiting =
    sentAnswer?.phase === "creating" ||
    unfinished.every(({ run_id }) => run_id === sentAnswer?.runId && sentAnswer.phase !== "running");
  const interrupts = useMemo(() => (isThreadWaiting ? interruptsOf(state) : []), [isThreadWaiting, state]);
  /** The number of answers that the user has sent so far. */
  const answerCount = useRef(0);
  /** Whether the user has entered something into the form for an answer, and has not sent it. */
  const [hasUnsentAnswer, setUnsentAnswer] = useState(false);
  /** The questions that the form for an answer has most recently shown. */
  const latestQuestions = useRef<ShownQuestions | null>(null);
  /** The user's latest answers, by the ids of their questions, if the request with them got no response; else null. */
  const unconfirmedAnswers = useRef<JsonRecord | null>(null);
  /** The latest answer of the user that a run has accepted. */
  const acceptedAnswer = useRef<SentAnswer | null>(null);
  // Each pending question is read from the server, for the schema of its answer. If that fails, the user can enter the
  // answer as JSON.
  const ids = interrupts.map(({ id }) => id);
  // A node of LangGraph.js may ask several times with the same id.
  const key = useMemo(() => JSON.stringify(interrupts.map(({ id, value }) => [id, value])), [interrupts]);
  // If somebody else answers first, the form stays, because it contains what the user has entered.
  const isUnsentAnswerOutdated =
    hasUnsentAnswer && !isSending && latestQuestions.current !== null && latestQuestions.current.key !== key;
  // Read again when the run with the answer has ended, because it may have refused the answer.
  const endedAnswerRun = hasAnswerRunEnded ? answerRun.run_id : null;
  const questions = useResource(
    async () => ({
      key,
      endedAnswerRun,
      ...(interrupts.length === 0
        ? { list: [], refusalText: null }
        : await readPendingQuestions(watch.id, ids)),
    }),
    [key, endedAnswerRun],
  );
  const isCurrent = questions.value?.key === key && questions.value.endedAnswerRun === endedAnswerRun;
  const readRefusal = useMemo(
    () => answerRefusalFromText(questions.value?.refusalText ?? null),
    [questions.value],
  );
  // While an answer is being sent, the form gets its refusal from `onAnswer`.
  const refusal = isCurrent && !isSending ? readRefusal : null;
  /** Whether the answer was refused after the form had stopped waiting for that. */
  const isLateRefusal = sentAnswer?.phase === "running" && answerRun?.status === "error" && refusal !== null;
  useEffect(() => {
    if (!isLateRefusal) return;
    setSentAnswer({ ...sentAnswer, phase: "refused" });
    setUnsentAnswer(true);
  }, [isLateRefusal]);
  // If the thread's assistant was deleted, the default assistant of its graph is used.
  const isDeleted =
    list.value !== undefined &&
    assistants.every(({ assistant_id }) => assistant_id !== metadata["assistant_id"]);
  const threadAssistant = [isDeleted ? null : metadata["assistant_id"], metadata["graph_id"]].find(
    (one) => typeof one === "string",
  ) as string | undefined;
  const start = (request: JsonRecord) =>
    runAndRefresh(async () => {
      await createRun(watch.id, request);
      setSentAnswer(null);
    });
  /** The questions that the run would drop, while the user is asked about them; otherwise null. */
  const [lost, setLost] = useState<{
    readonly questions: readonly ApiInterrupt[];
    readonly decide: (isConfirmed: boolean) => void;
  } | null>(null);
  /** Starts a run in place of an answer. Asks first if the run drops questions, which are read again for that. */
  const startInstead = async (request: JsonRecord): Promise<boolean> => {
    let questions: readonly ApiInterrupt[] = [];
    const isRead = await runAction(async () => {
      questions = questionsLostByInput(await getThread(watch.id));
    });
    if (!isRead) return false;
    const isConfirmed =
      questions.length === 0 || (await new Promise<boolean>((decide) => setLost({ questions, decide })));
    return isConfirmed && start(request);
  };
  const resume = (assistant: string) => {
    // Undefined if the thread has no runs, because it was copied or its state was only edited.
    const [newest] = watch.runs.value;
    return start(newest === undefined ? { assistant_id: assistant, input: null } : resumeRequestOf(newest));
  };
  const runAndRefresh = (work: () => Promise<unknown>) =>
    runAction(async () => {
      await work();
      setRunFormChosen(false);
      watch.refresh();
    });
  const answer = async (assistant: string, answers: JsonRecord): Promise<AnswerSubmission> => {
    let refusal: AnswerRefusalReason | null = null;
    let runId: string | null = null;
    const answered = latestQuestions.current;
    const question = answered?.key ?? "";
    const number = ++answerCount.current;
    setSentAnswer({ number, phase: "creating", runId, question });
    setUnsentAnswer(false);
    unconfirmedAnswers.current = null;
    const isSent = await runAndRefresh(async () => {
      const run = await sendAnswers(watch.id, assistant, answers, answered?.askedAt ?? null).catch(
        (cause: unknown) => {
          refusal = answerRefusalOf(cause);
          if (refusal !== null) return;
          if (isResponseLost(cause)) unconfirmedAnswers.current = answers;
          throw cause;
        },
      );
      if (run === undefined) return;
      runId = run.run_id;
      setSentAnswer({ number, phase: "checking", runId, question });
      watch.refresh();
      const outcome = await waitForAnswerOutcome(run, answered?.questions ?? []).catch(() => null);
      refusal = answerRefusalFromText(outcome?.refusalText ?? null);
    });
    if ((!isSent || refusal !== null) && hasUnsentAnswer) setUnsentAnswer(true);
    const phase = refusal === null ? "running" : "refused";
    // If the user has answered the next question, this answer is no longer the latest one.
    setSentAnswer((latest) =>
      latest?.number !== number
        ? latest
        : runId === null && refusal === null
          ? null
          : { number, phase, runId, question },
    );
    return refusal ?? (isSent ? "accepted" : "failed");
  };
  const discard = () => {
    setUnsentAnswer(false);
    setSentAnswer(null);
  };
  // The state may be that of a run that the list of runs does not contain yet. The thread is then busy, not paused.
  const isPaused = isThreadWaiting && state.next.length > 0 && watch.record.value?.status !== "busy";
  const isRead = questions.error !== null || questions.value?.key === key;
  // While the request with an answer has no response, another question may be the next one, or be there because somebody else has answered
  // first. The form stays for the latter case.
  const isFormHeld = sentAnswer?.phase === "creating" && sentAnswer.question !== key;
  if (interrupts.length > 0 && isRead && !isUnsentAnswerOutdated && !isFormHeld)
    latestQuestions.current = {
      key,
      askedAt: state.created_at,
      questions: interrupts.map((one) => ({
        ...one,
        response_schema: questions.value?.list.find(({ id }) => id === one.id)?.response_schema ?? null,
      })),
    };
  const shownQuestions = latestQuestions.current;
  const isAnswerAccepted = hasAnswerRunEnded && answerRun.status !== "error";
  if (isAnswerAccepted) acceptedAnswer.current = sentAnswer;
  // The next question may have the same id and value as the answered one, and gets a new form all the same. A different
  // one is shown before the page knows that the answer was accepted, and keeps the form into which the user may have
  // entered something.
  const { question: answeredQuestion, runId: acceptedRun } = acceptedAnswer.current ?? {};
  const formKey = `${shownQuestions?.key} ${answeredQuestion === shownQuestions?.key ? acceptedRun : null}`;
  const runForm = (
    <section key="run" class="composer" aria-label="Start a run">
      <RunForm
        assistants={assistants}
        // Before the list of assistants has been read, it is not known whether the thread's assistant still exists.
        initial={list.value === undefined && list.error === null ? undefined : threadAssistant}
        thread={watch.id}
        values={state.values}
        draftKey={watch.id}
        isBusy={isBusy}
        isCompact={watch.runs.value.length > 0}
        submit={isBusy ? "Start run" : "Run"}
        onRun={isRunFormChosen ? startInstead : start}
      />
      {isRunFormChosen && interrupts.length > 0 && (
        <p class="hint">
          A run with a new input drops the open {interrupts.length === 1 ? "question" : "questions"}, which
          can then no longer be answered.
        </p>
      )}
      {lost !== null && (
        <ConfirmDialog
          title="Start a run without an answer?"
          text={lostQuestionsText(lost.questions)}
          yes="Start run"
          onYes={() => lost.decide(true)}
          onClose={() => {
            lost.decide(false);
            setLost(null);
          }}
        />
      )}
      {isRunFormChosen && isPaused && (
        <button type="button" class="quiet link" onClick={() => chooseForm(false)}>
          {interrupts.length > 0 ? "Back to the question" : "Back to Resume"}
        </button>
      )}
    </section>
  );
  if (isUnsentAnswerOutdated && shownQuestions !== null)
    return (
      <>
        <section class="composer asks" aria-label="Your unsent answer">
          <NoLongerPendingNote
            watch={watch}
            shownQuestions={shownQuestions}
            unconfirmedAnswers={unconfirmedAnswers.current}
            onDiscard={discard}
          />
          <InterruptAnswers
            key={formKey}
            questions={shownQuestions.questions}
            graph={graphNameOf(metadata)}
            isClosed
            refusal={null}
            onAnswer={async () => "failed"}
          />
        </section>
        {isRunFormChosen && runForm}
      </>
    );
  const canContinue = isPaused && threadAssistant !== undefined;
  const canAnswer = canContinue && interrupts.length > 0;
  // The run with the answer may still refuse it. Until it has accepted it, the form is kept: visible while it waits for a
  // refusal, and hidden after that. An unsent answer is kept too: when somebody else has answered first, the page may know
  // that the thread is busy before it knows what has become of the question.
  const isFormKept =
    !canAnswer && (hasUnsentAnswer || (sentAnswer !== null && !isAnswerAccepted)) && shownQuestions !== null;
  const isKeptFormHidden = isFormKept && !isSending && !hasUnsentAnswer;
  const isResumeShown = canContinue && !canAnswer && (!isFormKept || isKeptFormHidden);
  const otherButton = (
    <button type="button" class="quiet link" onClick={() => chooseForm(true)}>
      Start another run instead
    </button>
  );
  return (
    <>
      {/* The form for an answer stays, hidden, behind the form for another run, so that it keeps what was entered. */}
      {(canAnswer || isFormKept) && (
        <section
          class="composer asks"
          hidden={isRunFormChosen || isKeptFormHidden}
          aria-label="Waiting for an answer"
          onInput={() => setUnsentAnswer(canAnswer)}
        >
          {shownQuestions === null || (canAnswer && !isFormHeld && !isRead && shownQuestions.key !== key) ? (
            <Loading />
          ) : (
            <InterruptAnswers
              key={formKey}
              questions={shownQuestions.questions}
              graph={graphNameOf(metadata)}
              refusal={refusal}
              onAnswer={async (answers) =>
                threadAssistant === undefined ? "failed" : answer(threadAssistant, answers)
              }
            />
          )}
          {otherButton}
        </section>
      )}
      {isResumeShown && !isRunFormChosen && (
        <section class="composer asks" aria-label="Resume the thread">
          <div class="bar">
            <StoppedAt state={state} isFailed={watch.record.value?.status === "error"} />
            <button type="button" onClick={onEdit}>
              Edit state
            </button>
            <ActionButton
              class="primary"
              onAct={async () => threadAssistant !== undefined && resume(threadAssistant)}
            >
              Resume
            </ActionButton>
          </div>
          {otherButton}
        </section>
      )}
      {(isRunFormChosen || !(canAnswer || isResumeShown || (isFormKept && !isKeptFormHidden))) && runForm}
    </>
  );
}

/** Focuses the first field of the visible form below the conversation, or its first button if it has no field. */
function focusFirstField(): void {
  const find = (tags: string) =>
    document.querySelector<HTMLElement>(`.composer :is(${tags}):not([hidden] *, :disabled)`);
  (find("textarea, input") ?? find("button, select"))?.focus();
}

/** An answer that the user has sent. */
interface SentAnswer {
  /** Differs from that of other answers. The next one may be sent before this one is known to be accepted. */
  readonly number: number;
  /**
   * `creating`: its run is being created. `checking`: the form waits a short time for a refusal. `running`: there was no
   * refusal in this time; the run may still refuse the answer. `refused`: the question is still pending.
   */
  readonly phase: "creating" | "checking" | "running" | "refused";
  /** The id of the run that gives the answer; null if it has not been created. */
  readonly runId: string | null;
  /** The key of the answered questions ({@link ShownQuestions}). */
  readonly question: string;
}

/** The questions that a form for an answer shows. */
interface ShownQuestions {
  /** Identifies the questions: other questions have another key. */
  readonly key: string;
  /** When the thread asked the questions; null if this is not known. */
  readonly askedAt: string | null;
  readonly questions: readonly InterruptQuestion[];
}

interface NoteProps {
  readonly watch: ThreadSubscription;
  readonly shownQuestions: ShownQuestions;
  /** Answers to these questions whose request got no response; null if there are none. */
  readonly unconfirmedAnswers: JsonRecord | null;
  readonly onDiscard: () => void;
}

/** Says that the questions in the form are no longer pending, and who has answered them or that this answer was given. */
function NoLongerPendingNote({ watch, shownQuestions, unconfirmedAnswers, onDiscard }: NoteProps) {
  const { key, askedAt, questions } = shownQuestions;
  const found = useResource(
    () =>
      findAnsweringRun(
        watch.id,
        questions.map(({ id }) => id),
        askedAt,
      ),
    [key, watch.runs.value[0]?.run_id],
  );
  const { value: run } = found;
  if (found.isReading && run === undefined) return null;
  const isAccepted =
    run !== undefined && unconfirmedAnswers !== null && givesAnswers(run, unconfirmedAnswers);
  return (
    <div class="note" role="alert">
      <span>
        {run === undefined ? (
          "The question is no longer pending: the thread has continued without this answer."
        ) : isAccepted ? (
          // Another person may have given the same answer, so the note does not say whose answer it is.
          "The thread has continued with this answer. Only the server's response was lost."
        ) : (
          <>
            {new AlreadyAnsweredError(run).message} <Age since={run.created_at} isAgo />
          </>
        )}
      </span>
      {run !== undefined && <a href={runHref(watch.id, run.run_id)}>Open run</a>}
      <button type="button" onClick={onDiscard}>
        {isAccepted ? "Continue" : "Discard my answer"}
      </button>
    </div>
  );
}

/** Says at which nodes the thread stopped, and which nodes run if it is resumed. */
function StoppedAt({ state, isFailed }: { readonly state: ThreadState; readonly isFailed: boolean }) {
  const { tasks, next } = state;
  const named = (names: readonly string[]) => <strong>{[...new Set(names)].join(", ")}</strong>;
  const failed = tasks.filter(({ error }) => error !== null).map(({ name }) => name);
  if (failed.length === 0)
    return (
      <p>
        {isFailed ? "Failed before" : "Paused before"} {named(next)}
        {isFailed && " ran"}.
      </p>
    );
  // Tasks that succeeded in parallel to the failed ones do not run again.
  const again = tasks.filter(({ result }) => result === null).map(({ name }) => name);
  return (
    <p>
      {named(failed)} failed.
      {again.length > failed.length && <> Resume runs {named(again)} again.</>}
    </p>
  );
}

export const interruptsOf = ({ tasks }: ThreadState): readonly ApiInterrupt[] =>
  tasks.flatMap(({ interrupts }) => interrupts);
