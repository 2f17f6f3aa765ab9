import { parseArgs } from "node:util";
import { similarName } from "../model/similar-name.ts";
import { parseUrl } from "../model/url.ts";
import type { ClusterDatabaseLocation } from "./cluster-child.ts";
import { isPositiveInteger } from "../config/config.ts";
import {
  findGivenOption,
  isPort,
  listOption,
  numberOption,
  OPTIONS,
  type OptionFlags,
  type Variables,
} from "./options.ts";
import { postgresSchemaOf, DEFAULT_PORT, type Settings, settingsOf } from "./settings.ts";

/** A hint for the message that the server cannot listen on its port. */
export const portHint = (option: "--port" | "--relay"): string =>
  `choose another port with ${option} (0: any free one)`;

type ClusterAction =
  | { readonly action: "status" }
  | { readonly action: "drain" | "undrain"; readonly node: string; readonly secret: string };

export type Invocation =
  | { readonly command: "version" }
  /** `topic`: the command to describe. Absent: all commands. */
  | { readonly command: "help"; readonly topic?: CommandName }
  | {
      readonly command: "dev" | "start";
      /** The path of the configuration file; undefined if the command line names none. */
      readonly config: string | undefined;
      /** The most runs that may be in progress at once. Absent: the configuration file decides. */
      readonly concurrent?: number;
      /** Messages for the log about options that have no effect, each with the reason. */
      readonly notes: readonly string[];
      /**
       * Reads the other settings. Called after the configuration file was read. `env`: the environment, including those variables of the
       * env file that were not set already. `data`: the data directory if no option names one.
       * @throws ServiceError `config.invalid`; the message names the flag or variable
       */
      settings(env: Variables, data: string): Settings;
    }
  | { readonly command: "init"; readonly directory: string }
  | {
      readonly command: "build";
      /** The path of the configuration file; undefined if the command line names none. */
      readonly config: string | undefined;
      readonly compose: boolean;
      readonly force: boolean;
    }
  | ({ readonly command: "cluster"; readonly place: ClusterDatabaseLocation } & ClusterAction)
  | { readonly command: "check"; readonly data: string }
  | { readonly command: "repair"; readonly data: string; readonly accept: boolean }
  | { readonly command: "backup"; readonly data: string; readonly target: string }
  | {
      readonly command: "inspect";
      /** The server's URL, including the path prefix of its routes. */
      readonly url: string;
      /** The data directory in which the running server's URL is looked up. Absent if a host or port is given. */
      readonly data?: string;
      readonly thread: string | undefined;
      /** The local port on which the inspector's feed is served; undefined: it is not served. */
      readonly relay: number | undefined;
    }
  | {
      readonly command: "conformance";
      /** The server's URL, including the path prefix of its routes, without a slash at its end. */
      readonly url: string;
      readonly key: string | undefined;
      /** The names of the chapters to check. Empty: all chapters. */
      readonly chapters: readonly string[];
      readonly json: boolean;
    }
  | {
      readonly command: "prove";
      /** The machine about which the claim is made, as `FILE` or `FILE:name`. */
      readonly machine: string;
      readonly claim: string;
      /** The file to which the statechart is drawn; undefined: it is not drawn. */
      readonly draw: string | undefined;
    }
  | { readonly command: "refused"; readonly why: string };

