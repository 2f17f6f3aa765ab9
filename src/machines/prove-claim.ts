import { decideClaim, parseClaim, type PathStep, type ProofResult } from "./claim-checker.ts";
import { libraryOf } from "./exported-machine.ts";
import { drawMachine } from "./machine-drawing.ts";
import { type ExploringLibrary, exploreMachine, UnexploredError } from "./state-space.ts";
import { allStates, type Machine } from "./xstate-types.ts";

/** The largest number of configurations, which are combinations of active states, that are explored. */
const MAX_CONFIGURATIONS = 10_000;

/** The result of a proof in the forms in which people read it. */
export interface ProofReport {
  readonly result: ProofResult["result"];
  /** The result as lines for a terminal: the verdict, the steps of the example, and the reason. */
  readonly lines: readonly string[];
  /** The machine as a Mermaid flowchart, in which the example is marked. */
  readonly chart: string;
}

/**
 * Decides a claim about a machine, with the XState of the machine's own project.
 * @param files the files from which `xstate` is resolved; the copy of XState that made the machine is preferred
 * @throws ServiceError `config.invalid` if the claim is not understood; the message names the part that is wrong
 */
export function proveClaim(
  machine: Machine,
  text: string,
  files: readonly string[],
  maxConfigurations = MAX_CONFIGURATIONS,
): ProofReport {
  const claim = parseClaim(text, machine);
  const xstate = libraryOf(machine, files) as unknown as ExploringLibrary;
  try {
    const space = exploreMachine(xstate, machine, maxConfigurations);
    const { result, why, path } = decideClaim(space, claim);
    const head = `${result}: ${text} (${space.configurations.size.toLocaleString("en")} combinations of active states)`;
    const steps = path.map((step, index) => `${index + 1}. ${describeStep(machine, step)}`);
    return {
      result,
      lines: [head, ...steps, ...(why === undefined ? [] : [why])],
      chart: drawPath(machine, path),
    };
  } catch (cause) {
    if (!(cause instanceof UnexploredError)) throw cause;
    return {
      result: "undecided",
      lines: [`undecided: ${text}`, cause.message],
      chart: drawPath(machine, []),
    };
  }
}

function describeStep(machine: Machine, { event, isSelfSent, outcome, to }: PathStep): string {
  const name = event === null ? "the machine begins" : describeEvent(machine, event);
  const sent = isSelfSent ? ", sent by the machine itself or by a child" : "";
  const guards = outcome.guards.length === 0 ? "" : `, if ${outcome.guards.join(" and ")}`;
  const isActive = (path: string) => to.active.some((one) => `${one}.`.startsWith(`${path}.`));
  const passed = enteredPaths(machine, outcome).filter((path) => !isActive(path));
  const way = passed.length === 0 ? "" : ` (by way of ${passed.join(", ")})`;
  return `${name}${sent}${guards}: ${to.active.join(", ")}${way}`;
}

function enteredPaths(machine: Machine, { entered }: PathStep["outcome"]): readonly string[] {
  const states = allStates(machine.root).filter((node) => node !== machine.root && entered.has(node.id));
  return states.map(({ path }) => path.join("."));
}

/** Describes an event in words if it is one of XState's own, such as `xstate.after.500.order.charging`. Other events keep their name. */
function describeEvent(machine: Machine, event: string): string {
  const [, kind, rest = ""] =
    /^xstate\.(after|done\.state|(?:done|error|snapshot)\.actor)\.(.+)$/.exec(event) ?? [];
  if (event === "*") return "any other event";
  if (kind === undefined) return event;
  const states = allStates(machine.root);
  if (kind === "done.state") return "done";
  if (kind === "after") {
    const id = states.map((node) => `.${node.id}`).find((suffix) => rest.endsWith(suffix)) ?? "";
    const delay = rest.slice(0, rest.length - id.length);
    return `after ${/^\d+$/.test(delay) ? `${delay} ms` : delay}`;
  }
  const invoked = states.flatMap(({ invoke }) => invoke).find((one) => "id" in one && one.id === rest);
  const name = invoked === undefined || invoked.src.startsWith("xstate.") ? rest : invoked.src;
  return `${name} ${kind === "done.actor" ? "is done" : kind === "error.actor" ? "fails" : "has a new snapshot"}`;
}

function drawPath(machine: Machine, path: readonly PathStep[]): string {
  const { nodes, edges } = drawMachine(machine);
  const ids = new Map(nodes.map(({ id }, index) => [id, `n${index}`]));
  const quoted = (text: string) => `"${text.replaceAll('"', "#quot;")}"`;
  const isTaken = ({ source, target, data }: (typeof edges)[number]) =>
    path.some((step) => {
      const entered = enteredPaths(machine, step.outcome);
      const before = step.from?.active ?? [];
      const isOn = entered.includes(source) || before.some((one) => `${one}.`.startsWith(`${source}.`));
      const isCause =
        data === (step.event ?? undefined) || data === "always" || data?.startsWith("xstate.done.state.");
      return (
        entered.includes(target) &&
        (source === "__start__" ? step.event === null : isOn && (isCause || data === undefined))
      );
    });
  const taken = edges.flatMap((edge, index) => (isTaken(edge) ? [index] : []));
  const passed = new Set(path.flatMap(({ outcome }) => enteredPaths(machine, outcome)));
  const marked = nodes.flatMap(({ id }) => (passed.has(id) ? [ids.get(id)] : []));
  const label = (data: string | undefined) =>
    data === undefined ? "" : `|${quoted(describeEvent(machine, data))}|`;
  return [
    "flowchart LR",
    ...nodes.map(({ id, type }) =>
      type === "schema" ? `  ${ids.get(id)}(( ))` : `  ${ids.get(id)}[${quoted(id)}]`,
    ),
    ...edges.map(
      ({ source, target, conditional, data }) =>
        `  ${ids.get(source)} ${conditional ? "-.->" : "-->"}${label(data)} ${ids.get(target)}`,
    ),
    ...(taken.length > 0 ? [`  linkStyle ${taken.join(",")} stroke:#c2410c,stroke-width:3px`] : []),
    ...(marked.length > 0
      ? [`  classDef path stroke:#c2410c,stroke-width:3px`, `  class ${marked.join(",")} path`]
      : []),
    "",
  ].join("\n");
}
