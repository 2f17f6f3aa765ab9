import { createRun, findRuns, getThread, listPendingQuestions, getRun, listRuns } from "../api/client.ts";
import {
  type InterruptQuestion,
  hasRunEnded,
  isJsonRecord,
  type JsonRecord,
  type Run,
} from "../api/records.ts";
import { ApiKeyRequired, RequestError } from "../api-errors.ts";
import { resumeRequestOf } from "./repeat-and-resume-requests.ts";

/** The name of the error of a run whose answer does not fit the question, which then stays pending. */
export const INVALID_RESUME_ERROR = "InvalidResumeError";
/** The number of a thread's latest runs that are searched for the answer to a question. */
const MAX_SEARCHED_RUNS = 20;
/**
 * Milliseconds before each check whether the run that gives an answer has ended. Few checks are enough, because an
 * answer that does not fit its schema ends the run at once.
 */
const CHECK_DELAYS_MS = [50, 100, 200, 400, 800];
/** The delays if none of the questions has a schema. The server can still refuse the answer, but rarely does. */
const CHECK_DELAYS_WITHOUT_SCHEMA_MS = CHECK_DELAYS_MS.slice(0, 2);

/** Pending questions of a thread. */
export interface PendingQuestions {
  readonly list: readonly InterruptQuestion[];
  /** Why the latest answer was refused; null if there was no answer, or if it was accepted. */
  readonly refusalText: string | null;
}

/** Reads the pending questions of a thread, and why the latest answer to one of the questions `ids` was refused. */
export async function readPendingQuestions(
  thread: string,
  ids: readonly string[],
): Promise<PendingQuestions> {
  const [list, refusalText] = await Promise.all([
    listPendingQuestions(thread),
    findRefusalText(thread, ids).catch(() => null),
  ]);
  return { list, refusalText };
}

/** What is wrong with a part of an answer. */
export interface AnswerFault {
  /** The path of the part: names of members and indexes of lists, joined by dots. Empty for the whole answer. */
  readonly at: string;
  readonly text: string;
}

/** What became of a request with answers: they were accepted, or not sent, or refused for a reason. */
export type AnswerSubmission = "accepted" | "failed" | AnswerRefusalReason;

/** Why an answer was refused. */
export interface AnswerRefusalReason {
  readonly text: string;
  /** The faults that `text` lists; empty if the server has named none. */
  readonly faults: readonly AnswerFault[];
}

/** Matches the beginning of a refusal, with ids and names that say nothing to the user who reads it below the question. */
const REFUSAL_PREFIX = /^The answer to interrupt [0-9a-f]{32} of node ".*?" was refused: (?:resume: )?/;

