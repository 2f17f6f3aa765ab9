import { dirname, join, resolve } from "node:path";
import type { App, AppOptions, ShardApp } from "../app.ts";
import { checkDataDirectory, type Config, configFileAt, readConfig } from "../config/config.ts";
import { parseKeyList } from "../access/api-keys.ts";
import { createLogger } from "../platform/log.ts";
import { writeAddress } from "./address-file.ts";
import { banner, type StartedServer, toolLinks } from "./banner.ts";
import { guardProcess, type RunningServer, type StopProcess } from "./process-lifecycle.ts";
import { createClusterNetwork, epochOf, killThisProcess } from "./cluster-child.ts";
import { prepareClusterData, prepareShards, shardDirectory, storedClusterOf } from "./shard-directories.ts";
import {
  handOverShard,
  type HangLimits,
  handleParentMessages,
  progressReporter,
  reportToParent,
  ShardProcesses,
  type ShardTask,
  takeShardTask,
  createUnixNetwork,
  reportPrepared,
} from "./shard-processes.ts";
import { ServiceError } from "../model/errors.ts";
import { isLoopback } from "../access/hosts.ts";
import { type OutputStream, applyStyleFor } from "../platform/terminal.ts";
import type { Invocation } from "./command-line.ts";
import { DEFAULT_PORT, type Settings } from "./settings.ts";
import { warningsOfVariables } from "./environment-variables.ts";
import { registerInProcessServer } from "../platform/sdk-in-process-server.ts";
import type { OnProgress } from "../ports/work-progress.ts";
import { registerSdkLogger } from "../platform/sdk-logger.ts";
import { systemRandom } from "../platform/random.ts";
import { systemScheduler } from "../platform/scheduler.ts";
import { DEFAULT_HANG_LIMIT_MS, DEFAULT_START_LIMIT_MS } from "./child-process-watchdog.ts";
import { ProgressDisplay } from "./progress-display.ts";
import { systemClock } from "../platform/clock.ts";
import { VERSION } from "../platform/version.ts";

/** The settings of a server that consists of several processes. */
const PROCESS_SETTINGS = ["shards", "cluster", "hangLimitMs", "startLimitMs"] as const;

type Serving = Extract<Invocation, { command: "dev" | "start" }>;

