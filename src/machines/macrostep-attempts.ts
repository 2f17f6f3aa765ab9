import { toPlainError } from "../model/errors.ts";
import type { MacrostepResult, MachineDriver } from "./machine-driver.ts";
import { MACHINE_KEYS, type ReplayableMacrostep } from "./machine-state.ts";
import { toStorableWithErrors } from "./stored-errors.ts";

/** The result of a macrostep, or the text of the error that it throws. */
export type MacrostepAttempt =
  | { readonly result: MacrostepResult }
  | { readonly result?: undefined; readonly why: string };

/**
 * Macrosteps that were computed before the step that processes their event. An event whose macrostep throws is refused, and the machine
 * keeps its state. The step does not compute the macrostep a second time.
 */
export class MacrostepAttempts {
  /** The attempts by the stored machine to which the event is sent. They are dropped together with that machine. */
  readonly #attempts = new WeakMap<object, Map<string, MacrostepAttempt>>();

  /**
   * Computes a macrostep, unless that was done before. `machine`: the stored machine, which must be the same object in all calls. `key`:
   * names the event among those for this machine.
   */
  attempt(machine: unknown, key: string, compute: () => MacrostepResult): MacrostepAttempt {
    const known = this.#of(machine).get(key);
    if (known !== undefined) return known;
    const made = attemptOf(compute);
    this.#of(machine).set(key, made);
    return made;
  }

  /** Removes and returns the result that `attempt` has computed; undefined if there is none. */
  take(machine: unknown, key: string): MacrostepResult | undefined {
    const all = this.#of(machine);
    const { result } = all.get(key) ?? {};
    all.delete(key);
    return result;
  }

  #of(machine: unknown): Map<string, MacrostepAttempt> {
    if (typeof machine !== "object" || machine === null) return new Map();
    const all = this.#attempts.get(machine) ?? new Map<string, MacrostepAttempt>();
    this.#attempts.set(machine, all);
    return all;
  }
}

function attemptOf(compute: () => MacrostepResult): MacrostepAttempt {
  try {
    return { result: compute() };
  } catch (thrown) {
    const { error, message } = toPlainError(thrown);
    return { why: `${error}: ${message}` };
  }
}

/**
 * Computes a macrostep.
 * @throws the machine's error, or an error that names the part of the new state, of an emitted event, or of a child's last state that
 * cannot be stored
 */
export function computeMacrostep(driver: MachineDriver, step: ReplayableMacrostep): MacrostepResult {
  // Stored values are never `undefined`, so the input of a machine that began without an input is null here.
  const made =
    step.before === null ? driver.begin(step.input ?? undefined) : driver.take(step.before, step.message);
  const reserved = Object.keys(made.snapshot.context).find((key) => MACHINE_KEYS.has(key));
  if (reserved !== undefined)
    throw new TypeError(
      `The context has a key ${reserved}, which Heddle keeps for itself: name it otherwise`,
    );
  for (const effect of made.effects) {
    if (effect.kind === "emit") toStorableWithErrors(effect.event, "emit");
    // The snapshot does not contain children that have ended, but their last state is stored for their namespace.
    if (effect.kind === "child" && effect.hasEnded()) effect.read();
  }
  return made;
}