/** Matches the path of an answer in a request: `command.resume`, or `command.resume.` and the id of a question. */
const ANSWER_PATH = /^command\.resume(?:\.[0-9a-f]{32})?(?=[.[]|$)/;

/**
 * Reads from a failed request why the server has refused the answer in it. Returns null if the request has failed for
 * another reason. Requests with answers to machines are refused in this way, because machines validate an answer before
 * its run begins. The paths of the faults begin at the answer, not at the request.
 */
export function answerRefusalOf(cause: unknown): AnswerRefusalReason | null {
  if (!(cause instanceof RequestError)) return null;
  const { fields } = cause;
  if (fields.length === 0 || fields.some(({ at }) => !ANSWER_PATH.test(at))) return null;
  const faults = fields.map(({ at, message }) => ({
    at: at
      .replace(ANSWER_PATH, "")
      .replaceAll(/\[(\d+)\]/g, ".$1")
      .replace(/^\./, ""),
    text: message,
  }));
  return { text: faults.map(answerFaultText).join("; "), faults };
}

/** Whether the server may have accepted the answer in a failed request, although no response has said so. */
export const isResponseLost = (cause: unknown): boolean =>
  // A proxy responds with a 5xx status if the server does not answer it.
  cause instanceof RequestError
    ? cause.status >= 500
    : !(cause instanceof ApiKeyRequired || cause instanceof AlreadyAnsweredError);

/** Returns a refusal of which only the text is known; null if `text` is null. */
export const answerRefusalFromText = (text: string | null): AnswerRefusalReason | null =>
  text === null ? null : { text, faults: [] };

/** Formats a fault as its path and its text. */
export const answerFaultText = ({ at, text }: AnswerFault): string => (at === "" ? text : `${at}: ${text}`);

/** The error that a question is no longer pending. Usually somebody else has answered it. */
export class AlreadyAnsweredError extends Error {
  /** The run that answered the question; undefined if it is not known which run did. */
  readonly run: Run | undefined;

  constructor(run: Run | undefined) {
    super(
      run === undefined
        ? "This question is no longer pending: the thread has continued without this answer"
        : `${userNameOfRun(run) ?? "Somebody else"} has already answered this question`,
    );
    this.run = run;
  }
}

/**
 * Answers pending questions of a thread by a new run, with the settings of the thread's newest run. `answers`: the
 * answers by the ids of their questions. Without ids, a late answer would go to the thread's next question. `askedAt`:
 * when the questions were asked; null if this is not known.
 * @throws AlreadyAnsweredError if another run has answered one of the questions
 */
export async function sendAnswers(
  thread: string,
  assistant: string,
  answers: JsonRecord,
  askedAt: string | null,
): Promise<Run> {
  try {
    const [newest] = await listRuns(thread, 1);
    const settings = newest === undefined ? { assistant_id: assistant } : resumeRequestOf(newest);
    // Another question of the same thread may just have been answered. `enqueue` makes this answer wait for that run.
    const request = { ...settings, command: { resume: answers }, multitask_strategy: "enqueue" };
    return await createRun(thread, request);
  } catch (cause) {
    if (!(cause instanceof RequestError) || (cause.status !== 409 && cause.status !== 422)) throw cause;
    const run = await findAnsweringRun(thread, Object.keys(answers), askedAt);
    throw run === undefined ? cause : new AlreadyAnsweredError(run);
  }
}

/** What is known a short time after an answer was sent. */
export interface AnswerOutcome {
  /** Why the answer was refused; null if it was accepted, or if this is not known yet. */
  readonly refusalText: string | null;
  /** Whether the run has accepted the answer and then failed. */
  readonly hasFailed: boolean;
}

/** Waits for the end of the run that gives an answer, but only a short time. */
export async function waitForAnswerOutcome(
  run: Run,
  questions: readonly Pick<InterruptQuestion, "id" | "response_schema">[],
): Promise<AnswerOutcome> {
  const hasSchema = questions.some(({ response_schema }) => response_schema !== null);
  const ids = questions.map(({ id }) => id);
  for (const ms of hasSchema ? CHECK_DELAYS_MS : CHECK_DELAYS_WITHOUT_SCHEMA_MS) {
    // oxlint-disable-next-line no-await-in-loop -- polls until the run has ended
    await new Promise((resolve) => setTimeout(resolve, ms));
    // oxlint-disable-next-line no-await-in-loop -- polls until the run has ended
    const { status } = await getRun(run.thread_id, run.run_id);
    if (!hasRunEnded({ status })) continue;
    // oxlint-disable-next-line no-await-in-loop -- read once, after the run has ended
    const refusalText = await findRefusalText(run.thread_id, ids);
    return { refusalText, hasFailed: refusalText === null && (status === "error" || status === "timeout") };
  }
  return { refusalText: null, hasFailed: false };
}

/**
 * Returns the error of a thread's newest run if that run failed because an answer to one of these questions does not
 * fit the question's schema; otherwise null.
 */
async function findRefusalText(thread: string, ids: readonly string[]): Promise<string | null> {
  const [latest] = await listRuns(thread, 1);
  if (latest?.status !== "error") return null;
  const filter = { thread_id: thread, status: "error", error: INVALID_RESUME_ERROR } as const;
  const [refused] = (await findRuns(filter, 1, null)).runs;
  const message = refused?.run_id === latest.run_id ? (refused.error?.message ?? "") : "";
  if (!ids.some((id) => message.includes(id))) return null;
  return `The answer was refused: ${message.replace(REFUSAL_PREFIX, "")}`;
}

/**
 * Returns the newest run that has answered one of these questions with an answer that was not refused. Returns undefined
 * if none of the {@link MAX_SEARCHED_RUNS} latest runs has, or if it is not known which of them has. `askedAt`: when the
 * questions were asked; null if this is not known.
 */
export async function findAnsweringRun(
  thread: string,
  ids: readonly string[],
  askedAt: string | null,
): Promise<Run | undefined> {
  const [runs, { runs: refused }] = await Promise.all([
    listRuns(thread, MAX_SEARCHED_RUNS),
    findRuns({ thread_id: thread, status: "error", error: INVALID_RESUME_ERROR }, MAX_SEARCHED_RUNS, null),
  ]);
  const answers = runs
    .filter(({ run_id }) => refused.every((found) => found.run_id !== run_id))
    .map((run) => [run, resumeValueOf(run)] as const)
    .filter(([, resume]) => resume !== undefined);
  const byId = answers.find(
    ([, resume]) => isJsonRecord(resume) && ids.some((id) => Object.hasOwn(resume, id)),
  );
  if (byId !== undefined) return byId[0];
  // Other clients may answer without the ids of questions. If several runs have done so since the questions were asked,
  // it is not known which of them answered these questions.
  const [run, ...others] = answers
    .filter(([{ created_at }, resume]) => askedAt !== null && created_at > askedAt && isWithoutIds(resume))
    .map(([answer]) => answer);
  return others.length === 0 ? run : undefined;
}

/** What became of answers whose request got no response. */
export type LostAnswerOutcome =
  /** `stored`: this run gives the same answers. `other`: it gives other ones, so it is somebody else's. */
  | { readonly kind: "stored" | "other"; readonly run: Run }
  /** `pending`: the questions are still pending. `gone`: they are not, and it is not known which run ended them. */
  | { readonly kind: "pending" | "gone" };

/** Reads what became of answers whose request got no response. `answers`: by the ids of their questions. */
export async function findLostAnswerOutcome(
  thread: string,
  answers: JsonRecord,
  askedAt: string | null,
): Promise<LostAnswerOutcome> {
  const ids = Object.keys(answers);
  const run = await findAnsweringRun(thread, ids, askedAt);
  if (run !== undefined) return { kind: givesAnswers(run, answers) ? "stored" : "other", run };
  const { interrupts } = await getThread(thread);
  const pending = new Set(Object.values(interrupts).flatMap((asked) => asked.map(({ id }) => id)));
  return { kind: ids.every((id) => pending.has(id)) ? "pending" : "gone" };
}

/**
 * Returns whether a run gives exactly these answers. Another person may have given the same ones, which makes no
 * difference to the thread.
 */
export const givesAnswers = (run: Run, answers: JsonRecord): boolean =>
  JSON.stringify(resumeValueOf(run)) === JSON.stringify(answers);

/** Returns a run's `resume` value, which contains its answers; undefined if the run does not answer a question. */
export const resumeValueOf = ({ kwargs: { command } }: Run): unknown =>
  isJsonRecord(command) ? (command["resume"] ?? undefined) : undefined;

/** Returns the answers in a `resume` value whose keys are ids of questions; null for any other value. */
export function extractAnswersById(resume: unknown): readonly unknown[] | null {
  const isById = isJsonRecord(resume) && Object.keys(resume).every((id) => /^[0-9a-f]{32}$/.test(id));
  return isById && Object.keys(resume).length > 0 ? Object.values(resume) : null;
}

const isWithoutIds = (resume: unknown): boolean => extractAnswersById(resume) === null;

/** Returns the name of the user who started a run; null if the server authenticates no users. */
export function userNameOfRun(run: Run): string | null {
  const { configurable } = run.kwargs.config ?? {};
  return isJsonRecord(configurable) ? userNameIn(configurable) : null;
}

/** Returns the name of the user in a run's `configurable` or a state's metadata; null if it contains none. */
export function userNameIn({ langgraph_auth_user_id: identity, user_id: id }: JsonRecord): string | null {
  const name = [identity, id].find((one) => typeof one === "string" && one !== "");
  return typeof name === "string" ? name : null;
}
