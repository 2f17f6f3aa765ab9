import { statSync } from "node:fs";
import { dirname } from "node:path";
import { parseArgs, type ParseArgsConfig } from "node:util";

/** Ends the process: what was asked for cannot be done. Said in one line, before anything is measured. */
export function refuse(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(2);
}

/** The options of the command line; one that is not there, or lacks its value, is refused. */
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
  /** Also what lies between whole numbers. */
  readonly fractions?: boolean;
}

/** The number that an option has. */
export function numberOf(name: string, text: string, { least, fractions = false }: Bounds): number {
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (!Number.isFinite(value) || value < least || !(fractions || Number.isInteger(value))) {
    refuse(`--${name} "${text}" is not a ${fractions ? "" : "whole "}number from ${least} on`);
  }
  return value;
}

/** The path of files to be written, in a folder that is there: it would be a pity to find out after an hour. */
export function pathOf(name: string, path: string): string {
  const folder = dirname(path);
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) {
    refuse(`--${name} "${path}": there is no folder ${folder}`);
  }
  return path;
}
