import type { Logger } from "../ports/logger.ts";

/**
 * Logs uncaught errors instead of ending the process. An error that a node function causes later, in a promise or a timer,
 * must not end all other runs of the server or of a worker thread. Continuing is safe, because every write to the storage is
 * atomic and fenced: at worst, the runs of one conversation thread do not continue until the server starts again.
 */
export function logUncaughtErrors(logger: Logger): void {
  const log = (message: string) => (cause: unknown) => logger.error(message, { cause });
  process.on("uncaughtException", log("an error that nobody caught"));
  process.on("unhandledRejection", log("a rejected promise that nobody handled"));
}
