import { type Interrupt, isDone, type Run, type Thread } from "../api/records.ts";

/** A run that has ended at a question, or at a breakpoint: the API calls it a success. */
export interface Waiting {
  readonly run: string;
  /** None: it pauses. */
  readonly questions: readonly Interrupt[];
}

/** The run of a thread that waits for a person. `runs`: the newest first. */
export function waitingOf({ status, interrupts }: Thread, runs: readonly Run[]): Waiting | null {
  const [newest] = runs;
  if (status !== "interrupted" || newest === undefined || !isDone(newest)) return null;
  return { run: newest.run_id, questions: Object.values(interrupts).flat() };
}

export const questionText = ({ questions }: Waiting): string =>
  questions.length > 0 ? "awaits an answer" : "paused";