export const HELP = `Usage: heddle COMMAND [options]

Commands
  init [DIR]     Make a project with a graph and a test, in this directory or in DIR
  build          Write a Dockerfile and a .dockerignore for the project of a configuration file; --compose adds a compose.yaml,
                 --force replaces files that exist
  start          Serve the graphs of a configuration file
  dev            Serve the graphs of a configuration file, and reload them when their files change
  check          Read a whole data directory and list what is damaged
  repair         Rebuild a damaged database, and list what is still damaged; --accept gives up what is lost instead, so that
                 its threads are served again
  cluster status Print the nodes of the cluster at --cluster, which node has which shard, and the shards' logs and snapshots
  cluster drain NODE
                 Let a node of the cluster at --cluster hand over its shards, one after the other, and take no others until
                 "heddle cluster undrain NODE" or its restart; needs HEDDLE_CLUSTER_SECRET
  backup DIR     Copy a data directory to DIR, also while a server uses it
  inspect [ID]   Print the address of the inspector, for one thread or for all, of the server on the data directory here or at
                 --data, or of the one at --host and --port; --relay PORT forwards the statecharts'
                 events to tools of @statelyai/inspect on this machine (HEDDLE_API_KEY: the server's key, if it has one)
  conformance    Check a server against the API of the LangGraph Platform, with --url URL: any server that serves the graphs of test/conformance;
                 --chapter NAME[,NAME] checks some chapters only, --key KEY is the server's key, --json prints all results
                 (HEDDLE_API_KEY: the key)
  prove FILE CLAIM
                 Prove a claim about an XState machine, or print a counterexample: "never STATE without EVENT", "never STATE",
                 "eventually STATE" or "reachable STATE"; several states or events are joined by "or". FILE:name names one of
                 several machines of a file; --draw FILE.mmd draws the chart, with the example marked, as a Mermaid flowchart

Options
  -c, --config FILE  Configuration file, or a directory with one; default: heddle.json, then langgraph.json, in this directory
  --host HOST        Address to listen on; default 127.0.0.1. Any other address needs HEDDLE_API_KEYS, auth in the
                     configuration, or --insecure
  -p, --port PORT    Port to listen on; default 2024 or, if that is taken, the next free one. 0 takes any free port
  --data DIR         Data directory; default .heddle in this directory (dev: next to the configuration file)
  --transport KIND   uws or node; default: uws if its binary loads on this machine
  --workers N        Run nodes in N worker threads; default 0: on the main thread (start only)
  --shards N         Serve with N processes that share the port, each with a part of the data; the number of a data directory
                     stays the same for good (start only)
  --cluster URL      Join the cluster whose PostgreSQL database has this URL, or make it; needs HEDDLE_CLUSTER_SECRET. --shards is then the
                     number of a new cluster's shards, default 4 (start, cluster)
  --node NAME        The name of this node in the cluster; default: that of the machine (start)
  --insecure         Listen on other addresses without a key or users
  --log FORMAT       text (for people) or json (lines); default: text on a terminal, json elsewhere (dev, start)
  -h, --help; -v, --version
                     heddle COMMAND --help lists the options of a command
  "heddle dev" also takes the options of "langgraphjs dev": --n-jobs-per-worker N (or -n) is the limit of runs in progress, and
  the log says which options have no effect

Exit codes
  0  Done; after check and repair: nothing is damaged; after conformance: everything holds; after prove: the claim is proved
  1  check found damage, repair left some, conformance differs, prove refuted the claim, a shard has no node; or the command failed
  2  The command line is wrong; after prove also: the claim could not be decided, or the machine not be loaded

Environment
  An option wins over a variable, and a variable over the configuration file.
  HEDDLE_CONFIG, HEDDLE_HOST (or HOST), HEDDLE_PORT (or PORT), HEDDLE_DATA, HEDDLE_TRANSPORT, HEDDLE_WORKERS,
  HEDDLE_SHARDS, HEDDLE_CLUSTER, HEDDLE_NODE, HEDDLE_INSECURE=1
                               The options above
  HEDDLE_CLUSTER_SECRET        Secret of a cluster, 32 bytes or more, the same for all nodes
  HEDDLE_CLUSTER_SCHEMA        Schema of the cluster's tables in its database; default heddle
  HEDDLE_CLUSTER_HOST          Host at which other nodes reach this one; default: that of --host
  HEDDLE_CLUSTER_LEASE         Milliseconds for which a node keeps its shards without renewing, the same for all nodes; default 3000
  HEDDLE_CLUSTER_SNAPSHOT      Bytes that the log of a shard grows by until a snapshot of the shard is made; default 268435456 (256 MiB)
  HEDDLE_HANG_LIMIT            With --shards or --cluster: milliseconds for which a process may respond to nothing before it is killed and
                               started again, 10000 or more, or 0: never; default 60000
  HEDDLE_START_LIMIT           The same for a process that starts, and neither accepts requests nor makes progress; default 300000
  HEDDLE_API_KEYS              API keys, separated by commas, each KEY or TENANT:KEY
  HEDDLE_TOKEN_SECRET          Secret that signs WebSocket tokens, 32 bytes or more; default: a new one at each start
  HEDDLE_ALLOWED_HOSTS         Host names, separated by commas, that a server without a key accepts besides loopback
  HEDDLE_CORS_ALLOW_ORIGINS    Origins, separated by commas, that browsers may call from (or CORS_ALLOW_ORIGINS)
  HEDDLE_MOUNT_PREFIX          Prefix of all paths (or MOUNT_PREFIX)
  HEDDLE_WEBHOOK_SECRET        Secret that signs webhooks
  HEDDLE_MAX_BODY              Largest request body, in bytes
  HEDDLE_STREAMS_SYNC          Where stream events are stored: os or memory
  HEDDLE_LOG                   Log level: debug, info, warn or error
  HEDDLE_LOG_FORMAT            The option --log
  HEDDLE_REQUEST_LOG           Log level of the lines about requests; default debug
  NO_COLOR, FORCE_COLOR        No colours on a terminal; colours everywhere (0: nowhere)
`;

