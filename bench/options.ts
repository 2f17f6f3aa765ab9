import { statSync } from "node:fs";
import { dirname } from "node:path";
import { parseArgs, type ParseArgsConfig } from "node:util";

/** Ends the process with exit code 2 and a one-line message: the bench cannot do what the command line asks for. */
export function refuse(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(2);
}

/** Parses the options of the command line. Refuses unknown options and missing values. */
export function readOptions<const T extends NonNullable<ParseArgsConfig["options"]>>(
  options: T,
): ReturnType<typeof parseArgs<{ options: T }>>["values"] {
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    refuse(error instanceof Error ? error.message : String(error));
  }
}

interface Bounds {
  readonly least: number;
  /** Whether the value may have a fraction. */
  readonly fractions?: boolean;
}

/** Parses a number from the command line. Refuses a value below `least`, and a fraction unless `fractions` is set. */
export function numberOf(name: string, text: string, { least, fractions = false }: Bounds): number {
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (!Number.isFinite(value) || value < least || !(fractions || Number.isInteger(value))) {
    refuse(`--${name} "${text}" is not a ${fractions ? "" : "whole "}number from ${least} on`);
  }
  return value;
}

/**
 * Checks the path of an output file before anything is measured: the folder must exist, since a failed write at the
 * end would lose the results.
 */
export function pathOf(name: string, path: string): string {
  const folder = dirname(path);
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) {
    refuse(`--${name} "${path}": there is no folder ${folder}`);
  }
  return path;
}
