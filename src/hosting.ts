import type { Config } from "./config.ts";
import { type HostDeps, localHost } from "./engine/host.ts";
import type { GraphRegistry } from "./graph/registry.ts";
import type { Host } from "./ports/host.ts";
import type { Scheduler } from "./ports/scheduler.ts";
import { startWorker } from "./system/worker-thread.ts";
import { workerHost } from "./workers/pool.ts";

export interface Hosting {
  readonly registry: GraphRegistry;
  /** Worker threads for node bodies; 0: they run in this thread. */
  readonly workers: number;
  /** The file that names the graphs: only they can be loaded once more, in another thread. */
  readonly config: Config | undefined;
  /** Their names, without those that were given otherwise. */
  readonly loaded: readonly string[];
  readonly deps: HostDeps & { readonly scheduler: Scheduler };
}

/**
 * What runs the bodies of nodes. Definitions that came later than the workers' run in this thread.
 * @throws ServiceError `config.invalid` when a worker cannot load the graphs
 */
export async function openHost({ registry, workers, config, loaded, deps }: Hosting): Promise<Host> {
  const local = localHost(registry, deps);
  if (workers === 0 || config === undefined || loaded.length === 0) return local;
  const { path, graphs } = config;
  const editions = new Map(loaded.map((name) => [name, registry.current(name).edition]));
  return workerHost({
    count: workers,
    // Beside this file, from the sources as in the package.
    spawn: () =>
      startWorker(new URL(import.meta.url.endsWith(".ts") ? "./worker.ts" : "./worker.js", import.meta.url), {
        path,
        graphs,
      }),
    local,
    serves: ({ graph, edition }) => editions.get(graph) === edition,
    scheduler: deps.scheduler,
    logger: deps.logger,
  });
}
