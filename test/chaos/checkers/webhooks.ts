import type { Violation } from "../ledger.ts";
import type { RunNow } from "./acknowledged.ts";

/** A delivered webhook. */
export interface DeliveredWebhook {
  readonly run: string;
  readonly status: string;
  readonly id: string;
}

const TERMINAL = new Set(["success", "error", "timeout", "interrupted"]);

/**
 * I9: the end of each run was delivered at least once, with the stored status. No end was delivered that is not stored.
 */
export function everyEndIsDelivered(
  runs: readonly RunNow[],
  delivered: readonly DeliveredWebhook[],
  owed: readonly unknown[],
): Violation[] {
  const found: Violation[] = [];
  const say = (message: string, evidence: unknown) => found.push({ invariant: "I9", message, evidence });
  const statuses = new Map<string, Set<string>>();
  for (const one of delivered) {
    const known = statuses.get(one.run);
    if (known === undefined) statuses.set(one.run, new Set([one.status]));
    else known.add(one.status);
    if (one.id !== one.run) say(`a webhook for run ${one.run} came under another id`, one);
  }
  if (owed.length > 0) say(`${owed.length} webhooks are owed still`, owed.slice(0, 5));
  const ends = new Map(runs.map(({ entry, status }) => [entry.run, { status, entry }]));
  for (const [run, { status, entry }] of ends) {
    if (!entry.hooked || status === undefined || !TERMINAL.has(status)) continue;
    if (!statuses.has(run)) say(`run ${run} ended as ${status} and its webhook was never delivered`, entry);
  }
  for (const [run, said] of statuses) {
    const end = ends.get(run);
    // A run that was admitted but not acknowledged when the server died is unknown to the clients.
    if (end !== undefined && (said.size > 1 || !said.has(end.status ?? ""))) {
      say(`run ${run} is ${end.status}, and its webhook delivered ${[...said].join(", ")}`, end.entry);
    }
  }
  return found;
}
