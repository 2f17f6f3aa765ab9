import { ServiceError } from "../model/errors.ts";

/** The options of all commands, for the option parser. */
export const OPTIONS = {
  config: { type: "string", short: "c" },
  host: { type: "string" },
  port: { type: "string", short: "p" },
  data: { type: "string" },
  transport: { type: "string" },
  workers: { type: "string" },
  shards: { type: "string" },
  cluster: { type: "string" },
  node: { type: "string" },
  insecure: { type: "boolean" },
  log: { type: "string" },
  relay: { type: "string" },
  accept: { type: "boolean" },
  compose: { type: "boolean" },
  force: { type: "boolean" },
  url: { type: "string" },
  key: { type: "string" },
  chapter: { type: "string" },
  json: { type: "boolean" },
  draw: { type: "string" },
  help: { type: "boolean", short: "h" },
  version: { type: "boolean", short: "v" },
  "n-jobs-per-worker": { type: "string", short: "n" },
  tunnel: { type: "boolean" },
  "no-browser": { type: "boolean" },
  "no-reload": { type: "boolean" },
  "studio-url": { type: "string" },
  "debug-port": { type: "string" },
  "wait-for-client": { type: "boolean" },
  "allow-blocking": { type: "boolean" },
} as const;

/** The options that were given on the command line. */
export type OptionFlags = { readonly [K in keyof typeof OPTIONS]?: string | boolean | undefined };

/** The environment variables. */
export type Variables = { readonly [name: string]: string | undefined };

/** The value of an option, with the name of its flag or variable for error messages. */
export interface GivenOption {
  readonly name: string;
  readonly value: string;
}

/**
 * Finds the value of a flag or, if the flag is not given, of the first of the variables `names` that is set and not empty. `flag` is null
 * if the option has no flag.
 */
export function findGivenOption(
  flags: OptionFlags,
  env: Variables,
  flag: keyof OptionFlags | null,
  ...names: readonly string[]
): GivenOption | undefined {
  const value = flag === null ? undefined : flags[flag];
  if (typeof value === "string") return { name: `--${flag}`, value };
  const name = names.find((candidate) => (env[candidate] ?? "") !== "");
  return name === undefined ? undefined : { name, value: env[name] ?? "" };
}

/** Throws an error that names the option. `what` says what is wrong with its value. @throws ServiceError `config.invalid` */
export function refuseOption({ name, value }: GivenOption, what: string): never {
  throw new ServiceError("config.invalid", `${name} "${value}" ${what}`);
}

/** Returns the value of an option; undefined if it is not given. @throws ServiceError `config.invalid` if `is` returns false */
export function textOption<T extends string>(
  given: GivenOption | undefined,
  is: (text: string) => text is T,
  what: string,
): T | undefined {
  if (given === undefined || is(given.value)) return given?.value as T | undefined;
  return refuseOption(given, what);
}

/**
 * Returns the value of an option that is a whole number without a sign; undefined if it is not given.
 * @throws ServiceError `config.invalid` if the value is not such a number, or `is` returns false
 */
export function numberOption(
  given: GivenOption | undefined,
  is: (value: number) => boolean,
  what: string,
): number | undefined {
  if (given === undefined) return undefined;
  const value = /^\d+$/.test(given.value) ? Number(given.value) : Number.NaN;
  return is(value) ? value : refuseOption(given, what);
}

/** The items of an option whose value is a comma-separated list; undefined if it is not given. Empty items are left out. */
export const listOption = (given: GivenOption | undefined): readonly string[] | undefined =>
  given?.value
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");

export const isPort = (value: number): boolean => Number.isInteger(value) && value >= 0 && value <= 65_535;