/** Options of LangGraph's command line that `heddle dev` accepts although they have no effect, each with the reason. */
export const IGNORED_OPTIONS = {
  "no-browser": "Heddle opens no browser",
  "no-reload": '"heddle start" serves without reloading',
  "studio-url": "LangGraph Studio is linked at https://smith.langchain.com",
  "debug-port": "NODE_OPTIONS=--inspect=PORT opens a port for debuggers",
  "wait-for-client": "NODE_OPTIONS=--inspect-brk waits for a debugger",
  "allow-blocking": "Heddle does not look for blocking calls",
} as const satisfies { readonly [option: string]: string };

/** The names of all commands, each with the options that it accepts. */
export const COMMAND_OPTIONS = {
  init: [],
  build: ["config", "compose", "force"],
  dev: [
    ...([
      "config",
      "host",
      "port",
      "data",
      "transport",
      "insecure",
      "log",
      "n-jobs-per-worker",
      "tunnel",
    ] as const),
    ...(Object.keys(IGNORED_OPTIONS) as (keyof typeof IGNORED_OPTIONS)[]),
  ],
  start: [
    "config",
    "host",
    "port",
    "data",
    "transport",
    "workers",
    "shards",
    "cluster",
    "node",
    "insecure",
    "log",
  ],
  cluster: ["cluster"],
  check: ["data"],
  repair: ["data", "accept"],
  backup: ["data"],
  inspect: ["host", "port", "data", "relay"],
  conformance: ["url", "key", "chapter", "json"],
  prove: ["draw"],
} as const satisfies { readonly [command: string]: readonly (keyof OptionFlags)[] };

export type CommandName = keyof typeof COMMAND_OPTIONS;

/** Parses the command line and the environment. `args` does not contain the program's name. */
export function parseCommandLine(args: readonly string[], env: Variables): Invocation {
  let parsed;
  try {
    parsed = parseArgs({ args: joinNegativeNumbers(args), options: OPTIONS, allowPositionals: true });
  } catch (cause) {
    return refused(parserMessage((cause as Error).message, args.find(isCommand)));
  }
  const { values: flags, positionals } = parsed;
  if (flags.help === true || positionals[0] === "help") {
    const topic = positionals.find((word) => word !== "help");
    return { command: "help", ...(topic !== undefined && isCommand(topic) && { topic }) };
  }
  if (flags.version === true) return { command: "version" };
  const [command, ...rest] = positionals;
  const commands = Object.keys(COMMAND_OPTIONS).join(", ");
  if (command === undefined) return refused(`name a command: ${commands}`);
  if (!isCommand(command)) return refused(`there is no command "${command}"; there are: ${commands}`);
  const taken: readonly string[] = COMMAND_OPTIONS[command];
  const other = Object.keys(flags).find((flag) => !taken.includes(flag));
  if (other !== undefined) return refused(`heddle ${command} takes no --${other}`);
  // Empty values are refused, because an empty path would mean the current directory, and an empty host all addresses.
  const empty = Object.entries(flags).find(([, value]) => value === "");
  if (empty !== undefined) return refused(`--${empty[0]} is empty; give it a value, or leave it out`);
  const hasTarget =
    command === "cluster" ||
    command === "backup" ||
    command === "inspect" ||
    command === "init" ||
    command === "prove";
  const [target, ...others] = hasTarget ? rest : [undefined, ...rest];
  const [claim, extra] = command === "prove" || command === "cluster" ? others : [undefined, ...others];
  if (extra !== undefined) return refused(`"${extra}" is one argument too many`);
  const data = findGivenOption(flags, env, "data", "HEDDLE_DATA")?.value ?? ".heddle";
  switch (command) {
    case "init":
      return { command, directory: target ?? "." };
    case "build": {
      const config = findGivenOption(flags, env, "config", "HEDDLE_CONFIG")?.value;
      return { command, config, compose: flags.compose === true, force: flags.force === true };
    }
    case "cluster": {
      const action = clusterActionOf(target, claim, env);
      if (typeof action === "string") return refused(action);
      const url = findGivenOption(flags, env, "cluster", "HEDDLE_CLUSTER")?.value;
      if (url === undefined)
        return refused(
          `name the database: heddle cluster ${target} --cluster postgres://user:password@host/database`,
        );
      return { command, place: { url, ...postgresSchemaOf(env) }, ...action };
    }
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
        const { host, port: askedPort, mount = "" } = settingsOf(flags, env, data);
        const isAsked =
          askedPort !== undefined || findGivenOption(flags, env, "host", "HEDDLE_HOST", "HOST") !== undefined;
        const port = askedPort ?? DEFAULT_PORT;
        const url = `http://${host.includes(":") ? `[${host}]` : host}:${port}${mount}`;
        const relay = numberOption(
          findGivenOption(flags, env, "relay"),
          isPort,
          "is not a whole number from 0 to 65535",
        );
        return { command, url, ...(!isAsked && { data }), thread: target, relay };
      } catch (cause) {
        return refused((cause as Error).message);
      }
    case "conformance": {
      const url = findGivenOption(flags, env, "url")?.value ?? "";
      if (parseUrl(url) === undefined || !/^https?:/i.test(url))
        return refused("name the server: heddle conformance --url http://127.0.0.1:2024");
      const key = findGivenOption(flags, env, "key", "HEDDLE_API_KEY")?.value;
      // In a chapter's name, `-` may be written for a space, because a space ends an argument in a shell.
      const chapters = (listOption(findGivenOption(flags, env, "chapter")) ?? []).map((name) =>
        name.replaceAll("-", " "),
      );
      return { command, url: url.replace(/\/+$/, ""), key, chapters, json: flags.json === true };
    }
    case "prove": {
      if (target === undefined || claim === undefined)
        return refused(
          'name the machine and the claim: heddle prove ./order.ts "never paid without APPROVE"',
        );
      const draw = findGivenOption(flags, env, "draw")?.value;
      if (draw !== undefined && !draw.endsWith(".mmd"))
        return refused(`--draw "${draw}" is no Mermaid file: let its name end in .mmd`);
      return { command, machine: target, claim, draw };
    }
    case "dev":
    case "start":
      let concurrent;
      try {
        // The settings are read here only to report mistakes at once. They are read again when the env file has been read.
        settingsOf(flags, env, data);
        const asked = findGivenOption(flags, env, "n-jobs-per-worker");
        concurrent = numberOption(asked, isPositiveInteger, "is not a whole number, 1 or more");
      } catch (cause) {
        return refused((cause as Error).message);
      }
      if (flags.tunnel === true)
        return refused(
          "--tunnel: Heddle opens no tunnel; set HEDDLE_API_KEYS, and run one beside it, such as cloudflared tunnel --url http://127.0.0.1:2024",
        );
      return {
        command,
        config: findGivenOption(flags, env, "config", "HEDDLE_CONFIG")?.value,
        ...(concurrent === undefined ? {} : { concurrent }),
        notes: Object.entries(IGNORED_OPTIONS)
          .filter(([option]) => Object.hasOwn(flags, option))
          .map(([option, why]) => `--${option} is ignored: ${why}`),
        settings: (env, data) => settingsOf(flags, env, data),
      };
  }
}

