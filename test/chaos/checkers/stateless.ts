import type { Effect } from "../effects.ts";
import type { StatelessRunEntry, Ledger, Violation } from "../ledger.ts";
import type { Snapshot } from "../snapshot.ts";
import type { DeliveredWebhook } from "./webhooks.ts";

/**
 * I1 and I10 of stateless runs, seen from their node bodies. A run that is gone has reached its last node, unless it
 * was to be stopped. A run that is bound to its client does not continue after a restart of the server.
 */
export function goneWhenDone(
  ledger: Ledger,
  gone: readonly StatelessRunEntry[],
  effects: readonly Effect[],
): Violation[] {
  const found: Violation[] = [];
  const begun = new Map<string, Effect[]>();
  for (const effect of effects) {
    const known = begun.get(effect.run);
    if (known === undefined) begun.set(effect.run, [effect]);
    else known.push(effect);
  }
  for (const entry of gone) {
    const own = begun.get(entry.run) ?? [];
    if (!own.some(({ node }) => node === entry.last) && !ledger.mayBeCut(entry) && !ledger.mayFail(entry)) {
      found.push({
        invariant: "I1",
        message: `run ${entry.run} (${entry.what}) was acknowledged, and is gone with its work undone`,
        evidence: { entry, effects: own },
      });
    }
    if (entry.bound && !ledger.isOfCluster && new Set(own.map(({ pid }) => pid)).size > 1) {
      found.push({
        invariant: "I10",
        message: `run ${entry.run} went on after the server had died, though its client is gone`,
        evidence: { entry, effects: own },
      });
    }
  }
  return found;
}

/**
 * I9 of stateless runs: each end was delivered, unless the run was rolled back, and no impossible end was delivered.
 */
export function everyStatelessEndIsDelivered(
  ledger: Ledger,
  gone: readonly StatelessRunEntry[],
  delivered: readonly DeliveredWebhook[],
): Violation[] {
  const found: Violation[] = [];
  const said = new Map<string, Set<string>>();
  for (const { run, status } of delivered) {
    const known = said.get(run);
    if (known === undefined) said.set(run, new Set([status]));
    else known.add(status);
  }
  for (const entry of gone) {
    const statuses = said.get(entry.run);
    const say = (what: string) =>
      found.push({ invariant: "I9", message: `run ${entry.run} (${entry.what}) ${what}`, evidence: entry });
    if (statuses === undefined) {
      if (entry.hooked && !ledger.mayVanish(entry)) say("is gone and its webhook was never delivered");
      continue;
    }
    if (!entry.hooked) say("has no webhook, and one was delivered");
    if (statuses.size > 1) say(`ended once, and its webhook delivered ${[...statuses].join(", ")}`);
    for (const status of statuses) {
      const may =
        status === "success" ||
        (status === "interrupted" && ledger.mayBeCut(entry)) ||
        (status === "error" && ledger.mayFail(entry));
      if (!may) say(`cannot have ended as ${status}, which its webhook delivered`);
    }
  }
  return found;
}

/** I10: when all stateless runs have ended and the time for their readers is over, storage contains nothing of them. */
export function nothingHiddenIsLeft(snapshot: Snapshot): Violation[] {
  return snapshot.threads
    .filter(({ record }) => record !== undefined && record.temporary !== null)
    .map(({ key, record, runs }) => ({
      invariant: "I10",
      message: `thread ${key.thread} was made for one run, and is still there after its end`,
      evidence: { record, runs: runs.map(({ record: { run_id, status } }) => [run_id, status]) },
    }));
}
