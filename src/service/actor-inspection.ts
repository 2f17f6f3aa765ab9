import { chartDefinitions } from "../../actors/inspection/chart-definitions.ts";
import type { ThreadSystem } from "../../actors/thread-system-interface.ts";
import { ServiceError, threadNotFound } from "../model/errors.ts";
import { md5Hex, pairedId } from "../model/ids.ts";
import type { JsonObject } from "../model/json.ts";
import type { Permits } from "../model/permitted-resources.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Engine } from "../ports/engine.ts";
import type {
  Inspector,
  InspectScope,
  LiveThreadSummary,
  ActorSnapshot,
  InspectedActor,
  InspectedState,
} from "../ports/inspector.ts";
import type { Eventually } from "../ports/eventually.ts";
import type { Journal } from "../ports/journal.ts";
import { permittedThread } from "./threads.ts";
import { storedRunActors, storedThreadActor } from "./stored-actor-snapshots.ts";

/** A statechart that actors run. */
export interface MachineInfo {
  /** `thread`, `run`, `task`, or `graph:` and the graph's name. */
  readonly id: string;
  /** A hash of the definition. */
  readonly hash: string;
  /** The definition, as XState reads it. */
  readonly definition: JsonObject;
  /** The definition as JSON text. */
  readonly text: string;
}

/** Read access for the inspector, which shows the statecharts and the actors that run them. A read never loads an actor into memory. */
export interface ActorInspection {
  machines(): Eventually<readonly MachineInfo[]>;
  /** The statechart with this id; undefined when there is none. */
  machine(id: string): Eventually<MachineInfo | undefined>;
  /** The permitted threads whose actors are in memory, at most `limit`. Threads with unfinished runs come first. */
  liveThreads(tenant: string, limit: number, permits?: Permits): Eventually<readonly LiveThreadSummary[]>;
  /**
   * The thread of a run. @throws ServiceError `run.not_found` when the run is not in memory and its thread cannot be derived from its id,
   * or when its thread is not permitted
   */
  threadOf(tenant: string, run: string, permits?: Permits): Promise<string>;
  /**
   * Reduces a scope, which selects the actors to watch, to the part that the user may see.
   * @throws ServiceError `auth.*`
   */
  scopeOf(scope: InspectScope): Eventually<InspectScope>;
  /**
   * The actors of a thread, of one of its runs (null: the latest run) and of that run's graph, in their stored state, even if the actors
   * are in memory.
   * @throws ServiceError `thread.not_found`, `run.not_found`
   */
  storedActors(key: ThreadKey, run: string | null): Promise<readonly ActorSnapshot[]>;
  /**
   * The actors that {@link storedActors} returns, and those of the thread that are in memory. Actors in memory have their current state.
   * Parents come first. With a run, the actors of other runs are left out.
   */
  actors(key: ThreadKey, run: string | null): Promise<readonly ActorSnapshot[]>;
  /** Reports the actors in memory and their events, until the returned function is called. */
  watch(scope: InspectScope, inspector: Inspector): () => void;
}

/** The inspection of the server itself, without permission checks. */
export interface ServerInspection extends ActorInspection {
  machines(): readonly MachineInfo[];
  machine(id: string): MachineInfo | undefined;
}

interface Deps {
  readonly system: ThreadSystem;
  readonly journal: Journal;
  readonly engine: Engine;
}

export function createActorInspection({ system, journal, engine }: Deps): ServerInspection {
  let own: readonly MachineInfo[] | undefined;
  // The result is not cached, because a graph may get another definition while the server runs.
  const graphs = (name: string): readonly MachineInfo[] => {
    const chart = engine.chart?.(name);
    return chart === undefined ? [] : [machineOf(`graph:${name}`, { ...chart })];
  };
  const charts = () =>
    (own ??= Object.entries(chartDefinitions()).map(([id, definition]) => machineOf(id, definition)));
  const inspection: ServerInspection = {
    machines: () => [...charts(), ...engine.graphs().flatMap(graphs)],

    machine: (id) =>
      id.startsWith("graph:") ? graphs(id.slice(6))[0] : charts().find((machine) => machine.id === id),

    liveThreads: (tenant, limit, permits) => system.live.list(tenant, limit, permits),

    async threadOf(tenant, run, permits) {
      const live = system.live.threadOf(tenant, run);
      // If the run was started without a thread, the id of the thread that was made for it is derived from the run's
      // id.
      const thread = live ?? pairedId(run);
      const key = { tenant, thread, ...(permits && { permits }) };
      const isReachable = permits === undefined || (await permittedThread(journal, key)) !== undefined;
      if (isReachable && (live ?? (await journal.run(key, run))) !== undefined) return thread;
      throw new ServiceError("run.not_found", `Run ${run} does not live; give its thread_id too`);
    },

    scopeOf: (scope) => scope,

    async storedActors(key, run) {
      const record = await permittedThread(journal, key);
      if (record === undefined) throw threadNotFound(key.thread);
      const id = run ?? (await journal.runs(key, { limit: 1, offset: 0 }))[0]?.run_id;
      const found = id === undefined ? undefined : await journal.run(key, id);
      if (run !== null && found === undefined)
        throw new ServiceError("run.not_found", `Run ${run} not found`);
      const shown = [storedThreadActor(record)];
      if (found === undefined) return shown;
      const head =
        record.checkpoint === null ? undefined : await journal.checkpoint(key, "", record.checkpoint);
      const chart = engine.chart?.(found.graph_id);
      const values =
        chart?.valueKey === undefined || head?.run_id !== found.run_id ? {} : await journal.values(key, head);
      return [...shown, ...storedRunActors(found, head, chart, values)];
    },

    async actors(key, run) {
      const stored = await inspection.storedActors(key, run);
      const found = new Map(stored.map((one) => [one.actor.id, one]));
      const add = (actor: InspectedActor, state: InspectedState) => {
        if (run === null || actor.run === null || actor.run === run) found.set(actor.id, { actor, state });
      };
      system.inspect({ ...key, values: false }, { actor: add, event: () => undefined, snapshot: add })();
      return [...found.values()];
    },

    watch: (scope, inspector) => system.inspect(scope, inspector),
  };
  return inspection;
}

function machineOf(id: string, definition: JsonObject): MachineInfo {
  const text = JSON.stringify(definition);
  return { id, hash: md5Hex(text), definition, text };
}
