import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "../ports/logger.ts";

/** A file of the data directory with the URL of the server on it: the port may be another one than was expected. */
const ADDRESS_FILE = "url";

/**
 * Writes the URL of a server that listens; without the file, it is only harder to find. The function that is returned removes it, and MUST be
 * called at the end of the server. After a kill it stays until the next start.
 */
export function writeAddress(data: string, url: string, logger: Logger): () => void {
  try {
    writeFileSync(join(data, ADDRESS_FILE), `${url}\n`);
  } catch (cause) {
    logger.warn("the file with the server's address could not be written", { cause: String(cause) });
  }
  return () => {
    // The next server on these data may have begun.
    if (readAddress(data) === url) rmSync(join(data, ADDRESS_FILE), { force: true });
  };
}

/** The URL of the server that runs on a data directory; undefined where none is known. */
export function readAddress(data: string): string | undefined {
  try {
    const url = readFileSync(join(data, ADDRESS_FILE), "utf8").trim();
    return /^http:\/\/\S+$/.test(url) ? url : undefined;
  } catch {
    return undefined;
  }
}
