import { createRun, findRuns, getQuestions, getRun, listRuns } from "../api/client.ts";
import {
  type InterruptQuestion,
  hasRunEnded,
  isJsonRecord,
  type JsonRecord,
  type Run,
} from "../api/records.ts";
import { RequestError } from "../api-errors.ts";
import { resumeRequestOf } from "./repeat-and-resume-requests.ts";

/** The number of latest runs that are searched for the one that gives an answer. */
const MAX_RUNS = 20;
/**
 * Milliseconds before each check of the run that gives an answer. Few checks are enough: an answer that does not fit
 * its schema ends the run at once.
 */
const LOOKS_MS = [50, 100, 200, 400, 800];
/** The checks if no question has a schema that is known here. The answer may still be refused, but hardly ever is. */
const LOOKS_WITHOUT_SCHEMA_MS = LOOKS_MS.slice(0, 2);

/** Questions of a thread, with the schemas of their answers. */
export interface Questions {
  readonly list: readonly InterruptQuestion[];
  /** The reason why the last answer was refused; null: there was no answer, or it was accepted. */
  readonly refusal: string | null;
}

/** Reads the pending questions of a thread, and why the last answer was refused. `ids`: the questions that are shown. */
export async function readQuestions(thread: string, ids: readonly string[]): Promise<Questions> {
  const [list, refusal] = await Promise.all([
    getQuestions(thread),
    findRefusal(thread, ids).catch(() => null),
  ]);
  return { list, refusal };
}

/** Thrown when somebody else has answered the question, or when the thread has moved past it. */
export class AlreadyAnswered extends Error {
  /** The run that gave the other answer, if it is known. */
  readonly run: Run | undefined;

  constructor(run: Run | undefined) {
    super(`${(run && userOfRun(run)) ?? "Somebody else"} has already answered this question`);
    this.run = run;
  }
}

/**
 * Answers questions of a thread. The run that gives the answers has the settings of the thread's newest run, which asked.
 * Each answer names its question by id: otherwise, a late answer would be given to the
 * thread's next question. `since`: when they were asked, if it is known.
 * @throws AlreadyAnswered if another run has answered a question
 */
export async function sendAnswers(
  thread: string,
  assistant: string,
  answers: JsonRecord,
  since: string | null,
): Promise<Run> {
  try {
    const [newest] = await listRuns(thread, 1);
    const settings = newest === undefined ? { assistant_id: assistant } : resumeRequestOf(newest);
    // Another question of the same thread may just have been answered: `enqueue` lets this answer wait for that run.
    const request = { ...settings, command: { resume: answers }, multitask_strategy: "enqueue" };
    return await createRun(thread, request);
  } catch (cause) {
    if (!(cause instanceof RequestError) || (cause.status !== 409 && cause.status !== 422)) throw cause;
    const run = await findAnswer(thread, Object.keys(answers), since);
    throw run === undefined ? cause : new AlreadyAnswered(run);
  }
}

/**
 * Waits a short time for the end of the run that answers these questions. Resolves with the reason if the answers were
 * refused; null: they were accepted, or the run has not ended in that time.
 */
export async function waitForRefusal(
  run: Run,
  questions: readonly Pick<InterruptQuestion, "id" | "response_schema">[],
): Promise<string | null> {
  const hasSchema = questions.some(({ response_schema }) => response_schema !== null);
  const ids = questions.map(({ id }) => id);
  for (const ms of hasSchema ? LOOKS_MS : LOOKS_WITHOUT_SCHEMA_MS) {
    // oxlint-disable-next-line no-await-in-loop -- polls until the run has ended
    await new Promise((resolve) => setTimeout(resolve, ms));
    // oxlint-disable-next-line no-await-in-loop -- polls until the run has ended
    if (hasRunEnded(await getRun(run.thread_id, run.run_id))) return findRefusal(run.thread_id, ids);
  }
  return null;
}

/**
 * Returns the error of a thread's newest run if the run failed because an answer to one of these questions does not fit
 * its schema; null if not.
 */
async function findRefusal(thread: string, ids: readonly string[]): Promise<string | null> {
  const [latest] = await listRuns(thread, 1);
  if (latest?.status !== "error") return null;
  const filter = { thread_id: thread, status: "error", error: "InvalidResumeError" } as const;
  const [refused] = (await findRuns(filter, 1, null)).runs;
  const message = refused?.run_id === latest.run_id ? (refused.error?.message ?? "") : "";
  return ids.some((id) => message.includes(id)) ? message : null;
}

/**
 * Returns the newest run that answers one of these questions; undefined if none of the latest runs does, or if it is not
 * certain which one. `since`: when the questions were asked; null: not known.
 */
export async function findAnswer(
  thread: string,
  ids: readonly string[],
  since: string | null,
): Promise<Run | undefined> {
  const runs = await listRuns(thread, MAX_RUNS);
  const answers = runs
    .map((run) => [run, answerOfRun(run)] as const)
    .filter(([, resume]) => resume !== undefined);
  const byId = answers.find(
    ([, resume]) => isJsonRecord(resume) && ids.some((id) => Object.hasOwn(resume, id)),
  );
  if (byId !== undefined) return byId[0];
  // Other clients may answer without the ids of questions. Such an answer may be that to another question, unless it
  // is the only one since these were asked.
  const [run, ...others] = answers
    .filter(([{ created_at }, resume]) => since !== null && created_at > since && isWithoutIds(resume))
    .map(([answer]) => answer);
  return others.length === 0 ? run : undefined;
}

/** Returns the `resume` value of a run, which has its answers; undefined if the run answers nothing. */
export const answerOfRun = ({ kwargs: { command } }: Run): unknown =>
  isJsonRecord(command) ? (command["resume"] ?? undefined) : undefined;

/** Returns the answers in a `resume` value that maps ids of questions to answers; null for any other value. */
export function extractAnswersById(resume: unknown): readonly unknown[] | null {
  const isById = isJsonRecord(resume) && Object.keys(resume).every((id) => /^[0-9a-f]{32}$/.test(id));
  return isById && Object.keys(resume).length > 0 ? Object.values(resume) : null;
}

const isWithoutIds = (resume: unknown): boolean => extractAnswersById(resume) === null;

/** Returns the user who started a run; null where the server knows no users. */
export function userOfRun(run: Run): string | null {
  const { configurable } = run.kwargs.config ?? {};
  return isJsonRecord(configurable) ? userNamedIn(configurable) : null;
}

/** Returns the user whom a run's `configurable` or a state's metadata names; null where the server knows no users. */
export function userNamedIn({ langgraph_auth_user_id: identity, user_id: id }: JsonRecord): string | null {
  const name = [identity, id].find((one) => typeof one === "string" && one !== "");
  return typeof name === "string" ? name : null;
}
