import { defaultLimits, type SystemLimits, type ThreadSystem } from "../actors/port.ts";
import { createSystem } from "../actors/system.ts";
import { type Config, readConfig } from "./config.ts";
import { localHost } from "./engine/host.ts";
import { nativeEngine } from "./engine/native.ts";
import type { GraphDef } from "./graph/graph.ts";
import { GraphRegistry } from "./graph/registry.ts";
import { createHandler } from "./http/handler.ts";
import { createUpgrade } from "./live/upgrade.ts";
import { loadGraphs } from "./loading/graphs.ts";
import { silent } from "./log.ts";
import type { Clock } from "./ports/clock.ts";
import { type Failpoints, noFailpoints } from "./ports/failpoints.ts";
import type { Logger } from "./ports/logger.ts";
import type { Random } from "./ports/random.ts";
import type { Scheduler } from "./ports/scheduler.ts";
import type { Transport } from "./ports/transport.ts";
import { createService } from "./service/service.ts";
import { openStorage, type Storage, type StorageOptions } from "./storage/open.ts";
import { createHub } from "./stream/hub.ts";
import type { StreamSync } from "./stream/attempt.ts";
import { awake, stayAlive } from "./system/alive.ts";
import { bootId } from "./system/boot.ts";
import { systemClock } from "./system/clock.ts";
import { systemRandom } from "./system/random.ts";
import { systemScheduler } from "./system/scheduler.ts";
import { openTransport } from "./transport/open.ts";
import { VERSION } from "./version.ts";

export interface AppOptions {
  /** The graphs to serve, by name. */
  readonly graphs?: { readonly [name: string]: GraphDef };
  /** A configuration file: its graphs are served too, and its settings hold where these options say nothing. */
  readonly config?: string | Config;
  /** The directory that keeps everything, or a storage by its options. Without it, memory: gone at the end. */
  readonly data?: string | StorageOptions;
  /** Instead of `data`: a storage that is open. It is closed with the server. */
  readonly storage?: Storage;
  /** Default: loopback alone. */
  readonly host?: string;
  /** Default 0: any free port. */
  readonly port?: number;
  /** Default: uWebSockets where it has a binary, else Node's own. */
  readonly transport?: Transport["kind"];
  /** Bytes a request body may have; default 16 MiB. */
  readonly maxBody?: number;
  /** When streamed events are shown: given to the system (default), or at once. */
  readonly sync?: StreamSync;
  readonly limits?: Partial<SystemLimits>;
  readonly logger?: Logger;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly scheduler?: Scheduler;
  readonly failpoints?: Failpoints;
}

/** A running server. Several may live in one process. */
export interface App {
  readonly address: Transport["address"];
  /** Where clients reach it: no slash at the end. */
  readonly url: string;
  readonly transport: { readonly kind: Transport["kind"]; readonly why: string };
  readonly storage: Pick<Storage, "stats">;
  readonly system: Pick<ThreadSystem, "counts">;
  /**
   * Stops in good order: no new connections and runs, `ms` (default 5 s) for running supersteps to end, what is left is
   * taken up by the next start on the same data. Called again, it waits for the same end.
   */
  close(ms?: number): Promise<void>;
}

const DEFAULT_BODY = 16 * 1024 * 1024;
const DEFAULT_DRAIN = 5_000;

/**
 * Builds a server out of its parts, takes up what an earlier one left unsettled, and opens the doors.
 * @throws ServiceError `config.invalid`, `graph.invalid`, `storage.locked`, `storage.version`, `storage.unavailable`, `server.address`
 */
export async function createApp(options: AppOptions): Promise<App> {
  const {
    clock = systemClock,
    random = systemRandom(),
    scheduler = systemScheduler,
    failpoints = noFailpoints,
    logger = silent,
  } = options;
  const config = typeof options.config === "string" ? readConfig(options.config) : options.config;
  const registry = new GraphRegistry();
  const loaded = config === undefined ? {} : await awake(loadGraphs(config, { random, scheduler }));
  registry.replace({ ...loaded, ...options.graphs });

  const storage =
    options.storage ?? (await openStorage(storageOf(options.data), { scheduler, clock, failpoints, logger }));
  try {
    const { journal, catalog } = storage;
    const engine = nativeEngine(registry);
    const host = localHost(registry, { logger, random });
    const hub = createHub({ journal, scheduler, logger, sync: options.sync ?? config?.sync ?? "os" });
    const limits = { ...defaultLimits, ...options.limits };
    const boot = bootId(random);
    const system = createSystem({
      journal,
      engine,
      host,
      sinks: hub,
      clock,
      random,
      scheduler,
      failpoints,
      logger,
      boot,
      limits,
    });
    const service = createService({ system, journal, catalog, engine, hub, clock, random });
    await system.recover();

    const open = await openTransport(options.transport);
    const handlers = {
      request: createHandler({ service, scheduler, logger, version: VERSION }),
      upgrade: createUpgrade({ journal, hub, scheduler, logger }),
    };
    const transport = await open(handlers, {
      host: options.host ?? "127.0.0.1",
      port: options.port ?? 0,
      maxBody: options.maxBody ?? config?.maxBody ?? DEFAULT_BODY,
      scheduler,
    });

    const shut = async (ms: number): Promise<void> => {
      // Once nothing listens and nobody is connected, the process would end in the middle of it.
      const release = stayAlive();
      try {
        transport.stopListening();
        await system.drain(ms);
        hub.close();
        await transport.close();
        await host.close();
        await storage.close();
      } finally {
        release();
      }
    };
    let closing: Promise<void> | undefined;
    return {
      address: transport.address,
      url: urlOf(transport.address),
      transport: { kind: open.kind, why: open.why },
      storage,
      system,
      close: (ms = DEFAULT_DRAIN) => (closing ??= shut(ms)),
    };
  } catch (cause) {
    await storage.close();
    throw cause;
  }
}

function storageOf(data: AppOptions["data"]): StorageOptions {
  if (data === undefined) return { kind: "memory" };
  return typeof data === "string" ? { kind: "level", directory: data } : data;
}

function urlOf({ host, port }: Transport["address"]): string {
  // Every address of the machine is no address to go to.
  const reachable = host === "0.0.0.0" || host === "::" ? "localhost" : host;
  return `http://${reachable.includes(":") ? `[${reachable}]` : reachable}:${port}`;
}
