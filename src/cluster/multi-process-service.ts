import type { Service } from "../service/service.ts";
import { shardedCrons, shardedInspection, shardedWebhooks } from "./sharded-service.ts";
import { shardedRuns } from "./sharded-runs.ts";
import { shardedThreads } from "./sharded-threads.ts";
import { ShardRouter } from "./shard-router.ts";

/** The services whose lists contain records of all shards. */
export type ListingService = Pick<Service, "threads" | "runs" | "crons" | "webhooks" | "inspection">;

/**
 * The service of a process that has one of several shards, or none. Lists, counts and bulk calls cover all shards. A call for one
 * thread or cron concerns this process's shard: requests for other shards are forwarded before they reach this service.
 */
export class MultiProcessService implements Service {
  readonly #own: Service;
  readonly #router: ShardRouter<ListingService>;

  /**
   * @param others the service of each other process, by the number of its shard
   * @param number the shard of this process; undefined if it has none
   */
  constructor(own: Service, others: ReadonlyMap<number, ListingService>, number: number | undefined) {
    this.#own = own;
    const count = others.size + (number === undefined ? 0 : 1);
    const shards = Array.from({ length: count }, (_, shard) => others.get(shard) ?? own);
    this.#router = new ShardRouter(shards, number);
  }

  get threads(): Service["threads"] {
    return shardedThreads(this.#router);
  }

  get states(): Service["states"] {
    return this.#own.states;
  }

  get runs(): Service["runs"] {
    return shardedRuns(this.#router);
  }

  get events(): Service["events"] {
    return this.#own.events;
  }

  get protocol(): Service["protocol"] {
    return this.#own.protocol;
  }

  get assistants(): Service["assistants"] {
    return this.#own.assistants;
  }

  get drawings(): Service["drawings"] {
    return this.#own.drawings;
  }

  get crons(): Service["crons"] {
    return shardedCrons(this.#router);
  }

  get webhooks(): Service["webhooks"] {
    const { webhooks } = this.#own;
    return { ...shardedWebhooks(this.#router), accept: (request) => webhooks.accept(request) };
  }

  get inspection(): Service["inspection"] {
    const { inspection } = this.#own;
    return {
      ...shardedInspection(this.#router),
      machines: () => inspection.machines(),
      machine: (id) => inspection.machine(id),
      // Watches only this process's shard. The client's socket is also connected to the other processes, each of which watches its own
      // shard.
      watch: (scope, inspector) => inspection.watch(scope, inspector),
      scopeOf: (scope) => inspection.scopeOf(scope),
    };
  }

  get store(): Service["store"] {
    return this.#own.store;
  }
}
