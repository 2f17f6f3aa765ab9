import { machines } from "../../actors/inspection/chart-definitions.ts";
import type { ThreadSystem } from "../../actors/thread-system.ts";
import { ServiceError, threadNotFound } from "../model/errors.ts";
import { hex32, twin } from "../model/ids.ts";
import type { JsonObject } from "../model/json.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Engine } from "../ports/engine.ts";
import type {
  Inspector,
  InspectScope,
  LiveThread,
  Shown,
  ShownActor,
  ShownState,
} from "../ports/inspector.ts";
import type { Journal } from "../ports/journal.ts";
import { recordedRun, recordedThread } from "./stored-actors.ts";

/** A chart that actors follow. */
export interface Machine {
  /** `thread`, `run`, `task`, or `graph:` and the graph's name. */
  readonly id: string;
  /** Tells one form of it from another. */
  readonly hash: string;
  /** As XState reads it. */
  readonly definition: JsonObject;
  /** The same, as text. */
  readonly text: string;
}

/** What people look at: the charts, and the actors that follow them. It wakes none. */
export interface Inspection {
  machines(): readonly Machine[];
  /** Undefined: there is none of that name. */
  machine(id: string): Machine | undefined;
  /** Threads whose actors live: those at work first. */
  live(tenant: string, limit: number): readonly LiveThread[];
  /** @throws ServiceError `run.not_found` where only the thread's id could tell */
  threadOf(tenant: string, run: string): Promise<string>;
  /**
   * A thread with its run (null: its latest) and that run's graph, as the records have them: for who does not live now.
   * @throws ServiceError `thread.not_found`, `run.not_found`
   */
  recorded(key: ThreadKey, run: string | null): Promise<readonly Shown[]>;
  /** The same, but of those who live as they stand now; parents first. */
  actors(key: ThreadKey, run: string | null): Promise<readonly Shown[]>;
  /** Shows what lives and happens, until the function that comes back is called. */
  watch(scope: InspectScope, inspector: Inspector): () => void;
}

interface Deps {
  readonly system: ThreadSystem;
  readonly journal: Journal;
  readonly engine: Engine;
}

export function createInspection({ system, journal, engine }: Deps): Inspection {
  let own: readonly Machine[] | undefined;
  // A graph may get another definition while the server runs: its chart is made anew for whoever asks.
  const graphs = (name: string): readonly Machine[] => {
    const chart = engine.chart?.(name);
    return chart === undefined ? [] : [machineOf(`graph:${name}`, { ...chart })];
  };
  const charts = () =>
    (own ??= Object.entries(machines()).map(([id, definition]) => machineOf(id, definition)));
  const inspection: Inspection = {
    machines: () => [...charts(), ...engine.graphs().flatMap(graphs)],

    machine: (id) =>
      id.startsWith("graph:") ? graphs(id.slice(6))[0] : charts().find((machine) => machine.id === id),

    live: (tenant, limit) => system.live.list(tenant, limit),

    async threadOf(tenant, run) {
      const live = system.live.threadOf(tenant, run);
      if (live !== undefined) return live;
      // One that was given no thread is on one that is found by its own id.
      const alone = twin(run);
      if ((await journal.run({ tenant, thread: alone }, run)) !== undefined) return alone;
      throw new ServiceError("run.not_found", `Run ${run} does not live; give its thread_id too`);
    },

    async recorded(key, run) {
      const record = await journal.thread(key);
      if (record === undefined) throw threadNotFound(key.thread);
      const id = run ?? (await journal.runs(key, { limit: 1, offset: 0 }))[0]?.run_id;
      const found = id === undefined ? undefined : await journal.run(key, id);
      if (run !== null && found === undefined)
        throw new ServiceError("run.not_found", `Run ${run} not found`);
      const shown = [recordedThread(record)];
      if (found === undefined) return shown;
      const head =
        record.checkpoint === null ? undefined : await journal.checkpoint(key, "", record.checkpoint);
      return [...shown, ...recordedRun(found, head, engine.chart?.(found.graph_id))];
    },

    async actors(key, run) {
      const stored = await inspection.recorded(key, run);
      const found = new Map(stored.map((one) => [one.actor.id, one]));
      const add = (actor: ShownActor, state: ShownState) => {
        if (run === null || actor.run === null || actor.run === run) found.set(actor.id, { actor, state });
      };
      system.inspect(
        { tenant: key.tenant, thread: key.thread, values: false },
        { actor: add, event: () => undefined, snapshot: add },
      )();
      return [...found.values()];
    },

    watch: (scope, inspector) => system.inspect(scope, inspector),
  };
  return inspection;
}

function machineOf(id: string, definition: JsonObject): Machine {
  const text = JSON.stringify(definition);
  return { id, hash: hex32(text), definition, text };
}
