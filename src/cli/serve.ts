import { dirname, join } from "node:path";
import type { App, AppOptions } from "../app.ts";
import { type Config, findConfig, readConfig } from "../config/config.ts";
import { parseKeyList } from "../access/api-keys.ts";
import { createLogger } from "../platform/log.ts";
import { guardProcess } from "./process-lifecycle.ts";
import type { Invocation } from "./settings.ts";
import { systemClock } from "../platform/clock.ts";
import { VERSION } from "../platform/version.ts";

type Serving = Extract<Invocation, { command: "dev" | "start" }>;

/** Serves until the process is told to stop. */
export async function serve(asked: Serving): Promise<void> {
  const { stdout, stderr } = process;
  // Ignores errors of the output streams: a closed pipe is no reason to stop, and reporting it would fail again.
  for (const stream of [stdout, stderr]) stream.on("error", () => undefined);
  const path = asked.config ?? findConfig(process.cwd());
  // Taken before the file's own variables are set: those must not win over the file when it is read again.
  const outside = { ...process.env };
  const read = () => readConfig(path, outside);
  const config = read();
  const setEnv = environment();
  setEnv(config.env);
  const data = asked.command === "dev" ? join(dirname(config.path), ".heddle") : ".heddle";
  const logger = createLogger({
    clock: systemClock,
    level: asked.settings(process.env, data).level,
    pretty: stderr.isTTY,
    write: (line) => stderr.write(line),
  });
  let running: () => App | undefined = () => undefined;
  const leave = guardProcess(logger, () => running());

  const start = async (config: Config, more: AppOptions): Promise<App> => {
    for (const note of config.notes ?? []) logger.warn(`${config.path}: ${note}`);
    const { level: _, ...settings } = asked.settings(process.env, data);
    const { createApp } = await import("../app.ts");
    const app = await createApp({ ...settings, ...secrets(process.env), config, logger, ...more });
    const { kind, why } = app.transport;
    const { graphs: loaded, langGraphs = new Map() } = more;
    const graphs = loaded ? [...Object.keys(loaded), ...langGraphs.keys()] : Object.keys(config.graphs);
    logger.info("ready", { version: VERSION, transport: kind, why, data: settings.data, graphs });
    stdout.write(`Heddle ${VERSION} listens on ${app.url}\n`);
    return app;
  };
  const open = async () => {
    if (asked.command === "start") {
      const app = await start(config, {});
      running = () => app;
      return;
    }
    process.env["NODE_ENV"] ??= "development";
    const { DevServer, toolLinks } = await import("./dev-server.ts");
    const { systemWatchFiles } = await import("../platform/file-watcher.ts");
    const dev = new DevServer({ config, read, setEnv, start, logger, watch: systemWatchFiles(logger) });
    running = () => dev.app;
    await dev.start();
    if (dev.app !== undefined) stdout.write(toolLinks(dev.app.url, Object.keys(config.graphs)));
  };
  try {
    await open();
  } catch (cause) {
    // The command prints the error and ends.
    leave();
    throw cause;
  }
}

function secrets(env: NodeJS.ProcessEnv): Pick<AppOptions, "keys" | "tokenSecret"> {
  const { HEDDLE_API_KEYS: keys = "", HEDDLE_TOKEN_SECRET: tokenSecret = "" } = env;
  return {
    ...(keys === "" ? {} : { keys: parseKeyList(keys) }),
    ...(tokenSecret === "" ? {} : { tokenSecret }),
  };
}

/**
 * Returns a function that puts variables into the environment, replacing those that it put there before. Variables set from outside win.
 */
function environment(): (env: Config["env"]) => void {
  let own: readonly string[] = [];
  return (env) => {
    for (const name of own) delete process.env[name];
    own = Object.keys(env).filter((name) => process.env[name] === undefined);
    for (const name of own) process.env[name] = env[name];
  };
}
