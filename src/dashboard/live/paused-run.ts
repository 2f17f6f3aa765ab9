import { type ApiInterrupt, hasRunEnded, type Run, type Thread } from "../api/records.ts";

/** A run that has ended because of a question or a breakpoint. The API reports its status as `success`. */
export interface PausedRun {
  readonly run: string;
  /** The questions that wait for answers; empty if the run paused at a breakpoint. */
  readonly questions: readonly ApiInterrupt[];
}

/**
 * Returns the run whose question or breakpoint makes a thread wait. Null if the thread does not wait, or if its newest
 * run has not ended. `runs`: the thread's runs, newest first.
 */
export function pausedRunOf({ status, interrupts }: Thread, runs: readonly Run[]): PausedRun | null {
  const [newest] = runs;
  if (status !== "interrupted" || newest === undefined || !hasRunEnded(newest)) return null;
  return { run: newest.run_id, questions: Object.values(interrupts).flat() };
}

export const pauseLabel = ({ questions }: PausedRun): string =>
  PAUSE_LABELS[questions.length > 0 ? "question" : "breakpoint"];

export const PAUSE_LABELS = { question: "waiting for an answer", breakpoint: "paused" } as const;