/** Starts the server of `heddle dev` or `heddle start`. The server runs until the process gets a stop signal. */
export async function serve(options: Serving): Promise<void> {
  const { stdout, stderr } = process;
  const task = takeShardTask(process.env);
  const network = task?.cluster && createClusterNetwork(task.cluster);
  const epoch = task?.cluster && epochOf(task.cluster);
  // Errors of the output streams are ignored: a closed pipe is no reason to stop, and reporting the error would fail too.
  for (const stream of [stdout, stderr]) stream.on("error", () => undefined);
  const path = configFileAt(options.config);
  // The environment without the variables of the env file. Variables of the environment take precedence over the file, so its earlier
  // values must not be among them when the file is read again.
  const outside = { ...process.env };
  const read = () => limited(withGraphs(readConfig(path, outside)), options.concurrent);
  const config = read();
  const setEnv = environment();
  setEnv(config.env);
  const data = options.command === "dev" ? join(dirname(config.path), ".heddle") : ".heddle";
  const { level, log: format } = options.settings(process.env, data);
  const isText = ({ isTTY }: OutputStream) => (format ?? (isTTY === true ? "text" : "json")) === "text";
  const isLogText = isText(stderr);
  const logger = createLogger({
    clock: systemClock,
    level,
    ...(isLogText && { text: applyStyleFor(stderr, process.env) }),
    ...(task?.number !== undefined && { common: { shard: task.number } }),
    write: (line) => progress.beside(() => stderr.write(line)),
  });
  const progress = new ProgressDisplay({
    clock: systemClock,
    scheduler: systemScheduler,
    // Processes of several shards share one terminal, on which each could erase only its own line. They log their progress instead.
    ...(isLogText && stderr.isTTY && task === undefined && { terminal: stderr }),
    line: (_, { work, ...figures }) => logger.info(work, figures),
  });
  for (const warning of warningsOfVariables(process.env)) logger.warn(warning);
  for (const note of options.notes) logger.info(note);
  // The logger is registered before any file is loaded, because graph files may ask for it while they are loaded.
  registerSdkLogger(logger);
  let running: () => RunningServer | undefined = () => undefined;
  /** The server of a process with a shard. */
  let shardApp: ShardApp | undefined;
  const onStop =
    task &&
    ((stop: StopProcess) => {
      let isEnding = false;
      const end = (): void => {
        isEnding = true;
        stop("SIGTERM");
      };
      const handOver = (): void => {
        if (shardApp === undefined) return end();
        logger.info("the shard is handed over; open connections to other shards go on");
        // A second stop would end the process at once.
        const endOnce = () => void (isEnding || end());
        // After an error the stop fails too, and reports it.
        handOverShard(shardApp).then(endOnce, endOnce);
      };
      // A process of a cluster node ends at once when its parent has ended. Only the parent renews the leases, so another node may soon
      // take the shard.
      handleParentMessages(end, handOver, task.cluster === undefined ? end : killThisProcess);
    });
  const leave = guardProcess(logger, () => running(), onStop);

  let removeAddress: () => void = () => undefined;
  process.once("exit", () => removeAddress());
  const reportProgress = task && progressReporter();
  const onProgress: OnProgress = (work) => {
    // A storage that is opened again while the process serves has no display.
    if (task !== undefined && running() !== undefined) return;
    progress.onProgress(work);
    reportProgress?.();
  };
  /** The storage of a process that a parent started with a task. In memory if the process has no shard. */
  const storageOf = async (
    { number, cluster }: ShardTask,
    data: string,
  ): Promise<NonNullable<AppOptions["data"]>> => {
    if (number === undefined) return { kind: "memory" };
    const directory = shardDirectory(data, number);
    if (cluster === undefined || epoch === undefined) return directory;
    // Only processes of a cluster load this module.
    const { createReplicatedStorageOptions } = await import("./replicated-shard-storage.ts");
    let isPrepared = false;
    const onCaughtUp = (): void => {
      reportProgress?.();
      if (!isPrepared) reportPrepared();
      isPrepared = true;
    };
    return createReplicatedStorageOptions(
      { shard: number, epoch },
      directory,
      cluster,
      logger,
      onProgress,
      onCaughtUp,
    );
  };
  /** The settings for `createApp`: all except those of the log and of the division into processes. */
  const appSettings = () => {
    const {
      level: _,
      log: __,
      shards: ___,
      cluster: ____,
      hangLimitMs: _____,
      startLimitMs: ______,
      ...settings
    } = options.settings(process.env, data);
    return settings;
  };
  const start = async (config: Config, more: AppOptions): Promise<App> => {
    for (const note of config.notes ?? []) logger.warn(`${config.path}: ${note}`);
    const settings = appSettings();
    checkDataDirectory(settings.data, config.path);
    if (task === undefined) prepareShards(settings.data, undefined);
    const { createApp, createShardApp } = await import("../app.ts");
    const isPortAsked = settings.port !== undefined || more.port !== undefined;
    const port = isPortAsked ? {} : { port: DEFAULT_PORT, takeNextPort: true };
    const access = secrets(process.env);
    const given = { ...settings, ...port, ...access, config, logger, onProgress, ...more };
    if (task !== undefined) {
      const { number, count, port, tokenSecret, sockets = "", cluster } = task;
      const own: AppOptions = {
        ...given,
        port,
        tokenSecret,
        takeNextPort: false,
        data: await storageOf(task, settings.data),
      };
      const place = {
        ...(number !== undefined && { number }),
        count,
        ...(cluster !== undefined && { node: cluster.node }),
        network: network ?? createUnixNetwork(sockets, number),
      };
      const app = await createShardApp(own, place).finally(() => progress.end());
      shardApp = app;
      registerInProcessServer((request) => app.fetch(request), app.url);
      const peer = network?.listening;
      reportToParent({ address: app.address, url: app.url, transport: app.transport, ...(peer && { peer }) });
      return app;
    }
    const app = await createApp(given).finally(() => progress.end());
    registerInProcessServer((request) => app.fetch(request), app.url);
    announce(app, config, settings, more);
    return app;
  };
  /** Starts the processes of this server: one for each shard or, with `cluster`, those of this cluster node. */
  const startProcesses = async ({
    shards,
    cluster,
    hangLimitMs = DEFAULT_HANG_LIMIT_MS,
    startLimitMs = DEFAULT_START_LIMIT_MS,
  }: {
    readonly [Name in (typeof PROCESS_SETTINGS)[number]]: Settings[Name] | undefined;
  }): Promise<RunningServer> => {
    const settings = appSettings();
    const { host, port } = settings;
    checkDataDirectory(settings.data, config.path);
    const { claimNextPort, claimPort } = await import("../app.ts");
    const free = await (port === undefined ? claimNextPort(host, DEFAULT_PORT) : claimPort(host, port));
    const { tokenSecret } = secrets(process.env);
    const limits = { hangLimitMs, startLimitMs };
    const processes =
      cluster === undefined
        ? startShards(shards as number, free, settings.data, tokenSecret, limits)
        : await (
            await import("./cluster-node.ts")
          ).ClusterNodeProcesses.open({
            cluster,
            shards,
            host,
            port: free,
            tokenSecret,
            data: settings.data,
            storedCluster: storedClusterOf(settings.data),
            checkData: (id) => prepareClusterData(settings.data, id),
            ...limits,
            logger,
          });
    announce(await processes.start(), config, settings, {});
    const { stopMs } = processes;
    return {
      close: () => processes.close(),
      ...(stopMs !== undefined && { stopMs }),
      system: { figures: { running: 0, queued: 0 } },
    };
  };
  const startShards = (
    count: number,
    port: number,
    data: string,
    secret: string | undefined,
    limits: HangLimits,
  ): ShardProcesses => {
    prepareShards(data, count);
    const tokenSecret = secret ?? Buffer.from(systemRandom().bytes(32)).toString("hex");
    return new ShardProcesses({ count, port, tokenSecret }, { ...limits, logger });
  };
  const announce = (
    app: Listening,
    config: Config,
    settings: Omit<Settings, "level" | "log" | Exclude<(typeof PROCESS_SETTINGS)[number], "shards">>,
    more: AppOptions,
  ): void => {
    const isPortAsked = settings.port !== undefined || more.port !== undefined;
    removeAddress = writeAddress(resolve(settings.data), urlOf(app, settings.mount, config), logger);
    const graphs = graphsOf(config, more);
    // The log line is left out if the banner shows the same data on the same terminal.
    if (!isText(stdout) || !isLogText) {
      const { kind, why } = app.transport;
      logger.info("ready", { version: VERSION, transport: kind, why, data: settings.data, graphs });
    }
    const isNext = !isPortAsked && app.address.port !== DEFAULT_PORT;
    if (isText(stdout)) {
      const allowsStudio = options.command === "dev";
      const hasKeys = secrets(process.env).keys !== undefined;
      const started = { app, graphs, settings, config, isNext, hasKeys, allowsStudio };
      stdout.write(banner(describeStart(started), applyStyleFor(stdout, process.env)));
    } else {
      const reason = isNext ? `Port ${DEFAULT_PORT} is taken: ` : "";
      stdout.write(`${reason}Heddle ${VERSION} listens on ${app.url}\n`);
    }
  };
  const open = async () => {
    if (options.command === "start") {
      const { shards, cluster, hangLimitMs, startLimitMs } = options.settings(process.env, data);
      const isOneProcess = task !== undefined || (shards ?? cluster) === undefined;
      const app = await (isOneProcess
        ? start(config, {})
        : startProcesses({ shards, cluster, hangLimitMs, startLimitMs }));
      running = () => app;
      return;
    }
    process.env["NODE_ENV"] ??= "development";
    const { DevServer } = await import("./dev-server.ts");
    const { systemWatchFiles } = await import("../platform/file-watcher.ts");
    const dev = new DevServer({ config, read, setEnv, start, logger, watch: systemWatchFiles(logger) });
    running = () => dev.app;
    await dev.start();
    if (dev.app === undefined || isText(stdout)) return;
    const { mount } = options.settings(process.env, data);
    for (const [name, link] of toolLinks(urlOf(dev.app, mount, config), Object.keys(config.graphs)))
      stdout.write(`  ${`${name}:`.padEnd(17)} ${link}\n`);
  };
  try {
    await open();
  } catch (cause) {
    // Marks the end of the process as caused by this error, not by a graph.
    leave();
    if (task !== undefined) return reportToParent({ failure: messageOf(cause) }, () => process.exit(1));
    throw cause;
  }
}

