import type { Ledger, RunEntry, Violation } from "../ledger.ts";

/** A run as the server reports it now. */
export interface RunNow {
  readonly entry: RunEntry;
  readonly status: string | undefined;
}

export interface ThreadNow {
  readonly thread: string;
  /** undefined: the server does not know the run. */
  readonly status: string | undefined;
  readonly log: readonly string[];
}

const TERMINAL = new Set(["success", "error", "timeout", "interrupted"]);

/** The ledger's status of a run that was rolled back. */
export const GONE = "gone";

/** I1: every acknowledged run exists and has its acknowledged status. */
export function nothingIsLost(
  ledger: Ledger,
  runs: readonly RunNow[],
  threads: readonly ThreadNow[],
): Violation[] {
  const found: Violation[] = [];
  const say = (message: string, evidence: unknown) => found.push({ invariant: "I1", message, evidence });
  const logs = new Map(threads.map((now) => [now.thread, new Set(now.log)]));
  for (const { thread, status } of threads) {
    if (status === undefined) {
      say(`thread ${thread} was acknowledged and is gone`, ledger.threads.get(thread));
    }
  }
  for (const { entry, status } of runs) {
    const known = describe(entry);
    if (entry.status === GONE && status !== undefined) {
      say(`run ${entry.run} had been taken back and is there again, ${status}`, known);
    }
    if (ledger.mayVanish(entry)) continue;
    if (status === undefined) {
      say(`run ${entry.run} was acknowledged and is gone`, known);
      continue;
    }
    if (entry.status !== undefined && entry.status !== status) {
      say(`run ${entry.run} had ended as ${entry.status} and is now ${status}`, known);
    }
    if ((status === "error" && !ledger.mayFail(entry)) || status === "timeout") {
      say(`run ${entry.run} ended as ${status}, though nothing in it can fail`, known);
    }
    if (status === "interrupted" && !ledger.mayBeCut(entry)) {
      say(`run ${entry.run} was stopped, though nobody had asked for it`, known);
    }
    const log = logs.get(entry.thread);
    const missing = log === undefined ? [] : [...entry.shown].filter((line) => !log.has(line));
    if (missing.length > 0) {
      say(`run ${entry.run} had shown work that the state does not hold any more: ${missing.join(", ")}`, {
        ...known,
        state: [...(log ?? [])].slice(-12),
      });
    }
  }
  return found;
}

/** I3: when no work remains, no thread is busy and every run has ended. */
export function everythingRests(
  runs: readonly RunNow[],
  threads: readonly ThreadNow[],
  within: number,
): Violation[] {
  const found: Violation[] = [];
  for (const { thread, status } of threads) {
    if (status === "busy") {
      found.push({
        invariant: "I3",
        message: `thread ${thread} is still busy ${within} ms after the last request`,
        evidence: runs.filter((now) => now.entry.thread === thread && !TERMINAL.has(now.status ?? "")),
      });
    }
  }
  for (const { entry, status } of runs) {
    if (status === undefined || TERMINAL.has(status)) continue;
    found.push({
      invariant: "I3",
      message: `run ${entry.run} is still ${status} ${within} ms after the last request`,
      evidence: describe(entry),
    });
  }
  return found;
}

function describe(entry: RunEntry) {
  const { thread, run, what, sent, acknowledged, ended, status } = entry;
  return {
    thread,
    run,
    what,
    sent,
    acknowledged,
    ended,
    status,
    events: entry.streams.map((stream) => ({ how: stream.how, last: stream.frames.at(-1)?.id })),
  };
}
