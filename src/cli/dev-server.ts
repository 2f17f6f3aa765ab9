import { extname } from "node:path";
import type { App, AppOptions } from "../app.ts";
import type { Config } from "../config/config.ts";
import { loadAuth } from "../graph-loader/load-auth.ts";
import { loadGraphs, type LoadedGraphs } from "../graph-loader/load-graphs.ts";
import { ServiceError } from "../model/errors.ts";
import { readableStack } from "../model/stack-trace.ts";
import type { Logger } from "../ports/logger.ts";
import type { Cancel } from "../ports/scheduler.ts";
import type { WatchFiles, FileWatcher } from "../ports/file-watcher.ts";
import { keepAliveDuring } from "../platform/keep-process-alive.ts";
import { systemRandom } from "../platform/random.ts";
import { systemScheduler } from "../platform/scheduler.ts";

export interface DevServerOptions {
  /** The configuration at the start. */
  readonly config: Config;
  /** Reads the configuration file again. */
  readonly read: () => Config;
  /** Puts the file's variables into the environment, and removes those that it put there before. */
  readonly setEnv: (env: Config["env"]) => void;
  /** Starts a server with this configuration; `more` overrides it. */
  readonly start: (config: Config, more: AppOptions) => Promise<App>;
  readonly watch: WatchFiles;
  readonly logger: Logger;
}

interface Loaded extends LoadedGraphs {
  /** What authenticates users, if it is code of the project. */
  readonly auth?: NonNullable<AppOptions["auth"]>;
}

/** Milliseconds without a further change before a reload: editors write in several steps, and several files at once. */
const QUIET_MS = 100;
/** Milliseconds that running supersteps get when the server restarts; the new server resumes the unfinished runs. */
const DRAIN_MS = 2_000;

/** Files that may repair a failed load, although they were not among the loaded files. */
const SOURCES: ReadonlySet<string> = new Set([
  ".ts",
  ".mts",
  ".cts",
  ".tsx",
  ".js",
  ".mjs",
  ".cjs",
  ".jsx",
  ".json",
]);

/**
 * The development server: it loads the graphs again when their files or the files that these import change. Runs in progress keep their
 * definition; the next run takes the new one. A load that fails changes nothing. When another part of the configuration changes, or the file
 * that authenticates users, the server restarts, on the same port and data.
 */
export class DevServer {
  readonly #options: DevServerOptions;
  readonly #files = new Set<string>();
  /** The file that authenticates users, and what it imports. */
  readonly #authFiles = new Set<string>();
  readonly #watcher: FileWatcher;
  #config: Config;
  #app: App | undefined;
  #port: number | undefined;
  #broken = false;
  #reconfigured = false;
  #hasNewAuth = false;
  #timer: Cancel | undefined;
  readonly #random = systemRandom();
  #working = false;
  #again = false;

  constructor(options: DevServerOptions) {
    this.#options = options;
    this.#config = options.config;
    this.#watcher = options.watch((path) => this.#changed(path));
  }

  /** @throws ServiceError as `createApp` does */
  async start(): Promise<void> {
    this.#working = true;
    this.#follow(this.#config);
    await this.#open(this.#config, await this.#load(this.#config));
    this.#rest();
  }

  /** The current server; undefined during a restart. */
  get app(): App | undefined {
    return this.#app;
  }