/** Refuses a configuration without graphs. A program that calls `createApp` can pass graphs in other ways, but a command cannot. */
function withGraphs(config: Config): Config {
  if (Object.keys(config.graphs).length > 0) return config;
  throw new ServiceError(
    "config.invalid",
    `${config.path}: graphs names no graph; add one, such as { "agent": "./agent.ts:default" }`,
  );
}

/** If `all` is given, it replaces the configured limit of all runs in progress. */
function limited(config: Config, all: number | undefined): Config {
  if (all === undefined) return config;
  const concurrent = { perTenant: Infinity, perGraph: {}, ...config.runs?.concurrent, all };
  return { ...config, runs: { ...config.runs, concurrent } };
}

/**
 * The names of the graphs. `heddle dev` has loaded the graphs and passes them in the options; otherwise the names are in the configuration.
 */
function graphsOf(config: Config, { graphs, langGraphs = new Map() }: AppOptions): readonly string[] {
  return graphs === undefined ? Object.keys(config.graphs) : [...Object.keys(graphs), ...langGraphs.keys()];
}

function messageOf(cause: unknown): string {
  if (cause instanceof ServiceError) return cause.message;
  return cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
}

/** The data of a listening server that the log line or the banner shows. */
type Listening = Pick<App, "address" | "url" | "transport">;

