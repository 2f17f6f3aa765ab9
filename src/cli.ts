#!/usr/bin/env node
import type { App, AppOptions } from "./app.ts";
import { findConfig, readConfig } from "./config.ts";
import { keyList } from "./door/keys.ts";
import { createLogger } from "./log.ts";
import { ServiceError } from "./model/errors.ts";
import type { Logger } from "./ports/logger.ts";
import { HELP, invocation, type Settings } from "./settings.ts";
import { systemClock } from "./system/clock.ts";
import { systemScheduler } from "./system/scheduler.ts";
import { VERSION } from "./version.ts";

/** Milliseconds for running supersteps to end, and for the whole process. */
const DRAIN = 8_000;
const STOP = 9_500;

async function start(settings: Settings): Promise<void> {
  const { level, config: file, ...rest } = settings;
  const { stderr, stdout } = process;
  const logger = createLogger({
    clock: systemClock,
    level,
    pretty: stderr.isTTY,
    write: (line) => stderr.write(line),
  });
  // A reader that has gone away is no reason to stop, and saying so would fail again.
  for (const stream of [stderr, stdout]) stream.on("error", () => undefined);
  keepServing(logger);
  let app: App | undefined;
  stopOnSignals(logger, () => app);

  const config = readConfig(file ?? findConfig(process.cwd()));
  // What the environment says already wins over the file.
  for (const [name, value] of Object.entries(config.env)) process.env[name] ??= value;
  // Not for the other commands, which would have to wait for all of it.
  const { createApp } = await import("./app.ts");
  // Only now: the keys may stand in the file's environment.
  app = await createApp({ ...rest, ...secrets(process.env), config, logger });
  const { kind, why } = app.transport;
  logger.info("ready", {
    version: VERSION,
    transport: kind,
    why,
    data: rest.data,
    graphs: Object.keys(config.graphs),
  });
  stdout.write(`Heddle ${VERSION} listens on ${app.url}\n`);
}

/**
 * What a node body leaves behind, a rejected promise or an error in a timer, must not end the runs of all others. Going on
 * is safe: everything stored is atomic and fenced, so at worst one thread waits for the next start.
 */
function keepServing(logger: Logger): void {
  const log = (message: string) => (cause: unknown) => logger.error(message, { cause });
  process.on("uncaughtException", log("an error that nobody caught"));
  process.on("unhandledRejection", log("a rejected promise that nobody handled"));
}

function secrets(env: NodeJS.ProcessEnv): Pick<AppOptions, "keys" | "tokenSecret"> {
  const { HEDDLE_API_KEYS: keys = "", HEDDLE_TOKEN_SECRET: tokenSecret = "" } = env;
  return { ...(keys === "" ? {} : { keys: keyList(keys) }), ...(tokenSecret === "" ? {} : { tokenSecret }) };
}

function stopOnSignals(logger: Logger, running: () => App | undefined): void {
  let stopping = false;
  const stop = (signal: NodeJS.Signals) => {
    const app = running();
    // Asked twice, or before it serves: at once. What is stored is whole at any moment.
    if (stopping || app === undefined) process.exit(signal === "SIGINT" ? 130 : 143);
    stopping = true;
    logger.info("stopping", { signal });
    systemScheduler.after(STOP, () => {
      logger.error("did not stop in time; the next start takes up what is left");
      process.exit(1);
    });
    app.close(DRAIN).then(
      () => {
        logger.info("stopped");
        process.exit(0);
      },
      (cause: unknown) => fail(cause),
    );
  };
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
}

function fail(cause: unknown): never {
  const text =
    cause instanceof ServiceError ? cause.message : cause instanceof Error ? cause.stack : String(cause);
  process.stderr.write(`heddle: ${text}\n`);
  process.exit(1);
}

const asked = invocation(process.argv.slice(2), process.env);
switch (asked.command) {
  case "help":
    process.stdout.write(HELP);
    break;
  case "version":
    process.stdout.write(`${VERSION}\n`);
    break;
  case "refused":
    process.stderr.write(`heddle: ${asked.why}\nTry: heddle --help\n`);
    process.exitCode = 2;
    break;
  case "start":
    start(asked.settings).catch(fail);
}
