import type { ActorScope, Machine, Snapshot } from "./xstate-types.ts";

type Result = readonly [Snapshot, readonly { readonly type: string; readonly params: unknown }[]];

/** The two functions of XState that compute a macrostep without carrying out its actions. */
export interface PureLibrary {
  initialTransition(machine: Machine, input: unknown): Result;
  transition(machine: Machine, snapshot: Snapshot, event: object): Result;
}

interface PureFunctions {
  begin(input: unknown): Result;
  take(snapshot: Snapshot, event: object): Result;
}

/**
 * Wraps XState's `initialTransition` and `transition`. Each of their calls creates an actor, and XState computes the machine's initial
 * state, without an input, for each new actor. The wrapper avoids that: it took 104 of the 174 us of a call (2026-11-26), and most in
 * machines whose context needs an input, because the computation then throws.
 */
export function pureFunctions(xstate: PureLibrary, machine: Machine): PureFunctions {
  // `begin` wraps its input in an object, which marks the one call that needs the initial state. In other calls XState only creates an
  // actor, and passes no input.
  const getInitialSnapshot = (scope: ActorScope, given: { readonly input: unknown } | undefined) =>
    given === undefined ? NOT_BEGUN : machine.getInitialSnapshot(scope, given.input);
  const inert = Object.create(machine, { getInitialSnapshot: { value: getInitialSnapshot } }) as Machine;
  return {
    begin: (input) => xstate.initialTransition(inert, { input }),
    take: (snapshot, event) => xstate.transition(inert, snapshot, event),
  };
}

const NOT_BEGUN = Object.freeze({ status: "active", output: undefined, error: undefined });
