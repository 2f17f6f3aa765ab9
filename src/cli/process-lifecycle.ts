import { constants } from "node:os";
import type { App } from "../app.ts";
import type { Logger } from "../ports/logger.ts";
import { systemScheduler } from "../platform/scheduler.ts";
import { keepServing } from "../platform/uncaught-errors.ts";

/** Milliseconds for running supersteps to end, and for the whole process. */
const DRAIN = 8_000;
const STOP = 9_500;

/**
 * What the process does about errors that nobody caught, about signals, and about a graph that ends it, also while it is
 * loaded. What is returned says that the process is about to end by itself.
 */
export function guard(logger: Logger, running: () => App | undefined): () => void {
  let leaving = false;
  const exit = (code: number): never => {
    leaving = true;
    process.exit(code);
  };
  keepServing(logger);
  stopOnSignals(logger, running, exit);
  process.on("exit", (code) => {
    if (leaving) return;
    // The stack leads through whoever called process.exit.
    const { stack } = new Error("process.exit was called");
    const serving = running() !== undefined;
    logger.error(
      serving
        ? "a graph ended the process; the next start takes up its runs"
        : "a graph file ended the process while it was loaded",
      { code, stack },
    );
    // Whoever watches over the process would take 0 for a stop that was asked for.
    if (code === 0) process.exitCode = 1;
  });
  return () => {
    leaving = true;
  };
}

function stopOnSignals(logger: Logger, running: () => App | undefined, exit: (code: number) => never): void {
  let stopping = false;
  const stop = (signal: NodeJS.Signals) => {
    const app = running();
    // Asked twice, or before it serves: at once. What is stored is whole at any moment.
    if (stopping || app === undefined) return exit(128 + constants.signals[signal]);
    stopping = true;
    logger.info("stopping", { signal });
    systemScheduler.after(STOP, () => {
      logger.error("did not stop in time; the next start takes up what is left");
      exit(1);
    });
    app.close(DRAIN).then(
      () => {
        logger.info("stopped");
        exit(0);
      },
      (cause: unknown) => {
        logger.error("did not stop in good order", { cause });
        exit(1);
      },
    );
  };
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
  // Its terminal is gone.
  process.on("SIGHUP", stop);
}
