import { getRun, listThreadRunsSince } from "../api/client.ts";
import { type ApiInterrupt, type FoundRun, isJsonRecord, type Run } from "../api/records.ts";
import { resumeValueOf, extractAnswersById, REFUSED_ANSWER } from "./answer-requests.ts";
import type { Trace } from "./trace.ts";

/** The number of later runs that are searched for the answer to a question. */
const MAX_LATER_RUNS = 50;

/** The run that ended the questions of an earlier run. */
export interface QuestionOutcome {
  readonly run: Run;
  /**
   * How `run` ended the questions. `answer`: it answered them. `input`: it began with a new input, which dropped them.
   * `timer`: a timer of the machine moved it on.
   */
  readonly kind: "answer" | "input" | "timer";
}

/**
 * Returns the questions at which a run stopped, each once: a question of a subgraph is also reported by the tasks
 * around it.
 */
export function questionsAskedIn(trace: Trace): readonly ApiInterrupt[] {
  const asked = [...trace.tasks.values()].filter(({ status }) => status === "interrupted");
  return [...new Map(asked.flatMap(({ interrupts }) => interrupts).map((one) => [one.id, one])).values()];
}

/**
 * Finds the first run after `asking` that ended its questions. Resolves with null if there is none, or if it is not
 * among the next {@link MAX_LATER_RUNS} runs. `pending`: the ids of the questions that the thread waits for now.
 */
export async function findQuestionOutcome(
  asking: Run,
  questions: readonly ApiInterrupt[],
  pending: ReadonlySet<string>,
): Promise<QuestionOutcome | null> {
  const runs = await listThreadRunsSince(asking.thread_id, asking.created_at, MAX_LATER_RUNS);
  const later = runs.slice(runs.findIndex(({ run_id }) => run_id === asking.run_id) + 1);
  let timer: FoundRun | undefined;
  for (const found of later) {
    const { thread_id, run_id, started_at, error, origin, status } = found;
    // A queued run has changed nothing yet, and a refused answer leaves the question as it was.
    if (started_at === null || error?.error === REFUSED_ANSWER) continue;
    if (origin === "timer") {
      // A machine can go on waiting for the same answer after a timer, so a later answer counts more.
      if (status === "success") timer ??= found;
      continue;
    }
    // oxlint-disable-next-line no-await-in-loop -- most often, the first of these runs is the one
    const run = await getRun(thread_id, run_id);
    const answer = resumeValueOf(run);
    const isOther =
      extractAnswersById(answer) !== null &&
      questions.every(({ id }) => !isJsonRecord(answer) || !Object.hasOwn(answer, id));
    if (answer !== undefined && !isOther) return { run, kind: "answer" };
    if (answer === undefined && (run.kwargs.input ?? null) !== null) return { run, kind: "input" };
  }
  if (timer === undefined || questions.some(({ id }) => pending.has(id))) return null;
  return { run: await getRun(timer.thread_id, timer.run_id), kind: "timer" };
}
