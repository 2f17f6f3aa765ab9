import { parseArgs } from "node:util";
import {
  type Config,
  isPositiveInteger,
  isWorkerCount,
  isStreamSync,
  STREAM_SYNC_MODES,
} from "../config/config.ts";
import { readPathPrefix } from "../access/config.ts";
import { isLogLevel, type LogLevel } from "../platform/log.ts";
import { ServiceError } from "../model/errors.ts";

/** Settings from the command line and the environment. An absent one is left to the configuration file. */
export interface Settings {
  readonly host: string;
  readonly port: number;
  readonly data: string;
  readonly level: LogLevel;
  readonly transport?: "uws" | "node";
  readonly maxBody?: number;
  readonly workers?: number;
  readonly sync?: NonNullable<Config["sync"]>;
  /** Allows listening on other addresses than loopback without a key. */
  readonly insecure?: true;
  /** The level at which requests are logged. */
  readonly requestLog?: LogLevel;
  readonly hosts?: readonly string[];
  readonly origins?: readonly string[];
  readonly mount?: string;
  readonly webhooks?: { readonly secret: string };
}

export type Invocation =
  | { readonly command: "help" | "version" }
  | {
      readonly command: "dev" | "start";
      /** The path of the configuration file, if one was given. */
      readonly config: string | undefined;
      /**
       * Reads the other settings, after the file has been read: its `env` counts as environment, but the real environment wins.
       * @throws ServiceError `config.invalid`, naming the flag or variable
       */
      settings(env: Env, data: string): Settings;
    }
  | { readonly command: "check"; readonly data: string }
  | { readonly command: "repair"; readonly data: string; readonly accept: boolean }
  | { readonly command: "backup"; readonly data: string; readonly target: string }
  | {
      readonly command: "inspect";
      /** The server's URL, with the prefix of its paths. */
      readonly url: string;
      readonly thread: string | undefined;
      /** The port on which to serve the feed. */
      readonly relay: number | undefined;
    }
  | { readonly command: "refused"; readonly why: string };

export const HELP = `Usage: heddle COMMAND [options]

Commands
  start          Serve the graphs of a configuration file
  dev            Serve the graphs of a configuration file, and reload them when their files change
  check          Read a whole data directory and list what is damaged; exit code 1 if anything is
  repair         Rebuild a damaged database; --accept also gives up what is lost, so that its threads are served again
  backup DIR     Copy a data directory to DIR, also while a server uses it
  inspect [ID]   Print the address of the inspector, for one thread or for all; --relay PORT forwards the statecharts'
                 events to tools of @statelyai/inspect on this machine (HEDDLE_API_KEY: the server's key, if it has one)

Options
  --config FILE      Configuration file; default: heddle.json, then langgraph.json, in this directory
  --host HOST        Address to listen on; default 127.0.0.1. Any other address needs HEDDLE_API_KEYS or --insecure
  --port PORT        Port to listen on; default 2024. 0 takes a free port
  --data DIR         Data directory; default .heddle in this directory (dev: next to the configuration file)
  --transport KIND   uws or node; default: uws if its binary loads on this machine
  --workers N        Run nodes in N worker threads; default 0: on the main thread (start only)
  --insecure         Listen on other addresses without a key
  --help, --version

Environment
  An option wins over a variable, and a variable over the configuration file.
  HEDDLE_CONFIG, HEDDLE_HOST (or HOST), HEDDLE_PORT (or PORT), HEDDLE_DATA, HEDDLE_TRANSPORT, HEDDLE_WORKERS,
  HEDDLE_INSECURE=1            The options above
  HEDDLE_API_KEYS              API keys, separated by commas, each KEY or TENANT:KEY
  HEDDLE_TOKEN_SECRET          Secret that signs WebSocket tokens, 32 bytes or more; default: a new one at each start
  HEDDLE_ALLOWED_HOSTS         Host names, separated by commas, that a server without a key accepts besides loopback
  HEDDLE_CORS_ALLOW_ORIGINS    Origins, separated by commas, that browsers may call from (or CORS_ALLOW_ORIGINS)
  HEDDLE_MOUNT_PREFIX          Prefix of all paths (or MOUNT_PREFIX)
  HEDDLE_WEBHOOK_SECRET        Secret that signs webhooks
  HEDDLE_MAX_BODY              Largest request body, in bytes
  HEDDLE_STREAMS_SYNC          Where stream events are stored: os or memory
  HEDDLE_LOG                   Log level: debug, info, warn or error
  HEDDLE_REQUEST_LOG           Log level of the lines about requests; default debug
`;

