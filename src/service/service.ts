import type { ThreadSystem } from "../../actors/port.ts";
import type { WebhookPolicy } from "../model/webhook-policy.ts";
import type { Catalog } from "../ports/catalog.ts";
import type { Clock } from "../ports/clock.ts";
import type { Engine } from "../ports/engine.ts";
import type { Journal } from "../ports/journal.ts";
import type { Outbox } from "../ports/outbox.ts";
import type { Random } from "../ports/random.ts";
import type { Store } from "../ports/store.ts";
import type { Hub } from "../stream/hub.ts";
import { createAssistants, type Assistants } from "./assistants.ts";
import { createDrawings, type Drawings } from "./drawings.ts";
import { createInspection, type Inspection } from "./inspection.ts";
import { createProtocol, type Protocol } from "./protocol.ts";
import { createRuns, type Runs } from "./runs.ts";
import { createStates, type States } from "./states.ts";
import { createThreads, type Threads } from "./threads.ts";
import { createWebhooks, type Webhooks } from "./webhooks/webhooks.ts";

export interface ServiceDeps {
  readonly system: ThreadSystem;
  readonly journal: Journal;
  readonly catalog: Catalog;
  readonly outbox: Outbox;
  readonly store: Store;
  readonly engine: Engine;
  readonly hub: Hub;
  readonly clock: Clock;
  readonly random: Random;
  /** What webhooks may be. */
  readonly policy: WebhookPolicy;
}

/** The contract as functions, whatever face asks. Reads go to the journal, never through an actor: they wake nobody. */
export interface Service {
  readonly threads: Threads;
  readonly states: States;
  readonly runs: Runs;
  readonly protocol: Protocol;
  readonly assistants: Assistants;
  readonly drawings: Drawings;
  readonly webhooks: Webhooks;
  readonly inspection: Inspection;
  readonly store: Store;
}

export function createService(deps: ServiceDeps): Service {
  const assistants = createAssistants(deps);
  const webhooks = createWebhooks(deps);
  const threads = createThreads(deps);
  const states = createStates(deps);
  const runs = createRuns({ ...deps, assistants, webhooks });
  return {
    assistants,
    drawings: createDrawings(deps.engine, assistants),
    threads,
    states,
    runs,
    protocol: createProtocol({ ...deps, runs, threads, states }),
    webhooks,
    inspection: createInspection(deps),
    store: deps.store,
  };
}
