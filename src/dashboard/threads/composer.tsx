import { useState } from "preact/hooks";
import { createRun } from "../api/client.ts";
import { type ApiInterrupt, isDone, type JsonRecord, type ThreadState } from "../api/records.ts";
import { runAction } from "../app/notices.ts";
import { readQuestions, sendAnswers, waitForRefusal } from "../live/answering.ts";
import { resumeRequestOf } from "../live/run-requests.ts";
import type { ThreadSubscription } from "../live/thread-subscription.ts";
import { ActionButton } from "../components/action-button.tsx";
import { useAssistantList } from "../components/use-assistants.ts";
import { useResource } from "../components/use-resource.ts";
import { InterruptAnswers } from "./interrupt-answers.tsx";
import { graphOf } from "./thread-title.ts";
import { StateEditor } from "./state-editor.tsx";
import { RunForm } from "./run-form.tsx";

/** The input area: an answer if a question is pending, else the input of a new run. */
export function Composer({
  watch,
  state,
}: {
  readonly watch: ThreadSubscription;
  readonly state: ThreadState;
}) {
  const list = useAssistantList();
  const assistants = list.value ?? [];
  const [isOther, setOther] = useState(false);
  const [isEditing, setEditing] = useState(false);
  const { metadata = {} } = watch.record.value ?? {};
  /**
   * The id of the run that gives the answers, until it is known whether they are accepted; true: the run is being
   * created; false: there is none.
   */
  const [answering, setAnswering] = useState<string | boolean>(false);
  const unfinished = watch.runs.value.filter((run) => !isDone(run));
  const isBusy = unfinished.length > 0;
  // A question and the user's input stay visible until the answer is accepted, because the user may have to correct it.
  const isWaiting = answering === true || unfinished.every(({ run_id }) => run_id === answering);
  const asked = isWaiting ? interruptsOf(state) : [];
  // Reads each open question from the server, for the schema of its answer. If that fails, the user enters the answer as JSON.
  const ids = asked.map(({ id }) => id);
  const key = ids.join();
  const questions = useResource(
    async () => ({
      key,
      ...(asked.length === 0 ? { list: [], refusal: null } : await readQuestions(watch.id, ids)),
    }),
    [key],
  );
  // The thread's assistant may have been deleted; the graph's default assistant takes its place.
  const isDeleted =
    list.value !== undefined &&
    assistants.every(({ assistant_id }) => assistant_id !== metadata["assistant_id"]);
  const own = [isDeleted ? null : metadata["assistant_id"], metadata["graph_id"]].find(
    (one) => typeof one === "string",
  ) as string | undefined;
  const start = (request: JsonRecord) => act(() => createRun(watch.id, request));
  const resume = (assistant: string) => {
    // The runs are sorted by their creation, newest first. After a copy or an edit of the state, there may be none.
    const [newest] = watch.runs.value;
    return start(newest === undefined ? { assistant_id: assistant, input: null } : resumeRequestOf(newest));
  };
  const act = (work: () => Promise<unknown>) =>
    runAction(async () => {
      await work();
      setOther(false);
      watch.refresh();
    });
  const answer = async (assistant: string, answers: JsonRecord): Promise<string | null> => {
    let refusal: string | null = null;
    setAnswering(true);
    const isSent = await act(async () => {
      const run = await sendAnswers(watch.id, assistant, answers);
      setAnswering(run.run_id);
      watch.refresh();
      refusal = await waitForRefusal(run, ids).catch(() => null);
    });
    // After a refusal, `answering` keeps the run's id: the page learns only from its next read that the run has ended.
    if (!isSent || refusal === null) setAnswering(false);
    return refusal;
  };
  const isPaused = isWaiting && state.next.length > 0;
  if (isPaused && !isOther && own !== undefined)
    return (
      <section class="composer asks" aria-label="The run waits for you">
        {asked.length > 0 ? (
          questions.error === null && questions.value?.key !== key ? (
            <p class="dim" aria-busy="true">
              Reading…
            </p>
          ) : (
            <InterruptAnswers
              key={key}
              questions={asked.map((one) => ({
                ...one,
                response_schema:
                  questions.value?.list.find(({ id }) => id === one.id)?.response_schema ?? null,
              }))}
              graph={graphOf(metadata)}
              refusal={questions.value?.refusal ?? null}
              onAnswer={(answers) => answer(own, answers)}
            />
          )
        ) : (
          <div class="bar">
            <StoppedAt state={state} isFailed={watch.record.value?.status === "error"} />
            <button type="button" onClick={() => setEditing(true)}>
              Edit state
            </button>
            <ActionButton class="primary" onAct={() => resume(own)}>
              Resume
            </ActionButton>
          </div>
        )}
        <button type="button" class="quiet link" onClick={() => setOther(true)}>
          Start another run instead
        </button>
        {isEditing && (
          <StateEditor
            thread={watch.id}
            assistant={own}
            values={state.values}
            checkpoint={state.checkpoint?.checkpoint_id ?? ""}
            onStored={() => watch.refresh()}
            onClose={() => setEditing(false)}
          />
        )}
      </section>
    );
  return (
    <section class="composer" aria-label="Start a run">
      <RunForm
        assistants={assistants}
        // Until the assistants are read, it is not known whether the thread's one is still there.
        initial={list.value === undefined && list.error === null ? undefined : own}
        thread={watch.id}
        isBusy={isBusy}
        isCompact={watch.runs.value.length > 0}
        submit={isBusy ? "Add run" : "Run"}
        onRun={start}
      />
      {isOther && isPaused && (
        <button type="button" class="quiet link" onClick={() => setOther(false)}>
          Back to the pending question
        </button>
      )}
    </section>
  );
}

/** Shows where the thread stopped, and which nodes run if it continues. */
function StoppedAt({ state, isFailed }: { readonly state: ThreadState; readonly isFailed: boolean }) {
  const { tasks, next } = state;
  const named = (names: readonly string[]) => <strong>{[...new Set(names)].join(", ")}</strong>;
  const broken = tasks.filter(({ error }) => error !== null).map(({ name }) => name);
  if (broken.length === 0)
    return (
      <p>
        {isFailed ? "It failed before" : "It pauses before"} {named(next)}.
      </p>
    );
  // Parallel tasks may have succeeded: they do not run again.
  const again = tasks.filter(({ result }) => result === null).map(({ name }) => name);
  return (
    <p>
      {named(broken)} failed.
      {again.length > broken.length && <> Resuming runs {named(again)} again.</>}
    </p>
  );
}

export const interruptsOf = ({ tasks }: ThreadState): readonly ApiInterrupt[] =>
  tasks.flatMap(({ interrupts }) => interrupts);