  #follow(config: Config): void {
    const graphs = Object.values(config.graphs).map(({ file }) => file);
    for (const file of [config.path, config.envFile, ...graphs]) if (file !== undefined) this.#add(file);
  }

  #add(file: string): void {
    this.#files.add(file);
    this.#watcher.add(file);
  }

  #load(config: Config): Promise<Loaded> {
    const options = { random: this.#random, scheduler: systemScheduler, fresh: true };
    const onFile = (file: string) => this.#add(file);
    const load = async (): Promise<Loaded> => {
      const onWarning = (warning: string) => this.#options.logger.warn(warning);
      const graphs = await loadGraphs(config, { ...options, onFile, onWarning });
      const users = config.auth?.users;
      if (users?.kind !== "handlers") return graphs;
      const onAuthFile = (file: string) => {
        this.#authFiles.add(file);
        onFile(file);
      };
      onAuthFile(users.file.file);
      return { ...graphs, auth: await loadAuth(config.path, users.file, { ...options, onFile: onAuthFile }) };
    };
    return keepAliveDuring(load());
  }

  #changed(path: string): void {
    const { path: file, envFile } = this.#config;
    if (this.#authFiles.has(path)) this.#hasNewAuth = true;
    if (path === file || path === envFile) this.#reconfigured = true;
    else if (!this.#files.has(path) && !(this.#broken && SOURCES.has(extname(path)))) return;
    this.#timer?.();
    this.#timer = systemScheduler.after(QUIET_MS, () => void this.#act());
  }

  /** Reloads. Only one reload at a time: changes made meanwhile cause another one afterwards. */
  async #act(): Promise<void> {
    if (this.#working) {
      this.#again = true;
      return;
    }
    this.#working = true;
    try {
      // During a restart, nothing else keeps the process alive.
      await keepAliveDuring(this.#reload());
      this.#broken = false;
    } catch (cause) {
      this.#broken = true;
      const why = cause instanceof Error ? cause.message : String(cause);
      const stack = ownFrames(cause);
      this.#options.logger.error("what changed cannot be loaded, the graphs stay as they were", {
        why,
        ...(stack !== "" && { stack }),
      });
    } finally {
      this.#rest();
    }
  }

  #rest(): void {
    this.#working = false;
    if (!this.#again) return;
    this.#again = false;
    void this.#act();
  }

  async #reload(): Promise<void> {
    const { logger, setEnv } = this.#options;
    const config = this.#reconfigured ? this.#options.read() : this.#config;
    const hasNewAuth = this.#hasNewAuth;
    // Another change may come while this one is loaded.
    this.#hasNewAuth = false;
    const anew = this.#app === undefined || hasNewAuth || settingsOf(config) !== settingsOf(this.#config);
    if (anew) setEnv(config.env);
    let loaded: Loaded;
    try {
      this.#follow(config);
      loaded = await this.#load(config);
      if (!anew) this.#app?.replaceGraphs(loaded.graphs, loaded.langGraphs);
    } catch (cause) {
      this.#hasNewAuth ||= hasNewAuth;
      if (anew) setEnv(this.#config.env);
      throw cause;
    }
    if (anew) {
      const app = this.#app;
      this.#app = undefined;
      await app?.close(DRAIN_MS);
      await this.#open(config, loaded);
    }
    this.#reconfigured = false;
    this.#config = config;
    logger.info(anew ? "started anew" : "loaded anew", {
      graphs: [...Object.keys(loaded.graphs), ...loaded.langGraphs.keys()],
    });
  }

  async #open(config: Config, { graphs, langGraphs, auth }: Loaded): Promise<void> {
    const port = this.#port === undefined ? {} : { port: this.#port };
    this.#app = await this.#options.start(config, {
      config: { ...config, graphs: {} },
      graphs,
      langGraphs,
      ...(auth && { auth }),
      studio: true,
      stacks: config.stacks ?? true,
      ...port,
    });
    this.#port = this.#app.address.port;
  }
}

/** The configuration without the graphs, which can change under a running server. */
const settingsOf = (config: Config): string => JSON.stringify({ ...config, graphs: null, notes: null });

/** The lines of a stack that name files of the user's project. The first cause of the error is the one thrown there. */
function ownFrames(error: unknown): string {
  if (!(error instanceof Error)) return "";
  if (error.cause instanceof Error) return ownFrames(error.cause);
  // An error of our own says in its message which file it is about.
  if (error instanceof ServiceError) return "";
  const frames = readableStack(String(error.stack)).split("\n");
  const isOwn = (line: string) => /^ {4}at /.test(line) && !/node_modules|\(?node:|\/dist\/src\//.test(line);
  return frames.filter(isOwn).join("\n");
}
