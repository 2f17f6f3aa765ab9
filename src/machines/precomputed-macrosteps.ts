import { toPlainError } from "../model/errors.ts";
import type { MacrostepResult, MachineDriver } from "./machine-driver.ts";
import { MACHINE_KEYS, type ReplayableMacrostep } from "./machine-state.ts";
import { toStorableWithErrors } from "./stored-errors.ts";

/** The result of a macrostep, or the text of the error that it throws. */
export type PrecomputedMacrostep =
  | { readonly result: MacrostepResult }
  | { readonly result?: undefined; readonly why: string };

/**
 * A cache of macrosteps that are computed before the step that processes their event, to find out whether the event fails. An event whose
 * macrostep throws is refused, and the machine keeps its state. The step takes the result from here, and does not compute it a second time.
 */
export class PrecomputedMacrosteps {
  /** The macrosteps of each stored machine, by `key`. They are dropped together with the stored machine. */
  readonly #byMachine = new WeakMap<object, Map<string, PrecomputedMacrostep>>();

  /**
   * Calls `macrostep`, unless its result or error is known from an earlier call. `machine`: the stored machine to which the event is sent,
   * which must be the same object in all calls. `key`: names the event among those for this machine.
   */
  compute(machine: unknown, key: string, macrostep: () => MacrostepResult): PrecomputedMacrostep {
    const known = this.#of(machine).get(key);
    if (known !== undefined) return known;
    const made = resultOrError(macrostep);
    this.#of(machine).set(key, made);
    return made;
  }

  /** Removes and returns the result that `compute` has got; undefined if there is none. */
  take(machine: unknown, key: string): MacrostepResult | undefined {
    const all = this.#of(machine);
    const { result } = all.get(key) ?? {};
    all.delete(key);
    return result;
  }

  #of(machine: unknown): Map<string, PrecomputedMacrostep> {
    if (typeof machine !== "object" || machine === null) return new Map();
    const all = this.#byMachine.get(machine) ?? new Map<string, PrecomputedMacrostep>();
    this.#byMachine.set(machine, all);
    return all;
  }
}

function resultOrError(macrostep: () => MacrostepResult): PrecomputedMacrostep {
  try {
    return { result: macrostep() };
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
