import { extname } from "node:path";
import type { App, AppOptions } from "../app.ts";
import type { Config } from "../config/config.ts";
import { loadGraphs, type LoadedGraphs } from "../graph-loader/load-graphs.ts";
import type { Logger } from "../ports/logger.ts";
import type { Cancel } from "../ports/scheduler.ts";
import type { Watch, Watcher } from "../ports/file-watcher.ts";
import { awake } from "../platform/keep-process-alive.ts";
import { systemRandom } from "../platform/random.ts";
import { systemScheduler } from "../platform/scheduler.ts";

export interface DevOptions {
  /** What the configuration file says at the start. */
  readonly config: Config;
  /** Reads it again. */
  readonly read: () => Config;
  /** Puts the file's variables into the environment, instead of those that it put there before. */
  readonly setEnv: (env: Config["env"]) => void;
  /** Starts a server by the configuration, but for what `more` says. */
  readonly start: (config: Config, more: AppOptions) => Promise<App>;
  readonly watch: Watch;
  readonly logger: Logger;
}

/** Milliseconds without a change before it is acted on: editors write in several steps, and several files at once. */
const QUIET = 100;
/** What running supersteps get when the whole server starts anew; the new one takes up what is left. */
const DRAIN = 2_000;

/** Where the mend of what could not be loaded may be, although it was not among the files that were. */
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
 * A server whose graphs are loaded anew when their files change, or what those import: runs that are under way keep the
 * definition that they began with, the next one takes the new. What cannot be loaded changes nothing. When another part of
 * the configuration changes, the server starts anew, on the same port and data.
 */
export class Dev {
  readonly #options: DevOptions;
  readonly #files = new Set<string>();
  readonly #watcher: Watcher;
  #config: Config;
  #app: App | undefined;
  #port: number | undefined;
  #broken = false;
  #reconfigured = false;
  #timer: Cancel | undefined;
  readonly #random = systemRandom();
  #working = false;
  #again = false;

  constructor(options: DevOptions) {
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

  /** The server of today. */
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

  #load(config: Config): Promise<LoadedGraphs> {
    const onFile = (file: string) => this.#add(file);
    return awake(
      loadGraphs(config, { random: this.#random, scheduler: systemScheduler, fresh: true, onFile }),
    );
  }

  #changed(path: string): void {
    const { path: file, envFile } = this.#config;
    if (path === file || path === envFile) this.#reconfigured = true;
    else if (!this.#files.has(path) && !(this.#broken && SOURCES.has(extname(path)))) return;
    this.#timer?.();
    this.#timer = systemScheduler.after(QUIET, () => void this.#act());
  }

  /** One at a time: what changes meanwhile is looked at afterwards. */
  async #act(): Promise<void> {
    if (this.#working) {
      this.#again = true;
      return;
    }
    this.#working = true;
    try {
      // Between one server and the next, nothing else holds the process.
      await awake(this.#reload());
      this.#broken = false;
    } catch (cause) {
      this.#broken = true;
      const why = cause instanceof Error ? cause.message : String(cause);
      this.#options.logger.error(`what changed cannot be loaded, the graphs stay as they were: ${why}`, {
        cause,
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
    const anew = this.#app === undefined || settingsOf(config) !== settingsOf(this.#config);
    if (anew) setEnv(config.env);
    let loaded: LoadedGraphs;
    try {
      this.#follow(config);
      loaded = await this.#load(config);
      if (!anew) this.#app?.replaceGraphs(loaded.graphs, loaded.langGraphs);
    } catch (cause) {
      if (anew) setEnv(this.#config.env);
      throw cause;
    }
    if (anew) {
      const app = this.#app;
      this.#app = undefined;
      await app?.close(DRAIN);
      await this.#open(config, loaded);
    }
    this.#reconfigured = false;
    this.#config = config;
    logger.info(anew ? "started anew" : "loaded anew", {
      graphs: [...Object.keys(loaded.graphs), ...loaded.langGraphs.keys()],
    });
  }

  async #open(config: Config, { graphs, langGraphs }: LoadedGraphs): Promise<void> {
    const port = this.#port === undefined ? {} : { port: this.#port };
    this.#app = await this.#options.start(config, {
      config: { ...config, graphs: {} },
      graphs,
      langGraphs,
      studio: true,
      stacks: config.stacks ?? true,
      ...port,
    });
    this.#port = this.#app.address.port;
  }
}

/** All but the graphs, which can change under a running server. */
const settingsOf = (config: Config): string => JSON.stringify({ ...config, graphs: null, notes: null });

/** Where people look at a server that runs on their own machine. */
export function links(url: string, graphs: readonly string[]): string {
  const [graph = ""] = graphs;
  const at = encodeURIComponent(url);
  return `  LangGraph Studio: https://smith.langchain.com/studio?baseUrl=${at}
  Agent Chat:       https://agentchat.vercel.app/?apiUrl=${at}&assistantId=${encodeURIComponent(graph)}
`;
}