const OPTIONS = {
  config: { type: "string" },
  host: { type: "string" },
  port: { type: "string" },
  data: { type: "string" },
  transport: { type: "string" },
  workers: { type: "string" },
  insecure: { type: "boolean" },
  relay: { type: "string" },
  accept: { type: "boolean" },
  help: { type: "boolean", short: "h" },
  version: { type: "boolean", short: "v" },
} as const;

/** The commands, each with the flags that it accepts. */
const COMMANDS = {
  dev: ["config", "host", "port", "data", "transport", "insecure"],
  start: ["config", "host", "port", "data", "transport", "workers", "insecure"],
  check: ["data"],
  repair: ["data", "accept"],
  backup: ["data"],
  inspect: ["host", "port", "relay"],
} as const satisfies { readonly [command: string]: readonly (keyof Flags)[] };

type Command = keyof typeof COMMANDS;

type Env = { readonly [name: string]: string | undefined };

/** Parses the command line (without the program's name) and the environment. */
export function parseCommandLine(args: readonly string[], env: Env): Invocation {
  let parsed;
  try {
    parsed = parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  } catch (cause) {
    // Only the first sentence: the rest is the parser's hint about quoting.
    return refused((cause as Error).message.split(". ")[0] ?? "");
  }
  const { values: flags, positionals } = parsed;
  if (flags.help === true || positionals[0] === "help") return { command: "help" };
  if (flags.version === true) return { command: "version" };
  const [command, ...rest] = positionals;
  const commands = Object.keys(COMMANDS).join(", ");
  if (command === undefined) return refused(`name a command: ${commands}`);
  if (!isCommand(command)) return refused(`there is no command "${command}"; there are: ${commands}`);
  const taken: readonly string[] = COMMANDS[command];
  const other = Object.keys(flags).find((flag) => !taken.includes(flag));
  if (other !== undefined) return refused(`heddle ${command} takes no --${other}`);
  const hasTarget = command === "backup" || command === "inspect";
  const [target, extra] = hasTarget ? rest : [undefined, ...rest];
  if (extra !== undefined) return refused(`"${extra}" is one argument too many`);
  const data = given(flags, env, "data", "HEDDLE_DATA")?.value ?? ".heddle";
  switch (command) {
    case "check":
      return { command, data };
    case "repair":
      return { command, data, accept: flags.accept === true };
    case "backup":
      if (target === undefined || target === "")
        return refused("name the directory to copy to: heddle backup DIR");
      return { command, data, target };
    case "inspect":
      try {
        const { host, port, mount = "" } = settingsOf(flags, env, data);
        const url = `http://${host.includes(":") ? `[${host}]` : host}:${port}${mount}`;
        const relay = number(given(flags, env, "relay"), isPort, "is not a whole number from 0 to 65535");
        return { command, url, thread: target, relay };
      } catch (cause) {
        return refused((cause as Error).message);
      }
    case "dev":
    case "start":
      try {
        // Checked now, so that mistakes are reported at once, and again when the file's variables are known.
        settingsOf(flags, env, data);
      } catch (cause) {
        return refused((cause as Error).message);
      }
      return {
        command,
        config: given(flags, env, "config", "HEDDLE_CONFIG")?.value,
        settings: (env, data) => settingsOf(flags, env, data),
      };
  }
}

const isCommand = (name: string): name is Command => Object.hasOwn(COMMANDS, name);

const refused = (why: string): Invocation => ({ command: "refused", why });

type Flags = { readonly [K in keyof typeof OPTIONS]?: string | boolean | undefined };