const urlOf = (app: Listening, mount: string | undefined, config: Config): string =>
  app.url + (mount ?? config.access?.mount ?? "");

interface Start {
  readonly app: Listening;
  readonly graphs: readonly string[];
  readonly settings: Omit<Settings, "level" | "log" | Exclude<(typeof PROCESS_SETTINGS)[number], "shards">>;
  readonly config: Config;
  /** Whether the server listens on another port than the default one, because the default port was taken. */
  readonly isNext: boolean;
  readonly hasKeys: boolean;
  readonly allowsStudio: boolean;
}

function describeStart({
  app,
  graphs,
  settings,
  config,
  isNext,
  hasKeys,
  allowsStudio,
}: Start): StartedServer {
  const { transport } = app;
  const isLocal = isLoopback(settings.host);
  const credentials = [
    ...(hasKeys ? ["API keys"] : []),
    ...(config.auth === undefined ? [] : [config.auth.users.kind === "jwt" ? "tokens of users" : "users"]),
  ].join(", ");
  const isOpen = credentials === "";
  return {
    version: VERSION,
    url: urlOf(app, settings.mount, config),
    graphs,
    data: resolve(settings.data),
    disabled: config.access?.disabled ?? [],
    allowsStudio,
    access: `${isLocal ? "this machine only" : `all that reach ${settings.host}`}, ${isOpen ? "without a key" : `with ${credentials}`}`,
    notes: [
      ...(isNext ? [`Port ${DEFAULT_PORT} is taken: this is the next free one`] : []),
      ...(isOpen && !isLocal
        ? ["There is no key: whoever reaches this address may use the server; HEDDLE_API_KEYS sets some"]
        : []),
      ...(transport.kind === "node" && settings.transport !== "node"
        ? [`There is ${transport.why}: Node's own HTTP server serves, which is slower`]
        : []),
    ],
  };
}

function secrets(env: NodeJS.ProcessEnv): Pick<AppOptions, "keys" | "tokenSecret"> {
  const { HEDDLE_API_KEYS: keys = "", HEDDLE_TOKEN_SECRET: tokenSecret = "" } = env;
  return {
    ...(keys === "" ? {} : { keys: parseKeyList(keys) }),
    ...(tokenSecret === "" ? {} : { tokenSecret }),
  };
}

/**
 * Returns a function that puts variables into the environment, and removes those that its previous call put there. Variables that have been
 * set by other means are not replaced.
 */
function environment(): (env: Config["env"]) => void {
  let own: readonly string[] = [];
  return (env) => {
    for (const name of own) delete process.env[name];
    own = Object.keys(env).filter((name) => process.env[name] === undefined);
    for (const name of own) process.env[name] = env[name];
  };
}
