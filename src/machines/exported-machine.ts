import { createRequire } from "node:module";
import type { GraphDefinition } from "../graph/definition.ts";
import { ServiceError } from "../model/errors.ts";
import {
  kindOfActor,
  type LogicKind,
  logicOf,
  machinesOf,
  FORBIDDEN_ACTOR_ID,
  sourcesOf,
} from "./actor-logic.ts";
import { chartOfMachine, drawMachine } from "./machine-drawing.ts";
import { DeclaredSchemas, parseDeclaredSchemas } from "./declared-schemas.ts";
import type { MachineDriver } from "./machine-driver.ts";
import { createMachineGraph } from "./machine-graph.ts";
import { describeVersion, MachineVersions, type Migrate } from "./machine-versions.ts";
import { allStates, isMachine, type Machine, type StateNode, type XStateLibrary } from "./xstate-types.ts";
import { createXState5Driver } from "./xstate5-driver.ts";

/** An export with several versions of one machine. */
interface Exported {
  /** The versions of the machine, the current version last. */
  readonly versions: readonly unknown[];
  readonly migrate?: unknown;
}

/**
 * Creates a graph from a machine, or from several versions of a machine, with the XState of the machine's own project.
 * @param files the files from which `xstate` is resolved; the copy of XState that made the machine is preferred
 * @throws ServiceError `config.invalid` if XState is missing or is not version 5.19 or a later version 5, or if the machine contains
 * something that is not supported, or declares a broken schema
 */
export function loadMachine(exported: Machine | Exported, files: readonly string[]): GraphDefinition {
  const { versions, migrate }: Exported = isMachine(exported) ? { versions: [exported] } : exported;
  const machines = versions.map((one, index) => {
    if (!isMachine(one)) throw refusal(`versions[${index}] is no XState machine`);
    return one;
  });
  const current = machines.at(-1);
  if (current === undefined) throw refusal("versions is empty: it needs at least one machine");
  if (migrate !== undefined && typeof migrate !== "function")
    throw refusal("migrate must be a function of the snapshot and its version");
  const drivers = machines.map((machine) => driverOf(machine, files));
  const twice = drivers.find(({ version }, index) =>
    drivers.some((other, at) => at < index && other.version === version),
  );
  if (twice !== undefined) throw refusal(`two of its versions have ${describeVersion(twice.version)}`);
  const actors = new Set(machines.flatMap(promiseActors));
  return createMachineGraph(new MachineVersions(drivers, migrate as Migrate | undefined), [...actors], {
    chart: (name) => chartOfMachine(current, name),
    drawing: () => drawMachine(current),
  });
}

/** The machine that a file exports, or the current one of its versions; undefined if the export is neither. */
export function currentMachineOf(exported: unknown): Machine | undefined {
  if (isMachine(exported)) return exported;
  const { versions } = (
    typeof exported === "object" && exported !== null ? exported : {}
  ) as Partial<Exported>;
  const current: unknown = Array.isArray(versions) ? versions.at(-1) : undefined;
  return isMachine(current) ? current : undefined;
}

function driverOf(machine: Machine, files: readonly string[]): MachineDriver {
  const xstate = libraryOf(machine, files);
  const { id, version } = machine;
  if (version !== undefined && typeof version !== "string")
    throw refusal(`the version of the machine "${id}" must be a text`);
  const faults = machinesOf(machine).flatMap((one) =>
    allStates(one.root).flatMap((node) => faultsOf(one, node)),
  );
  if (faults.length > 0)
    throw refusal(`the machine "${id}" has parts that are not supported: ${faults.join("; ")}`);
  const schemas = parseDeclaredSchemas(machine);
  if (schemas !== null && !(schemas instanceof DeclaredSchemas))
    throw refusal(`the machine "${id}" declares schemas that cannot be used: ${schemas.faults.join("; ")}`);
  return createXState5Driver(xstate, machine, schemas);
}

const refusal = (message: string, cause?: unknown) => new ServiceError("config.invalid", message, { cause });

interface Package extends XStateLibrary {
  readonly StateMachine?: unknown;
  readonly initialTransition?: unknown;
}

/**
 * The XState of a machine's project.
 * @throws ServiceError `config.invalid` if XState is missing or too old, or the machine was not made with XState 5
 */
export function libraryOf(machine: Machine, files: readonly string[]): XStateLibrary {
  // Machines of XState 6 have `sources` instead of `implementations`.
  if ((machine as Partial<Machine>).implementations === undefined)
    throw refusal(
      "it is a machine of XState 6, and only those of XState 5 are supported: npm install xstate@5",
    );
  const found: Package[] = [];
  for (const file of files) {
    try {
      const library = createRequire(file)("xstate") as Package;
      const { StateMachine } = library;
      if (typeof StateMachine === "function" && machine instanceof StateMachine) found.unshift(library);
      else found.push(library);
    } catch {
      // The project of this file has no XState.
    }
  }
  const [library] = found;
  if (library === undefined)
    throw refusal("it is an XState machine, and its project has no xstate: npm install xstate@5");
  // XState added `initialTransition` in 5.19, together with the action objects that `MachineInterpreter` needs.
  if (typeof library.initialTransition !== "function")
    throw refusal("its project's xstate is older than 5.19: npm install xstate@5");
  return library;
}

/** The `src` of every promise actor that a machine or the machines started by it may start. */
function promiseActors(machine: Machine): readonly string[] {
  return machinesOf(machine).flatMap((one) =>
    sourcesOf(one).filter((src) => kindOfActor(logicOf(one, src)) === "promise"),
  );
}

const SUPPORTED: ReadonlySet<string> = new Set<LogicKind>(["promise", "machine", "transition"]);

/** The faults of a state: the actors that it invokes or spawns and that are not supported. Each text begins with the state's id. */
function faultsOf(machine: Machine, node: StateNode): readonly string[] {
  const at = `#${node.id}`;
  const faults: string[] = [];
  for (const { id, src } of node.invoke) {
    if (id === FORBIDDEN_ACTOR_ID) faults.push(`${at}.invoke has the id "${id}", which JavaScript reserves`);
    const kind = kindOfActor(logicOf(machine, src));
    const of = kind === "missing" ? "which has no implementation" : `which is ${kind} logic`;
    if (!SUPPORTED.has(kind)) faults.push(`${at}.invoke starts "${src}", ${of}`);
  }
  const { delays = {} } = machine.implementations;
  for (const delay of new Set(node.after.map((one) => one.delay))) {
    // XState takes the key "NaN" for the name of a delay.
    const ms = typeof delay === "string" && Object.hasOwn(delays, delay) ? delays[delay] : delay;
    if (ms === "NaN" || (typeof ms === "number" && !Number.isFinite(ms)))
      faults.push(`${at}.after has the delay ${String(delay)}, which is no number of milliseconds`);
  }
  const transitions = [...node.transitions.values(), node.always ?? []].flat();
  const actions = [...node.entry, ...node.exit, ...transitions.flatMap((one) => one.actions)];
  for (const action of actions) {
    const { type, src } = action as { type?: string; src?: unknown };
    if (type !== "xstate.spawnChild" || typeof action !== "function") continue;
    const kind = typeof src === "string" ? kindOfActor(logicOf(machine, src)) : "inline";
    if (!SUPPORTED.has(kind)) faults.push(`${at} spawns ${kind} logic`);
  }
  return faults;
}
