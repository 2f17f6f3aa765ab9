import { extname } from "node:path";
import type { App, AppOptions } from "../app.ts";
import type { Config } from "../config/config.ts";
import type { ModuleExport } from "../model/module-export.ts";
import { loadEmbedder } from "../graph-loader/load-embedder.ts";
import { loadAuth, loadKeySet } from "../graph-loader/load-auth.ts";
import { type LoadedGraphs, loadGraphs, type LoadOptions } from "../graph-loader/load-graphs.ts";
import { loadHttpApp } from "../graph-loader/load-http-app.ts";
import { ServiceError } from "../model/errors.ts";
import { withoutTsxUrls } from "../model/stack-without-tsx-urls.ts";
import type { Logger } from "../ports/logger.ts";
import type { Cancel } from "../ports/scheduler.ts";
import type { WatchFiles, FileWatcher } from "../ports/file-watcher.ts";
import { keepAliveDuring, keepProcessAlive } from "../platform/keep-process-alive.ts";
import { systemScheduler } from "../platform/scheduler.ts";

export interface DevServerOptions {
  /** The configuration with which the server starts. */
  readonly config: Config;
  /** Reads the configuration file again. */
  readonly read: () => Config;
  /** Puts the variables of the env file into the environment, and removes those that an earlier call put there. */
  readonly setEnv: (env: Config["env"]) => void;
  /** Starts a server with a configuration. Options in `more` override it. */
  readonly start: (config: Config, more: AppOptions) => Promise<App>;
  readonly watch: WatchFiles;
  readonly logger: Logger;
}

/** The loaded code of a project: its graphs (`LoadedGraphs`), and its authentication, HTTP application and embedder (`parts`). */
type LoadedProject = LoadedGraphs & { readonly parts: Pick<AppOptions, "auth" | "httpApp" | "store"> };

/**
 * A reload begins when no file has changed for this many milliseconds, because editors write a file in several steps, and several files at
 * once.
 */
const QUIET_MS = 100;
/** The longest time in milliseconds for which a restart waits for running supersteps. The new server resumes unfinished runs. */
const DRAIN_MS = 2_000;

/**
 * Extensions of source files. After a failed load, a change to any such file next to a watched file causes another attempt, because the
 * file that repairs the fault may not be watched yet.
 */
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
 * The development server. It loads the graphs again when one of their files, or a file that these import, changes. Runs in progress keep
 * their graph; later runs use the new graph. If a load fails, the current graphs stay.
 *
 * If the rest of the configuration changes, the server restarts on the same port and data. It also restarts at each change if the project
 * has code besides its graphs, such as its authentication, because that code may share modules with the graphs.
 */
export class DevServer {
  readonly #options: DevServerOptions;
  readonly #files = new Set<string>();
  readonly #watcher: FileWatcher;
  #config: Config;
  #app: App | undefined;
  #port: number | undefined;
  #hasFailed = false;
  #loads = 0;
  #timer: Cancel | undefined;
  #working = false;
  #isReloadDue = false;

  constructor(options: DevServerOptions) {
    this.#options = options;
    this.#config = options.config;
    this.#watcher = options.watch((path) => this.#changed(path));
  }

  async start(): Promise<void> {
    this.#working = true;
    this.#watchFilesOf(this.#config);
    await this.#open(this.#config, await keepAliveDuring(this.#load(this.#config)));
    // After a failed restart no server runs, and nothing else keeps the process alive.
    keepProcessAlive();
    this.#endReload();
  }

  /** The current server; undefined during a restart, and after a failed restart. */
  get app(): App | undefined {
    return this.#app;
  }

