import type { CancelAction, MultitaskStrategy, Stop } from "../../src/model/run.ts";

/** Where a thread stands when a run is asked of it. */
export type Situation =
  /** Nothing runs, nothing waits. */
  | "resting"
  /** A run is in progress (or about to be), and can still be stopped. */
  | "working"
  /** The run in progress has ended by itself; its end is being stored. */
  | "settling";

export type Decision =
  /** It starts now. */
  | { readonly kind: "start" }
  /** It is refused; whatever runs goes on. */
  | { readonly kind: "refuse" }
  /** It waits behind all others. */
  | { readonly kind: "queue" }
  /**
   * It comes next. Every run that waits is ended by `action`, and, where `active`, so is the one in progress. A run that has
   * already come to its own end keeps it.
   */
  | { readonly kind: "supersede"; readonly action: CancelAction; readonly active: boolean };

/**
 * The multitask rules, whole: may this run start, wait, take over, or is it refused? `isLeft`: the run in progress has been told
 * to stop, and nobody waits: it is in nobody's way but for the moment that its nodes take to end.
 */
export function decide(strategy: MultitaskStrategy, situation: Situation, isLeft = false): Decision {
  if (situation === "resting") return { kind: "start" };
  switch (strategy) {
    case "reject":
      return isLeft ? { kind: "queue" } : { kind: "refuse" };
    case "enqueue":
      return { kind: "queue" };
    case "interrupt":
    case "rollback":
      return { kind: "supersede", action: strategy, active: situation === "working" };
  }
}

/** Of two reasons to stop a run the first, but for a rollback, which takes back more. */
export function stronger<S extends Stop>(one: S | null, other: S): S {
  return one === null || other === "rollback" ? other : one;
}
