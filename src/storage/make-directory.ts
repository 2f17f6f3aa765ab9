import { existsSync, mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { ServiceError } from "../model/errors.ts";

/**
 * Makes a directory, and those above it. Not by `mkdir` with `recursive`: where a file system answers ENOENT although the parent is
 * there, as /proc does, it never returns.
 * @throws ServiceError `storage.unavailable`
 */
export function makeDirectory(directory: string): void {
  try {
    makeWithParents(directory);
  } catch (cause) {
    throw new ServiceError(
      "storage.unavailable",
      `The directory ${directory} cannot be made: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    );
  }
}

function makeWithParents(directory: string): void {
  if (existsSync(directory) && statSync(directory).isDirectory()) return;
  const parent = dirname(directory);
  if (parent !== directory) makeWithParents(parent);
  mkdirSync(directory);
}
