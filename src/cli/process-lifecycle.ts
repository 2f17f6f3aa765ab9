import { constants } from "node:os";
import type { App } from "../app.ts";
import type { Logger } from "../ports/logger.ts";
import { systemScheduler } from "../platform/scheduler.ts";
import { logUncaughtErrors } from "../platform/uncaught-errors.ts";

/** The longest time that a shutdown waits for running supersteps, in milliseconds. */
const DRAIN_MS = 8_000;
/** The longest time that a shutdown may take, in milliseconds. Then the process exits. */
const STOP_MS = 9_500;

/** A server that can be stopped, with the numbers of its running and queued runs. */
export interface RunningServer extends Pick<App, "close"> {
  readonly system: { readonly figures: { readonly running: number; readonly queued: number } };
  /** The longest time that the shutdown of this server may take, in milliseconds. Default: {@link STOP_MS}. */
  readonly stopMs?: number;
}

/** The signals that ask a process to shut down. */
export const STOP_SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

/** Shuts the server down, then ends the process. */
export type StopProcess = (signal: NodeJS.Signals) => void;

/** Registers `stop`, which is called each time the process is asked to stop. */
type OnStop = (stop: StopProcess) => void;

/**
 * Logs uncaught errors, stops the server when the process is asked to stop, and logs an error if a graph ends the process; all of this also
 * while graphs are loaded. The caller MUST call the returned function before it ends the process itself, or else the log says that a graph
 * ended it. `onStop`: registers for requests to stop. Default: for stop signals.
 */
export function guardProcess(
  logger: Logger,
  running: () => RunningServer | undefined,
  onStop: OnStop = onSignals,
): () => void {
  let leaving = false;
  const exit = (code: number): never => {
    leaving = true;
    process.exit(code);
  };
  logUncaughtErrors(logger);
  onStop(stopper(logger, running, exit));
  process.on("exit", (code) => {
    if (leaving) return;
    // The stack shows from where `process.exit` was called.
    const { stack } = new Error("process.exit was called");
    const serving = running() !== undefined;
    logger.error(
      serving
        ? "a graph ended the process; the next start resumes its runs"
        : "a graph ended the process during the start: its file while it was loaded, or a node of a run that was resumed; the stack says which",
      { code, stack },
    );
    // A supervisor would take exit code 0 for an intended end.
    if (code === 0) process.exitCode = 1;
  });
  return () => {
    leaving = true;
  };
}

function stopper(
  logger: Logger,
  current: () => RunningServer | undefined,
  exit: (code: number) => never,
): StopProcess {
  let stopping = false;
  return (signal) => {
    const app = current();
    // On a second signal, or before the server has started, the process ends at once. The stored data is consistent at any moment.
    if (stopping || app === undefined) {
      if (stopping)
        logger.info("ended at once by a second signal; the next start resumes unfinished runs", { signal });
      return exit(128 + constants.signals[signal]);
    }
    stopping = true;
    logger.info("stopping", { signal });
    systemScheduler.after(app.stopMs ?? STOP_MS, () => {
      logger.error("did not stop in time; the next start resumes unfinished runs");
      exit(1);
    });
    const { running } = app.system.figures;
    if (running > 0) logger.info(waitingFor(running));
    app.close(DRAIN_MS).then(
      () => {
        const { running: parked, queued } = app.system.figures;
        // The number of unfinished runs is logged because the next start resumes them.
        logger.info("stopped", parked + queued > 0 ? { unfinished_runs: parked + queued } : {});
        exit(0);
      },
      (cause: unknown) => {
        logger.error("the shutdown failed", { cause });
        exit(1);
      },
    );
  };
}

const onSignals: OnStop = (stop) => {
  // SIGHUP means that the terminal was closed.
  for (const signal of STOP_SIGNALS) process.on(signal, () => stop(signal));
};

function waitingFor(runs: number): string {
  const runCount = runs === 1 ? "1 run" : `${runs} runs`;
  return `waiting up to ${DRAIN_MS / 1_000} s for the running nodes of ${runCount}; a second signal (Ctrl-C) ends it at once`;
}
