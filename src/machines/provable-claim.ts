import { ServiceError } from "../model/errors.ts";
import { similarName } from "../model/similar-name.ts";
import { isHandled } from "./machine-driver.ts";
import type { Outcome, Place, StateSpace, PossibleStep } from "./state-space.ts";
import { allStates, type Machine, type StateNode } from "./xstate.ts";

/** A claim about the states that a machine enters, which can be proved or refuted. */
export interface ProvableClaim {
  readonly kind: "never" | "eventually" | "reachable";
  /** The ids of the states; any of them will do. */
  readonly states: ReadonlySet<string>;
  /** The events without which `never` is meant. */
  readonly without: readonly string[];
}

/** What the search over the states of the machine says about a claim. */
export interface ProofResult {
  readonly result: "proved" | "refuted" | "undecided";
  /** Why the claim is undecided, or what the end of the path shows. */
  readonly why?: string;
  /** An example: for `reachable`, a path to the state; for other claims, a path that contradicts the claim. */
  readonly path: readonly PathStep[];
}

export interface PathStep {
  /** Null for the beginning. */
  readonly event: string | null;
  readonly isSelfSent: boolean;
  readonly outcome: Outcome;
  readonly from: Place | undefined;
  readonly to: Place;
}

const GRAMMAR =
  'a claim is "never STATE without EVENT", "never STATE", "eventually STATE" or "reachable STATE"; several states or events are joined by "or"';

/**
 * Reads a claim. A state is named by its path (`charging.card`), its id (`#order.charging.card`) or, if only one has it, its own name (`card`).
 * @throws ServiceError `config.invalid`, naming the part that is wrong
 */
export function parseClaim(text: string, machine: Machine): ProvableClaim {
  const [, kind, states = "", events] =
    /^\s*(never|eventually|reachable)\s+(.+?)(?:\s+without\s+(.+?))?\s*$/.exec(text) ?? [];
  if (kind === undefined) throw refusal(`"${text}" is no claim: ${GRAMMAR}`);
  if (events !== undefined && kind !== "never")
    throw refusal(`"${text}" is no claim, since only never takes "without": ${GRAMMAR}`);
  return {
    kind: kind as ProvableClaim["kind"],
    states: new Set(alternatives(states).map((name) => findState(machine, name).id)),
    without: events === undefined ? [] : alternatives(events).map((name) => findEvent(machine, name)),
  };
}

const refusal = (message: string) => new ServiceError("config.invalid", message);

const alternatives = (text: string): readonly string[] => text.split(/\s+or\s+/);

const pathOf = ({ path }: StateNode) => path.join(".");

function findState(machine: Machine, name: string): StateNode {
  const states = allStates(machine.root).filter((node) => node !== machine.root && node.type !== "history");
  const exact = states.find((node) => pathOf(node) === name || `#${node.id}` === name);
  const named = states.filter(({ key }) => key === name);
  const found = exact ?? named[0];
  if (exact === undefined && named.length > 1)
    throw refusal(`several states are named "${name}": ${named.map(pathOf).join(", ")}`);
  return found ?? unknown("state", name, states.map(pathOf));
}

function findEvent(machine: Machine, name: string): string {
  const all = allStates(machine.root).flatMap(({ ownEvents }) => ownEvents);
  const events = [...new Set(all)].filter((type) => type !== "");
  const own = events.filter((type) => !type.startsWith("xstate."));
  return isHandled(name, own) || events.includes(name) ? name : unknown("event", name, own);
}

function unknown(what: string, name: string, known: readonly string[]): never {
  const similar = similarName(name, known);
  const meant = similar === undefined ? "" : `; did you mean "${similar}"?`;
  throw refusal(`the machine has no ${what} "${name}"${meant} (it has: ${known.join(", ") || "none"})`);
}

/** A step that a claim allows. A machine may send an event to itself that the claim keeps others from sending. */
interface AllowedStep extends PossibleStep {
  readonly isSelfSent: boolean;
}

/**
 * Decides a claim over all places of a machine. What holds however the guards answer is proved or refuted; what depends on their answers is
 * undecided.
 */
