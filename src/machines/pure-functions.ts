import type { Machine, Snapshot } from "./xstate.ts";

type Result = readonly [Snapshot, readonly { readonly type: string; readonly params: unknown }[]];

/** XState's pure functions. */
export interface PureLibrary {
  initialTransition(machine: Machine, input: unknown): Result;
  transition(machine: Machine, snapshot: Snapshot, event: object): Result;
}

interface Logic extends Machine {
  getInitialSnapshot(scope: unknown, input: unknown): unknown;
}

interface PureFunctions {
  begin(input: unknown): Result;
  take(snapshot: Snapshot, event: object): Result;
}

/**
 * The pure functions of XState, without the actor's beginning. They make an actor for each call, which computes the machine's initial state
 * without an input: that took more CPU than the call itself, above all where the context cannot be made without one, and throws (104 of 174
 * us, 2026-11-26).
 */
export function pureFunctions(xstate: PureLibrary, machine: Machine): PureFunctions {
  const logic = machine as Logic;
  // The input is wrapped, to tell the call that needs the initial state from that of the actor.
  const getInitialSnapshot = (scope: unknown, given: { readonly input: unknown } | undefined) =>
    given === undefined ? NOT_BEGUN : logic.getInitialSnapshot(scope, given.input);
  const inert = Object.create(machine, { getInitialSnapshot: { value: getInitialSnapshot } }) as Machine;
  return {
    begin: (input) => xstate.initialTransition(inert, { input }),
    take: (snapshot, event) => xstate.transition(inert, snapshot, event),
  };
}

const NOT_BEGUN = Object.freeze({ status: "active", output: undefined, error: undefined });