  #watchFilesOf(config: Config): void {
    const graphs = Object.values(config.graphs).map(({ file }) => file);
    for (const file of [config.path, config.envFile, ...graphs]) if (file !== undefined) this.#add(file);
  }

  #add(file: string): void {
    this.#files.add(file);
    this.#watcher.add(file);
  }

  /** Loads all code of the project, and watches the loaded files. */
  async #load(config: Config): Promise<LoadedProject> {
    const { path, auth, httpApp, store } = config;
    const options: LoadOptions = {
      scheduler: systemScheduler,
      reload: this.#loads++,
      onFile: (file) => this.#add(file),
      onWarning: (warning) => this.#options.logger.warn(warning),
    };
    const load = <T>(
      part: (config: string, file: ModuleExport, options: LoadOptions) => Promise<T>,
      file: ModuleExport,
    ) => {
      this.#add(file.file);
      return part(path, file, options);
    };
    const graphs = await loadGraphs(config, options);
    const users = auth?.users;
    if (users?.kind === "jwt" && users.jwks.kind === "file") {
      this.#add(users.jwks.file);
      // The server reads this file when it starts. It is read here too, so that an error in it is found before the old server closes.
      loadKeySet(users.jwks.file);
    }
    const parts = {
      ...(users?.kind === "handlers" && { auth: await load(loadAuth, users.file) }),
      ...(httpApp && { httpApp: await load(loadHttpApp, httpApp) }),
      ...(store?.index && {
        store: { index: { ...store.index, embed: await load(loadEmbedder, store.index.embed) } },
      }),
    };
    return { ...graphs, parts };
  }

  #changed(path: string): void {
    if (!this.#files.has(path) && !(this.#hasFailed && SOURCES.has(extname(path)))) return;
    this.#timer?.();
    this.#timer = systemScheduler.after(QUIET_MS, () => void this.#reloadWhenFree());
  }

  /** Reloads the project. Reloads never overlap: a change during a reload causes another reload after it. */
  async #reloadWhenFree(): Promise<void> {
    if (this.#working) {
      this.#isReloadDue = true;
      return;
    }
    this.#working = true;
    try {
      await this.#reload();
      this.#hasFailed = false;
    } catch (cause) {
      this.#hasFailed = true;
      const message = cause instanceof Error ? cause.message : String(cause);
      const stack = `${message}\n${ownFrames(cause)}`.trimEnd();
      this.#options.logger.error(
        this.#app === undefined
          ? "the server could not start again; it tries at the next change"
          : "what changed cannot be loaded, the graphs stay as they were",
        { error: Object.assign(new Error(message), { stack }) },
      );
    } finally {
      this.#endReload();
    }
  }

  #endReload(): void {
    this.#working = false;
    if (!this.#isReloadDue) return;
    this.#isReloadDue = false;
    void this.#reloadWhenFree();
  }

  async #reload(): Promise<void> {
    const { logger, setEnv } = this.#options;
    let isRestart = true;
    let config: Config;
    let project: LoadedProject;
    try {
      config = this.#options.read();
      isRestart =
        this.#app === undefined || hasOtherCode(config) || settingsOf(config) !== settingsOf(this.#config);
      if (isRestart) setEnv(config.env);
      this.#watchFilesOf(config);
      project = await this.#load(config);
      if (!isRestart) this.#app?.replaceGraphs(project.graphs, project.langGraphs);
    } catch (cause) {
      if (isRestart) setEnv(this.#config.env);
      throw cause;
    }
    if (isRestart) {
      const app = this.#app;
      this.#app = undefined;
      await app?.close(DRAIN_MS);
      await this.#open(config, project);
    }
    this.#config = config;
    logger.info(isRestart ? "restarted" : "reloaded", {
      graphs: [...Object.keys(project.graphs), ...project.langGraphs.keys()],
    });
  }

  async #open(config: Config, { graphs, langGraphs, parts }: LoadedProject): Promise<void> {
    const port = this.#port === undefined ? {} : { port: this.#port };
    this.#app = await this.#options.start(config, {
      config: { ...config, graphs: {} },
      graphs,
      langGraphs,
      ...parts,
      studio: true,
      stacks: config.stacks ?? true,
      ...port,
    });
    this.#port = this.#app.address.port;
  }
}

/** The settings of a configuration as text, for comparison. If only its graphs or notes have changed, no restart is needed. */
const settingsOf = (config: Config): string => JSON.stringify({ ...config, graphs: null, notes: null });

/** Whether the project has code other than graphs, or a key file that the server reads when it starts. */
const hasOtherCode = ({ auth, httpApp, store }: Config): boolean =>
  auth?.users.kind === "handlers" ||
  (auth?.users.kind === "jwt" && auth.users.jwks.kind === "file") ||
  httpApp !== undefined ||
  store?.index !== undefined;

/**
 * The stack lines of an error that name files of the user's project. They are taken from the innermost cause, which is the error that the
 * project's code threw.
 */
function ownFrames(error: unknown): string {
  if (!(error instanceof Error)) return "";
  if (error.cause instanceof Error) return ownFrames(error.cause);
  // The message of a `ServiceError` names the file, so no stack is needed.
  if (error instanceof ServiceError) return "";
  const frames = withoutTsxUrls(String(error.stack)).split("\n");
  const isOwn = (line: string) => /^ {4}at /.test(line) && !/node_modules|\(?node:|\/dist\/src\//.test(line);
  return frames.filter(isOwn).join("\n");
}
