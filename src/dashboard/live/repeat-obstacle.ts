import type { ApiInterrupt, Run, Thread } from "../api/records.ts";
import { resumeValueOf, extractAnswersById } from "./answer-requests.ts";

/**
 * Why a run cannot be run again now. `answer`: it answered a question that is no longer pending. `continuation`: it
 * continued its thread, which now has no next node.
 */
export type RepeatObstacle = "answer" | "continuation";

/** Returns whether the run had neither an input nor a command, so that it continued its thread. */
const isContinuation = ({ kwargs: { input = null, command = null } }: Run): boolean =>
  input === null && command === null;

/**
 * Returns whether the state of the thread decides if the run can be run again. True for a run that answered a question
 * or continued its thread.
 */
export const dependsOnThread = (run: Run): boolean => resumeValueOf(run) !== undefined || isContinuation(run);

/** Returns why a run cannot be run again now, or null if it can. */
export function findRepeatObstacle(
  run: Run,
  { status, interrupts }: Pick<Thread, "status" | "interrupts">,
): RepeatObstacle | null {
  const answer = resumeValueOf(run);
  if (answer !== undefined) {
    const waiting = Object.values(interrupts).flat();
    const isById = extractAnswersById(answer) !== null;
    const isAsked = waiting.some(({ id }) => !isById || Object.hasOwn(answer as object, id));
    return isAsked ? null : "answer";
  }
  return isContinuation(run) && status !== "interrupted" && status !== "error" ? "continuation" : null;
}

/**
 * Returns the questions of a thread that are dropped if the run is run again: none if the new run answers them, or
 * continues the thread and asks them again.
 */
export const questionsLostByRepeat = (
  run: Run,
  thread: Pick<Thread, "status" | "interrupts">,
): readonly ApiInterrupt[] => (dependsOnThread(run) ? [] : questionsLostByInput(thread));

/** Returns the questions of a thread that a run with a new input drops. */
export const questionsLostByInput = ({
  status,
  interrupts,
}: Pick<Thread, "status" | "interrupts">): readonly ApiInterrupt[] =>
  status === "interrupted" ? Object.values(interrupts).flat() : [];

/**
 * Returns whether the new run will be queued, and will drop each question that the run in progress asks before it ends.
 * `thread`: as it is before the run is run again.
 */
export const isRepeatQueued = (run: Run, { status }: Pick<Thread, "status">): boolean =>
  status === "busy" && !dependsOnThread(run);

/**
 * Returns the text of the notice that a run was created, which will drop each question that a run before it asks.
 * `noun`: what the user calls the run.
 */
export const createdRunNotice = (isQueued: boolean, noun: "run" | "replay" = "run"): string => {
  const name = noun === "run" ? "New run" : "Replay";
  return isQueued ? `${name} queued. ${QUEUED_RUN_WARNING}` : `${name} started.`;
};

/** What the user must know of a run that is queued and has an input, or starts from an earlier state. */
export const QUEUED_RUN_WARNING = "A queued run drops each question that the run before it asks.";

/** The text for the user about each obstacle. */
export const REPEAT_OBSTACLE_TEXTS: { readonly [O in RepeatObstacle]: string } = {
  answer: "The question that this run answered is no longer pending",
  continuation: "The thread has no next node to continue from",
};
