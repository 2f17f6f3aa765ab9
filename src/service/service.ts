import type { ThreadSystem } from "../../actors/thread-system-interface.ts";
import { ServiceError } from "../model/errors.ts";
import type { ThreadLifetime } from "../model/thread.ts";
import type { WebhookPolicy } from "../model/webhook-policy.ts";
import type { TimeBudget } from "../ports/time-budget.ts";
import type { Catalog } from "../ports/catalog.ts";
import type { Clock } from "../ports/clock.ts";
import type { CronStorage } from "../ports/cron-storage.ts";
import type { Engine } from "../ports/engine.ts";
import type { Journal } from "../ports/journal.ts";
import type { Outbox } from "../ports/outbox.ts";
import type { Store } from "../ports/store.ts";
import type { RunLogRegistry } from "../stream/run-log-registry.ts";
import type { AssistantDefaults } from "../model/assistant.ts";
import { createAssistants, type Assistants } from "./assistants.ts";
import { type Crons, createCrons } from "./crons/crons.ts";
import { createGraphIntrospection, type GraphIntrospection } from "./graph-introspection.ts";
import { createActorInspection, type ActorInspection, type ServerInspection } from "./actor-inspection.ts";
import { createMachineEvents, type MachineEvents } from "./machine-events.ts";
import { createThreadProtocol, type ThreadProtocol } from "./thread-protocol.ts";
import { createRuns, type Runs } from "./runs.ts";
import { createThreadStates, type ThreadStates } from "./thread-states.ts";
import { createThreads, type Threads } from "./threads.ts";
import { createWebhooks, type Webhooks } from "./webhooks/webhooks.ts";

export interface ServiceDeps {
  readonly system: ThreadSystem;
  readonly journal: Journal;
  readonly catalog: Catalog;
  readonly outbox: Outbox;
  readonly store: Store;
  readonly crons: CronStorage;
  readonly engine: Engine;
  readonly runLogs: RunLogRegistry;
  readonly clock: Clock;
  /** Each new id sorts above all earlier ones. */
  readonly newId: () => string;
  /** Makes long work yield to other work. */
  readonly budget: TimeBudget;
  readonly assistantDefaults?: AssistantDefaults | undefined;
  /**
   * Wraps the assistants of this shard. In a server with several processes, all assistants are stored in shard 0 (the home shard), and the
   * other processes read them from the process with that shard.
   */
  readonly assistants?: ((own: Assistants) => Assistants) | undefined;
  readonly policy: WebhookPolicy;
  /** The default lifetime of threads; absent: they do not expire. */
  readonly threadTtl?: ThreadLifetime | undefined;
  /** True if runs may belong to users, see {@link createRuns}. */
  readonly hasUsers?: boolean;
}

/**
 * The API as functions, independent of the transport. Reads use the journal (the stored records) directly, so that a read never loads an
 * actor into memory.
 */
export interface Service {
  readonly threads: Threads;
  readonly states: ThreadStates;
  readonly runs: Runs;
  readonly events: MachineEvents;
  readonly protocol: ThreadProtocol;
  readonly assistants: Assistants;
  readonly drawings: GraphIntrospection;
  readonly crons: Crons;
  readonly webhooks: Webhooks;
  readonly inspection: ActorInspection;
  readonly store: Store;
}

/** The service of the server itself, without permission checks. */
export interface UnrestrictedService extends Service {
  readonly inspection: ServerInspection;
  /**
   * Makes a thread protocol that starts its runs with `runs`, which checks the permissions of a user. The server's own `protocol` starts
   * runs without such checks.
   */
  protocolWith(runs: Pick<Runs, "start">): ThreadProtocol;
  /** Makes machine events that use `parts`, which check the permissions of a user. The server's own `events` have no such checks. */
  eventsWith(parts: Pick<Service, "threads" | "states" | "runs">): MachineEvents;
}

export function createService(deps: ServiceDeps): UnrestrictedService {
  const own = createAssistants(deps);
  const assistants = deps.assistants?.(own) ?? own;
  const webhooks = createWebhooks(deps);
  const crons = createCrons({ ...deps, cronStorage: deps.crons, assistants, webhooks });
  const threads = createThreads({ ...deps, forgetCrons: crons.deleteOfThread });
  const states = createThreadStates(deps);
  const runs = createRuns({ ...deps, assistants, webhooks });
  const protocolWith: UnrestrictedService["protocolWith"] = (started) =>
    createThreadProtocol({ ...deps, runs: started, threads, states });
  const eventsWith: UnrestrictedService["eventsWith"] = (parts) => createMachineEvents({ ...deps, ...parts });
  return {
    crons,
    assistants: withoutCronsOfDeleted(assistants, crons),
    drawings: createGraphIntrospection(deps.engine, assistants),
    threads,
    states,
    runs,
    events: eventsWith({ runs, threads, states }),
    eventsWith,
    protocol: protocolWith(runs),
    protocolWith,
    webhooks,
    inspection: createActorInspection(deps),
    store: deps.store,
  };
}

/** Wraps `assistants`, so that deleting an assistant also deletes its crons. */
export function withoutCronsOfDeleted(
  assistants: Assistants,
  crons: Pick<Crons, "deleteOfAssistant">,
): Assistants {
  return {
    ...assistants,
    async delete(tenant, name, permits) {
      const deleted = await assistants.delete(tenant, name, permits);
      const { assistant_id } = deleted;
      // Deleting a default assistant only resets it. It still exists, and keeps its crons.
      const isGone = await isMissing(async () => assistants.get(tenant, assistant_id));
      if (isGone) await crons.deleteOfAssistant(tenant, assistant_id);
      return deleted;
    },
  };
}

async function isMissing(look: () => Promise<unknown>): Promise<boolean> {
  try {
    await look();
    return false;
  } catch (cause) {
    if (cause instanceof ServiceError && cause.code === "assistant.not_found") return true;
    throw cause;
  }
}
