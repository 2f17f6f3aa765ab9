import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "../ports/logger.ts";

/** A file in the data directory with the URL of the running server, whose port may differ from the configured one. */
const ADDRESS_FILE = "url";

/**
 * Writes the URL of a listening server to a file in the data directory. A failure is only logged, because the server works without the
 * file. Returns a function that removes the file; the caller MUST call it when the server ends.
 */
export function writeAddress(data: string, url: string, logger: Logger): () => void {
  try {
    writeFileSync(join(data, ADDRESS_FILE), `${url}\n`);
  } catch (cause) {
    logger.warn("the file with the server's address could not be written", { cause: String(cause) });
  }
  return () => {
    // The file may have the URL of another server that uses the data directory by now. Such a file stays.
    if (readAddress(data) === url) rmSync(join(data, ADDRESS_FILE), { force: true });
  };
}

/**
 * The URL of the server that uses a data directory, from {@link ADDRESS_FILE}; undefined if there is none. After a kill, it may be the URL
 * of a server that has ended.
 */
export function readAddress(data: string): string | undefined {
  try {
    const url = readFileSync(join(data, ADDRESS_FILE), "utf8").trim();
    return /^http:\/\/\S+$/.test(url) ? url : undefined;
  } catch {
    return undefined;
  }
}
