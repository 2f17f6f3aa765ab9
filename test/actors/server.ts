import {
  createSystem,
  defaultLimits,
  type SystemLimits,
  type ThreadSystem,
} from "../../actors/create-system.ts";
import type { Interpreter } from "../../actors/statechart-interpreter.ts";
import { createInThreadNodeExecutor } from "../../src/engine/in-thread-node-executor.ts";
import { createNativeEngine } from "../../src/engine/native-engine.ts";
import { GraphRegistry } from "../../src/graph/graph-registry.ts";
import { createMonotonicIds } from "../../src/model/ids.ts";
import type { Fact } from "../../src/model/run-event.ts";
import type { MultitaskStrategy, RunKwargs, RunRecord } from "../../src/model/run.ts";
import type { ThreadKey } from "../../src/model/thread.ts";
import { noFailpoints } from "../../src/ports/failpoints.ts";
import type { ReadHeapUsage } from "../../src/ports/heap-usage.ts";
import type { Engine } from "../../src/ports/engine.ts";
import type { NodeExecutor } from "../../src/ports/node-executor.ts";
import type { Logger } from "../../src/ports/logger.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import type { KeyValueStore } from "../../src/ports/key-value-store.ts";
import { openStorage, type Storage } from "../../src/storage/open-storage.ts";
import { createTimerHandler } from "../../src/service/admit-timer-run.ts";
import { createStore, DEFAULT_STORE_POLICY } from "../../src/service/store/store.ts";
import { createRunLogRegistry, type RunLogRegistry } from "../../src/stream/run-log-registry.ts";
import { SimulatedClock } from "../simulation/clock.ts";
import { SimulatedRandom } from "../simulation/random.ts";
import { SimulatedScheduler } from "../simulation/scheduler.ts";
import { draftOf } from "./draft.ts";

const quiet = () => undefined;

/** The actors of one server over real storage, with a clock that the test advances. */
export class Server {
  readonly scheduler: SimulatedScheduler;
  readonly storage: Storage;
  readonly system: ThreadSystem;
  readonly runLogs: RunLogRegistry;
  readonly engine: Engine;
  readonly clock: SimulatedClock;
  readonly random: SimulatedRandom;

  private constructor(
    storage: Storage,
    scheduler: SimulatedScheduler,
    clock: SimulatedClock,
    random: SimulatedRandom,
    system: ThreadSystem,
    runLogs: RunLogRegistry,
    engine: Engine,
  ) {
    this.engine = engine;
    this.storage = storage;
    this.scheduler = scheduler;
    this.system = system;
    this.runLogs = runLogs;
    this.clock = clock;
    this.random = random;
  }

  static async start(
    graph: unknown,
    {
      kv = new MemoryKeyValueStore(),
      limits = {},
      seed = 1,
      at,
      born,
      warned = [],
      logged,
      hosted = (host) => host,
      interpret,
      heap = () => ({ used: 0, limit: 1 }),
    }: {
      kv?: KeyValueStore;
      limits?: Partial<SystemLimits>;
      seed?: number;
      /** The wall clock's time at the start. */
      at?: number;
      /** Called before anything runs, so that the test can kill the server during recovery. */
      born?: (scheduler: SimulatedScheduler) => void;
      /** Wraps the executor that runs node functions. */
      hosted?: (host: NodeExecutor) => NodeExecutor;
      interpret?: Interpreter;
      /** What the server reads as its heap. Default: there is enough memory. */
      heap?: ReadHeapUsage;
      /** Receives the messages logged as warnings or errors. */
      warned?: string[];
      /** Receives the messages logged at the level `info`. Default: they are ignored. */
      logged?: string[];
    } = {},
  ): Promise<Server> {
    const warn = (message: string) => void warned.push(message);
    const logger: Logger = { debug: quiet, info: (message) => void logged?.push(message), warn, error: warn };
    const clock = new SimulatedClock(at);
    const scheduler = new SimulatedScheduler(clock);
    born?.(scheduler);
    const random = new SimulatedRandom(seed);
    const deps = { scheduler, clock, failpoints: noFailpoints, logger, heap };
    const storage = await openStorage({ kind: "key-value", store: kv }, deps);
    const registry = new GraphRegistry().add("graph", graph);
    const { journal, catalog } = storage;
    const runLogs = createRunLogRegistry({ journal, scheduler, logger });
    const engine = createNativeEngine(registry, scheduler);
    const system = createSystem({
      ...deps,
      journal,
      engine,
      executor: hosted(createInThreadNodeExecutor(registry, { logger, random, clock, scheduler })),
      sinks: runLogs,
      store: createStore({ ...deps, items: catalog.items, policy: DEFAULT_STORE_POLICY }),
      random,
      boot: "boot",
      limits: { ...defaultLimits, ...limits },
      interpret,
    });
    const server = new Server(storage, scheduler, clock, random, system, runLogs, engine);
    const admitted = createTimerHandler({
      engine,
      journal,
      runs: {
        start: (key, _request, options) =>
          system.admit(key, {
            ...draftOf(server.newId(), { input: null, event: true, ...options?.event }, "enqueue"),
          }),
      },
    });
    system.onTimer(admitted);
    await server.do(system.recover());
    return server;
  }

  /** Runs everything that is ready until the promise has settled. */
  async do<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const done = () => (settled = true);
    promise.then(done, done);
    for (let turn = 0; !settled && turn < 100; turn++) await this.scheduler.settle();
    if (!settled) throw new Error("still waiting, with nothing left to run");
    return promise;
  }

  readonly newId = createMonotonicIds(
    () => this.clock.now(),
    (count) => this.random.bytes(count),
  );

  async thread(): Promise<ThreadKey> {
    const key = { tenant: "_", thread: this.newId() };
    await this.do(this.system.create(key, { metadata: {}, if_exists: "raise" }));
    return key;
  }

  /** Starts a run; rejects if it is refused. */
  admit(
    key: ThreadKey,
    {
      input = {},
      strategy = "reject",
      ...kwargs
    }: Partial<RunKwargs> & { strategy?: MultitaskStrategy } = {},
  ): Promise<RunRecord> {
    const draft = draftOf(this.newId(), { input, ...kwargs }, strategy);
    return this.do(this.system.admit(key, draft));
  }

  async record(key: ThreadKey, { run_id }: RunRecord): Promise<RunRecord | undefined> {
    return this.storage.journal.run(key, run_id);
  }

  async values(key: ThreadKey): Promise<Readonly<Record<string, unknown>>> {
    const { journal } = this.storage;
    const thread = await journal.thread(key);
    if (thread === undefined || thread.checkpoint === null) return {};
    const checkpoint = await journal.checkpoint(key, "", thread.checkpoint);
    return checkpoint === undefined ? {} : journal.values(key, checkpoint);
  }

  async facts(key: ThreadKey, { run_id }: RunRecord): Promise<readonly Fact[]> {
    const chunks = await this.storage.journal.events(key, run_id, -1, 1_000);
    return chunks.flatMap((chunk) => chunk.facts);
  }
}