/** A setting's value, with the name of its flag or variable for messages. */
interface Given {
  readonly name: string;
  readonly value: string;
}

/** The value of a flag or, without it, of the first variable that is set. */
function given(
  flags: Flags,
  env: Env,
  flag: keyof Flags | null,
  ...names: readonly string[]
): Given | undefined {
  const value = flag === null ? undefined : flags[flag];
  if (typeof value === "string") return { name: `--${flag}`, value };
  const name = names.find((candidate) => (env[candidate] ?? "") !== "");
  return name === undefined ? undefined : { name, value: env[name] ?? "" };
}

function settingsOf(flags: Flags, env: Env, data: string): Settings {
  const find = (flag: keyof Flags | null, ...names: readonly string[]) => given(flags, env, flag, ...names);
  const host = find("host", "HEDDLE_HOST", "HOST");
  const hosts = listOf(find(null, "HEDDLE_ALLOWED_HOSTS"));
  const origins = listOf(find(null, "HEDDLE_CORS_ALLOW_ORIGINS", "CORS_ALLOW_ORIGINS"));
  const prefix = find(null, "HEDDLE_MOUNT_PREFIX", "MOUNT_PREFIX");
  const mount = readPathPrefix(prefix?.value, (what) => refuse(prefix as Given, what));
  const requestLog = read(find(null, "HEDDLE_REQUEST_LOG"), isLogLevel, NO_LEVEL);
  const transport = read(find("transport", "HEDDLE_TRANSPORT"), isTransport, "is not uws or node");
  const sync = read(
    find(null, "HEDDLE_STREAMS_SYNC"),
    isStreamSync,
    `is not one of ${STREAM_SYNC_MODES.join(", ")}`,
  );
  const maxBody = number(
    find(null, "HEDDLE_MAX_BODY"),
    isPositiveInteger,
    "is not a whole number of bytes, 1 or more",
  );
  const workers = number(
    find("workers", "HEDDLE_WORKERS"),
    isWorkerCount,
    "is not a whole number from 0 to 64",
  );
  const secret = find(null, "HEDDLE_WEBHOOK_SECRET");
  return {
    host: host?.value ?? "127.0.0.1",
    port:
      number(find("port", "HEDDLE_PORT", "PORT"), isPort, "is not a whole number from 0 to 65535") ?? 2024,
    data: find("data", "HEDDLE_DATA")?.value ?? data,
    level: read(find(null, "HEDDLE_LOG"), isLogLevel, NO_LEVEL) ?? "info",
    ...(flags.insecure === true || env["HEDDLE_INSECURE"] === "1" ? { insecure: true } : {}),
    ...(requestLog === undefined ? {} : { requestLog }),
    ...(hosts === undefined ? {} : { hosts }),
    ...(origins === undefined ? {} : { origins }),
    ...(mount === undefined ? {} : { mount }),
    ...(transport === undefined ? {} : { transport }),
    ...(maxBody === undefined ? {} : { maxBody }),
    ...(workers === undefined ? {} : { workers }),
    ...(sync === undefined ? {} : { sync }),
    ...(secret === undefined ? {} : { webhooks: { secret: secret.value } }),
  };
}

const NO_LEVEL = "is not debug, info, warn or error";

function refuse({ name, value }: Given, what: string): never {
  throw new ServiceError("config.invalid", `${name} "${value}" ${what}`);
}

function read<T extends string>(
  given: Given | undefined,
  is: (text: string) => text is T,
  what: string,
): T | undefined {
  if (given === undefined || is(given.value)) return given?.value as T | undefined;
  return refuse(given, what);
}

function number(given: Given | undefined, is: (value: number) => boolean, what: string): number | undefined {
  if (given === undefined) return undefined;
  const value = /^\d+$/.test(given.value) ? Number(given.value) : Number.NaN;
  return is(value) ? value : refuse(given, what);
}

const isTransport = (text: string): text is "uws" | "node" => text === "uws" || text === "node";

const isPort = (value: number): boolean => Number.isInteger(value) && value >= 0 && value <= 65_535;

const listOf = (given: Given | undefined): readonly string[] | undefined =>
  given?.value
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
