import { ServiceError } from "../model/errors.ts";
import { similarName } from "../model/similar-name.ts";
import { matchesEventDescriptor } from "./machine-driver.ts";
import type { Outcome, StateConfiguration, StateSpace, PossibleStep } from "./state-space.ts";
import { allStates, type Machine, type StateNode } from "./xstate-types.ts";

/** A claim about the states that a machine enters, such as `never shipped without PAY`. */
export interface ProvableClaim {
  readonly kind: "never" | "eventually" | "reachable";
  /** The ids of the states that the claim names. Entering any of them counts. */
  readonly states: ReadonlySet<string>;
  /**
   * The events that a `never` claim lists after `without`. The claim covers only paths on which no client sends these events to the
   * machine; the machine may still send them to itself. Empty for other claims.
   */
  readonly without: readonly string[];
}

export interface ProofResult {
  readonly result: "proved" | "refuted" | "undecided";
  /** Why the claim is undecided, or why the path refutes an `eventually` claim. Absent for other results. */
  readonly why?: string;
  /**
   * An example: for a `reachable` claim, a path that enters one of the claim's states; for other claims, a path that breaks the claim. The
   * path of an undecided claim does so only under the condition in `why`. Empty if there is no example.
   */
  readonly path: readonly PathStep[];
}

export interface PathStep {
  /** The descriptor of the event; null for the start of the machine. */
  readonly event: string | null;
  readonly isSelfSent: boolean;
  readonly outcome: Outcome;
  readonly from: StateConfiguration | undefined;
  readonly to: StateConfiguration;
}

const GRAMMAR =
  'a claim is "never STATE without EVENT", "never STATE", "eventually STATE" or "reachable STATE"; several states or events are joined by "or"';

/**
 * Parses a claim. A state is named by its path (`charging.card`), by its id (`#order.charging.card`) or, if no other state has the same
 * key, by its key (`card`).
 * @throws ServiceError `config.invalid`; the message names the part that is wrong
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
  return matchesEventDescriptor(name, own) || events.includes(name) ? name : unknown("event", name, own);
}

function unknown(what: string, name: string, known: readonly string[]): never {
  const similar = similarName(name, known);
  const meant = similar === undefined ? "" : `; did you mean "${similar}"?`;
  throw refusal(`the machine has no ${what} "${name}"${meant} (it has: ${known.join(", ") || "none"})`);
}

/**
 * A step that the search for an example may take. `isSelfSent`: the claim's `without` excludes the event, so the step is allowed only
 * because the machine may send the event to itself.
 */
interface AllowedStep extends PossibleStep {
  readonly isSelfSent: boolean;
}

/**
 * Decides a claim over all configurations of a machine, which are its possible combinations of active states. The claim is proved or
 * refuted if the result is the same whatever the guards return. It is undecided if the result depends on guards, or on when the machine
 * sends events to itself.
 */
export function decideClaim(
  { configurations, initial, selfSent }: StateSpace,
  claim: ProvableClaim,
): ProofResult {
  const { kind, states, without } = claim;
  const isHit = ({ entered }: Outcome) => [...states].some((id) => entered.has(id));
  const steps = new Map<string, readonly AllowedStep[]>();
  for (const [key, configuration] of configurations) {
    const allowed = configuration.steps.map((step) => ({
      ...step,
      isSelfSent: matchesEventDescriptor(step.event, without),
    }));
    steps.set(
      key,
      allowed.filter(({ isSelfSent, event }) => !isSelfSent || selfSent === null || selfSent.has(event)),
    );
  }
  const search: Search = { configurations, initial, steps };
  const surely = configurationsLeadingTo(
    search,
    isHit,
    (outcomes, leads, step) => !step.isSelfSent && outcomes.every(leads),
  );
  const perhaps = configurationsLeadingTo(search, isHit, (outcomes, leads) => outcomes.some(leads));
  const isSure = (outcome: Outcome) => isHit(outcome) || surely.has(outcome.to);
  const isWithoutGuards = (step: AllowedStep) => !step.isSelfSent && step.outcomes.length === 1;
  if (kind === "eventually") {
    // A path is followed only until it enters one of the states, because what happens afterwards does not matter.
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
  readonly configurations: ReadonlyMap<string, StateConfiguration>;
  readonly initial: readonly Outcome[];
  readonly steps: ReadonlyMap<string, readonly AllowedStep[]>;
}

/**
 * Returns the keys of the configurations that lead to a hit: an outcome for which `isHit` returns true. A configuration leads to a hit if
 * at least one of its steps does. `isStep` decides that from the outcomes of the step: one caller requires that all of them lead to a hit,
 * another that at least one does. An outcome leads to a hit if it is one, or if its configuration leads to one: `leads` returns this.
 */
function configurationsLeadingTo(
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

/**
 * Returns the shortest path to an outcome for which `isEnd` returns true; undefined if there is none. The path uses only steps that `take`
 * accepts, and does not continue after an outcome for which `isBarred` returns true.
 */
function pathTo(
  { configurations, initial, steps }: Search,
  isEnd: (outcome: Outcome) => boolean,
  take: (step: AllowedStep) => boolean,
  isBarred: (outcome: Outcome) => boolean = () => false,
): readonly PathStep[] | undefined {
  const configurationOf = (key: string) => configurations.get(key) as StateConfiguration;
  const seen = new Set<string>();
  const begun = (outcome: Outcome): PathStep[] => [
    { event: null, isSelfSent: false, outcome, from: undefined, to: configurationOf(outcome.to) },
  ];
  const queue = initial.map(begun);
  // The loop also visits the paths that it adds to the queue.
  for (const path of queue) {
    const { outcome, to } = path.at(-1) as PathStep;
    if (isEnd(outcome)) return path;
    if (isBarred(outcome) || seen.has(outcome.to)) continue;
    seen.add(outcome.to);
    for (const step of (steps.get(outcome.to) ?? []).filter(take)) {
      const { event, isSelfSent } = step;
      for (const next of step.outcomes)
        queue.push([...path, { event, isSelfSent, outcome: next, from: to, to: configurationOf(next.to) }]);
    }
  }
  return undefined;
}
