import { createRun, listRuns } from "../api/client.ts";
import { isJsonRecord, type JsonRecord, type Run } from "../api/records.ts";
import { RequestError } from "../request-errors.ts";

/** The number of latest runs among which the run with an answer is looked for. */
const MAX_RUNS = 20;

/** Somebody else has answered the question, or the thread has moved past it. */
export class AlreadyAnswered extends Error {
  /** The run that gave the other answer, if it is known. */
  readonly run: Run | undefined;

  constructor(run: Run | undefined) {
    super(`${answererOf(run)} has answered it already.`);
    this.run = run;
  }
}

/**
 * Answers questions of a thread, by their ids: without them an answer that comes late would be given to the thread's next question.
 * @throws AlreadyAnswered
 */
export async function sendAnswers(thread: string, assistant: string, answers: JsonRecord): Promise<Run> {
  try {
    // Another question of the same thread may just have been answered: this answer waits for that run.
    const request = { assistant_id: assistant, command: { resume: answers }, multitask_strategy: "enqueue" };
    return await createRun(thread, request);
  } catch (cause) {
    if (!(cause instanceof RequestError) || (cause.status !== 409 && cause.status !== 422)) throw cause;
    const run = await findAnswer(thread, Object.keys(answers));
    throw run === undefined ? cause : new AlreadyAnswered(run);
  }
}

/** Returns the newest run that answers one of these questions; undefined if none of the latest runs does. */
export async function findAnswer(thread: string, ids: readonly string[]): Promise<Run | undefined> {
  const runs = await listRuns(thread, MAX_RUNS);
  const answers = runs
    .map((run) => [run, resumeOf(run)] as const)
    .filter(([, resume]) => resume !== undefined);
  const byId = answers.find(
    ([, resume]) => isJsonRecord(resume) && ids.some((id) => Object.hasOwn(resume, id)),
  );
  // Other clients answer without an id.
  const [run] = byId ?? answers.find(([, resume]) => answersWithIds(resume) === null) ?? [];
  return run;
}

const resumeOf = ({ kwargs: { command } }: Run): unknown =>
  isJsonRecord(command) ? (command["resume"] ?? undefined) : undefined;

/** Returns the answers of a `resume` that names its questions; null if it does not. */
export function answersWithIds(resume: unknown): readonly unknown[] | null {
  const isById = isJsonRecord(resume) && Object.keys(resume).every((id) => /^[0-9a-f]{32}$/.test(id));
  return isById && Object.keys(resume).length > 0 ? Object.values(resume) : null;
}

/** Returns the user who started a run, where the server knows users. */
function answererOf(run: Run | undefined): string {
  const { configurable } = run?.kwargs.config ?? {};
  const { langgraph_auth_user_id: identity, user_id: id } = isJsonRecord(configurable) ? configurable : {};
  const name = [identity, id].find((one) => typeof one === "string" && one !== "");
  return typeof name === "string" ? name : "Somebody else";
}
