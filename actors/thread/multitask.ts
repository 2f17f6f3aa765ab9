import type { CancelAction, MultitaskStrategy, StopReason } from "../../src/model/run.ts";

/** The situation of a thread when a run is requested. */
export type ThreadSituation =
  /** No run is in progress, and none waits. */
  | "resting"
  /** A run is in progress, or about to be, and can still be stopped. */
  | "working"
  /** The run in progress has ended by itself; its end is being stored. */
  | "settling";

export type MultitaskDecision =
  /** The run starts now. */
  | { readonly kind: "start" }
  /** The run is refused; the run in progress goes on. */
  | { readonly kind: "refuse" }
  /** The run waits behind all runs that already wait. */
  | { readonly kind: "queue" }
  /**
   * The run starts next. Every waiting run is ended by `action`, and with `active` also the run in progress. A run that
   * has already ended by itself keeps its end.
   */
  | { readonly kind: "supersede"; readonly action: CancelAction; readonly active: boolean };

/**
 * The multitask rules: decide whether a new run starts, waits, supersedes other runs or is refused. `isAborted`: the
 * run in progress has been aborted and no other run waits, so a new run only has to wait until the aborted nodes have
 * ended.
 */
export function decideMultitask(
  strategy: MultitaskStrategy,
  situation: ThreadSituation,
  isAborted = false,
): MultitaskDecision {
  if (situation === "resting") return { kind: "start" };
  switch (strategy) {
    case "reject":
      return isAborted ? { kind: "queue" } : { kind: "refuse" };
    case "enqueue":
      return { kind: "queue" };
    case "interrupt":
    case "rollback":
      return { kind: "supersede", action: strategy, active: situation === "working" };
  }
}

/** The action by which a new run with this strategy ends the waiting runs; null: the waiting runs stay. */
export function actionOnQueuedRuns(strategy: MultitaskStrategy): CancelAction | null {
  switch (strategy) {
    case "reject":
    case "enqueue":
      return null;
    case "interrupt":
    case "rollback":
      return strategy;
  }
}

/** How the decision ends the run in progress; null: the run in progress goes on. */
export function actionOnActiveRun(decision: MultitaskDecision): CancelAction | null {
  switch (decision.kind) {
    case "start":
    case "refuse":
    case "queue":
      return null;
    case "supersede":
      return decision.active ? decision.action : null;
  }
}

/**
 * Of two requests to stop the same run, returns the one that applies: the earlier one, unless the later one is a
 * rollback, which undoes more.
 */
export function strongerStop<S extends StopReason>(one: S | null, other: S): S {
  return one === null || other === "rollback" ? other : one;
}