export function decide({ places, initial, selfSent }: StateSpace, claim: ProvableClaim): ProofResult {
  const { kind, states, without } = claim;
  const isHit = ({ entered }: Outcome) => [...states].some((id) => entered.has(id));
  const steps = new Map<string, readonly AllowedStep[]>();
  for (const [key, place] of places) {
    const allowed = place.steps.map((step) => ({ ...step, isSelfSent: isHandled(step.event, without) }));
    steps.set(
      key,
      allowed.filter(({ isSelfSent, event }) => !isSelfSent || selfSent === null || selfSent.has(event)),
    );
  }
  const search: Search = { places, initial, steps };
  const surely = placesLeadingTo(
    search,
    isHit,
    (outcomes, leads, step) => !step.isSelfSent && outcomes.every(leads),
  );
  const perhaps = placesLeadingTo(search, isHit, (outcomes, leads) => outcomes.some(leads));
  const isSure = (outcome: Outcome) => isHit(outcome) || surely.has(outcome.to);
  const isWithoutGuards = (step: AllowedStep) => !step.isSelfSent && step.outcomes.length === 1;
  if (kind === "eventually") {
    // No longer than until a state is entered: what comes after that does not matter.
    const leave = (isEnd: (outcome: Outcome) => boolean, take: (step: AllowedStep) => boolean) =>
      pathTo(search, (outcome) => !isHit(outcome) && isEnd(outcome), take, isHit);
    const missed = leave(({ to }) => !perhaps.has(to), isWithoutGuards);
    if (missed !== undefined && initial.length === 1)
      return { result: "refuted", path: missed, why: "from here on, it cannot be entered any more" };
    const path = leave(
      (outcome) => !isSure(outcome),
      () => true,
    );
    return path === undefined
      ? { result: "proved", path: [] }
      : { result: "undecided", path, why: "from here on, it is entered only if guards allow it" };
  }
  const toHit = (take: (step: AllowedStep) => boolean) => pathTo(search, isHit, take);
  const found = kind === "reachable" ? "proved" : "refuted";
  if (initial.every(isSure)) {
    const direct = initial.length === 1 ? toHit(isWithoutGuards) : undefined;
    const path = direct ?? toHit((step) => !step.isSelfSent && step.outcomes.every(isSure));
    return { result: found, path: path ?? [] };
  }
  const path = toHit(() => true);
  if (path === undefined) return { result: kind === "reachable" ? "refuted" : "proved", path: [] };
  const why = path.some(({ isSelfSent }) => isSelfSent)
    ? "it depends on when the machine sends events to itself"
    : "it depends on guards";
  return { result: "undecided", path, why };
}

interface Search {
  readonly places: ReadonlyMap<string, Place>;
  readonly initial: readonly Outcome[];
  readonly steps: ReadonlyMap<string, readonly AllowedStep[]>;
}

/** The places from which the machine can come to an outcome that is a hit. `isStep` says which of a step's outcomes have to lead there. */
function placesLeadingTo(
  { steps }: Search,
  isHit: (outcome: Outcome) => boolean,
  isStep: (outcomes: readonly Outcome[], leads: (outcome: Outcome) => boolean, step: AllowedStep) => boolean,
): ReadonlySet<string> {
  const found = new Set<string>();
  const leads = (outcome: Outcome) => isHit(outcome) || found.has(outcome.to);
  for (let before = -1; before < found.size;) {
    before = found.size;
    for (const [key, all] of steps)
      if (all.some((step) => isStep(step.outcomes, leads, step))) found.add(key);
  }
  return found;
}

/** The shortest way to an outcome, over the steps that `take` allows, and past no outcome that `isBarred`. */
function pathTo(
  { places, initial, steps }: Search,
  isEnd: (outcome: Outcome) => boolean,
  take: (step: AllowedStep) => boolean,
  isBarred: (outcome: Outcome) => boolean = () => false,
): readonly PathStep[] | undefined {
  const placeOf = (key: string) => places.get(key) as Place;
  const seen = new Set<string>();
  const begun = (outcome: Outcome): PathStep[] => [
    { event: null, isSelfSent: false, outcome, from: undefined, to: placeOf(outcome.to) },
  ];
  const queue = initial.map(begun);
  // An array that grows is walked to its end.
  for (const path of queue) {
    const { outcome, to } = path.at(-1) as PathStep;
    if (isEnd(outcome)) return path;
    if (isBarred(outcome) || seen.has(outcome.to)) continue;
    seen.add(outcome.to);
    for (const step of (steps.get(outcome.to) ?? []).filter(take)) {
      const { event, isSelfSent } = step;
      for (const next of step.outcomes)
        queue.push([...path, { event, isSelfSent, outcome: next, from: to, to: placeOf(next.to) }]);
    }
  }
  return undefined;
}
