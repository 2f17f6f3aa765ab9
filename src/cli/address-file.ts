import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "../ports/logger.ts";

/** A file in the data directory with the URL of the running server, whose port may differ from the configured one. */
const ADDRESS_FILE = "url";

/**
 * Writes the URL of a listening server. A failure is only logged, because the server works without the file. The returned function removes
 * the file, and MUST be called when the server ends. After a kill, the file stays until the next start.
 */
export function writeAddress(data: string, url: string, logger: Logger): () => void {
  try {
    writeFileSync(join(data, ADDRESS_FILE), `${url}\n`);
  } catch (cause) {
    logger.warn("the file with the server's address could not be written", { cause: String(cause) });
  }
  return () => {
    // The file may be that of another server, which uses the same data by now. Then it must stay.
    if (readAddress(data) === url) rmSync(join(data, ADDRESS_FILE), { force: true });
  };
}

/** The URL of the server that runs on a data directory; undefined if none is known. */
export function readAddress(data: string): string | undefined {
  try {
    const url = readFileSync(join(data, ADDRESS_FILE), "utf8").trim();
    return /^http:\/\/\S+$/.test(url) ? url : undefined;
  } catch {
    return undefined;
  }
}
