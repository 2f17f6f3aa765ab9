import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { ServiceError } from "../model/errors.ts";

/**
 * Makes a directory and its missing parents. `mkdir` with `recursive` is not used: it never returns on file systems
 * such as /proc, which answer ENOENT although the parent exists.
 * @throws ServiceError `storage.unavailable`
 */
export function makeDirectory(directory: string): void {
  try {
    makeWithParents(directory);
  } catch (cause) {
    throw directoryError(`The directory ${directory} cannot be made`, cause);
  }
}

/** The error for a directory that cannot be used. Its message contains the cause and a hint on how to fix it. */
export function directoryError(what: string, cause: unknown): ServiceError {
  const { message, code } = cause as NodeJS.ErrnoException;
  return new ServiceError("storage.unavailable", `${what}: ${message}; ${remedyOf(code)}`, { cause });
}

function remedyOf(code: string | undefined): string {
  switch (code) {
    case "ENOSPC":
    case "EDQUOT":
      return "free some space on its disk";
    case "EEXIST":
    case "ENOTDIR":
      return "there is a file in its place, or in its path; choose another directory";
    default:
      return "choose a directory that this user can write to";
  }
}

function makeWithParents(directory: string): void {
  if (isDirectory(directory)) return;
  const parent = dirname(directory);
  if (parent !== directory) makeWithParents(parent);
  try {
    mkdirSync(directory);
  } catch (cause) {
    // Another process, such as that of another shard, may have made the directory meanwhile.
    if (!isDirectory(directory)) throw cause;
  }
}

const isDirectory = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
