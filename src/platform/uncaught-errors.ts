import type { Logger } from "../ports/logger.ts";

/**
 * Logs uncaught errors instead of ending the process, so that an error in a promise or timer of a node function does not end all other
 * runs. Continuing is safe because every write to the storage is atomic and fenced. At worst, the runs of one conversation thread do not
 * continue until the server starts again.
 */
export function logUncaughtErrors(logger: Logger): void {
  const log = (message: string) => (cause: unknown) => logger.error(message, { cause });
  process.on("uncaughtException", log("an error that nobody caught"));
  process.on("unhandledRejection", log("a rejected promise that nobody handled"));
}