/**
 * Joins a negative number to its option, because the parser would read the number as an option: `--port -1` becomes `--port=-1`, `-p -1`
 * becomes `-p-1`.
 */
function joinNegativeNumbers(args: readonly string[]): string[] {
  const joined: string[] = [];
  for (const arg of args) {
    const option = joined.at(-1) ?? "";
    if (/^-\d/.test(arg) && takesValue(option))
      joined[joined.length - 1] = `${option}${option.startsWith("--") ? "=" : ""}${arg}`;
    else joined.push(arg);
  }
  return joined;
}

const takesValue = (option: string): boolean =>
  Object.entries(OPTIONS).some(
    ([name, { type, ...other }]) =>
      type === "string" && (option === `--${name}` || ("short" in other && option === `-${other.short}`)),
  );

/**
 * Converts a message of the option parser for printing. If an option needs a value, the result says so. Otherwise the result is the first
 * sentence of the message, without its hints about quoting, followed by the option that was probably meant.
 */
function parserMessage(message: string, command: CommandName | undefined): string {
  const [, option] =
    /^Option '(?:-\w, )?(--?[a-z-]+).* argument (?:missing|is ambiguous)/.exec(message) ?? [];
  if (option !== undefined) return `${option} needs a value`;
  const [, unknown] = /^Unknown option '--?([^']+)'/.exec(message) ?? [];
  const options =
    command === undefined ? Object.keys(OPTIONS) : [...COMMAND_OPTIONS[command], "help", "version"];
  const meant = unknown === undefined ? undefined : similarName(unknown, options);
  return `${message.split(". ")[0]}${meant === undefined ? "" : `; did you mean --${meant}?`}`;
}

const isCommand = (name: string): name is CommandName => Object.hasOwn(COMMAND_OPTIONS, name);

const refused = (why: string): Invocation => ({ command: "refused", why });

/** The action of the command `heddle cluster`, or the reason why the command is refused. */
function clusterActionOf(
  action: string | undefined,
  node: string | undefined,
  env: Variables,
): ClusterAction | string {
  if (action !== "status" && action !== "drain" && action !== "undrain")
    return "name a command for the cluster: heddle cluster status, drain NODE or undrain NODE";
  if (action === "status") return node === undefined ? { action } : `"${node}" is one argument too many`;
  if (node === undefined || node === "") return `name the node: heddle cluster ${action} NODE`;
  return { action, node, secret: env["HEDDLE_CLUSTER_SECRET"] ?? "" };
}
