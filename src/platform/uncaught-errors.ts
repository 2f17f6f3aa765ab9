import type { Logger } from "../ports/logger.ts";

/**
 * Logs uncaught errors instead of ending the process. An error that a node function causes later, in a promise or a
 * timer, must not end all other runs in its thread (the server's or a worker's). Continuing is safe: everything stored
 * is atomic and fenced, so at worst one thread waits for the next start.
 */
export function logUncaughtErrors(logger: Logger): void {
  const log = (message: string) => (cause: unknown) => logger.error(message, { cause });
  process.on("uncaughtException", log("an error that nobody caught"));
  process.on("unhandledRejection", log("a rejected promise that nobody handled"));
}
