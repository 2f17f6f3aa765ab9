import { getRun, listThreadRunsSince } from "../api/client.ts";
import { type ApiInterrupt, isJsonRecord, type Run } from "../api/records.ts";
import { resumeValueOf, extractAnswersById } from "./answer-requests.ts";
import type { Trace } from "./trace.ts";

/** The number of later runs that are searched for the answer to a question. */
const MAX_LATER_RUNS = 50;

/** The run that answered or dropped the questions of an earlier run. */
export interface QuestionOutcome {
  readonly run: Run;
  /** Whether `run` answered. If false, it began with a new input, which dropped the questions. */
  readonly isAnswer: boolean;
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
 * Finds the first run after `asking` that answered one of its questions, or dropped them. Resolves with null if there
 * is none, or if it is not among the next {@link MAX_LATER_RUNS} runs.
 */
export async function findQuestionOutcome(
  asking: Run,
  questions: readonly ApiInterrupt[],
): Promise<QuestionOutcome | null> {
  const runs = await listThreadRunsSince(asking.thread_id, asking.created_at, MAX_LATER_RUNS);
  const later = runs.slice(runs.findIndex(({ run_id }) => run_id === asking.run_id) + 1);
  for (const { thread_id, run_id, started_at, error } of later) {
    // A queued run has changed nothing yet, and a refused answer leaves the question as it was.
    if (started_at === null || error?.error === "InvalidResumeError") continue;
    // oxlint-disable-next-line no-await-in-loop -- most often, the first of these runs is the one
    const run = await getRun(thread_id, run_id);
    const answer = resumeValueOf(run);
    const isOther =
      extractAnswersById(answer) !== null &&
      questions.every(({ id }) => !isJsonRecord(answer) || !Object.hasOwn(answer, id));
    if (answer !== undefined && !isOther) return { run, isAnswer: true };
    if (answer === undefined && (run.kwargs.input ?? null) !== null) return { run, isAnswer: false };
  }
  return null;
}
