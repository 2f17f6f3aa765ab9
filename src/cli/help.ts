import { type CommandName, COMMAND_OPTIONS, IGNORED_OPTIONS } from "./command-line.ts";

type Option = (typeof COMMAND_OPTIONS)[CommandName][number];

/** The forms in which each command can be called, each with its purpose. */
const FORMS: { readonly [C in CommandName]: readonly (readonly [form: string, purpose: string])[] } = {
  init: [["init [DIR]", "Make a project with a graph and a test, in this directory or in DIR"]],
  build: [["build", "Write a Dockerfile and a .dockerignore for the project of a configuration file"]],
  dev: [["dev", "Serve the graphs of a configuration file, and reload them when their files change"]],
  start: [["start", "Serve the graphs of a configuration file"]],
  cluster: [
    ["cluster status", "Print the nodes of the cluster at --cluster, and which node has which shard"],
    [
      "cluster drain NODE",
      'Let a node of the cluster at --cluster hand over its shards, one after the other, and take no others until "heddle cluster undrain NODE" or its restart; needs HEDDLE_CLUSTER_SECRET',
    ],
    ["cluster undrain NODE", "Let a drained node take shards again; needs HEDDLE_CLUSTER_SECRET"],
  ],
  check: [["check", "Read a whole data directory and list what is damaged"]],
  repair: [["repair", "Rebuild a damaged database, and list what is still damaged"]],
  backup: [["backup DIR", "Copy a data directory to DIR, also while a server uses it"]],
  inspect: [
    [
      "inspect [ID]",
      "Print the address of the inspector, for one thread or for all, of the server on the data directory here or at --data, or of the one at --host and --port",
    ],
  ],
  conformance: [
    [
      "conformance --url URL",
      "Check a server against the API of the LangGraph Platform: any server that serves the graphs of test/conformance",
    ],
  ],
  prove: [
    [
      "prove FILE CLAIM",
      'Prove a claim about an XState machine, or print a counterexample: "never STATE without EVENT", "never STATE", "eventually STATE" or "reachable STATE"; several states or events are joined by "or". FILE:name names one of several machines of a file',
    ],
  ],
};

/** The notation and the description of each option. */
const OPTION_TEXTS: {
  readonly [O in Exclude<Option, keyof typeof IGNORED_OPTIONS>]: readonly [notation: string, text: string];
} = {
  config: [
    "-c, --config FILE",
    "Configuration file, or a directory with one; default: heddle.json, then langgraph.json, in this directory",
  ],
  host: [
    "--host HOST",
    "Address to listen on; default 127.0.0.1. Any other address needs HEDDLE_API_KEYS, auth in the configuration, or --insecure",
  ],
  port: [
    "-p, --port PORT",
    "Port to listen on; default 2024 or, if that is taken, the next free one. 0 takes any free port",
  ],
  data: ["--data DIR", "Data directory; default .heddle in this directory"],
  transport: ["--transport KIND", "uws or node; default: uws if its binary loads on this machine"],
  workers: ["--workers N", "Run nodes in N worker threads; default 0: on the main thread"],
  shards: [
    "--shards N",
    "Serve with N processes that share the port, each with a part of the data; the number of a data directory stays the same for good",
  ],
  cluster: [
    "--cluster URL",
    "Join the cluster whose PostgreSQL database has this URL, or make it; needs HEDDLE_CLUSTER_SECRET. --shards is then the number of a new cluster's shards, default 4",
  ],
  node: ["--node NAME", "The name of this node in the cluster; default: that of the machine"],
  insecure: ["--insecure", "Listen on other addresses without a key or users"],
  log: ["--log FORMAT", "text (for people) or json (lines); default: text on a terminal, json elsewhere"],
  relay: ["--relay PORT", "Forward the statecharts' events to tools of @statelyai/inspect on this machine"],
  accept: ["--accept", "Give up what is lost instead of rebuilding, so that its threads are served again"],
  compose: ["--compose", "Write a compose.yaml too"],
  force: ["--force", "Replace files that exist"],
  url: ["--url URL", "The server's URL"],
  key: ["--key KEY", "The server's key; default: HEDDLE_API_KEY"],
  chapter: ["--chapter NAME[,NAME]", "Check some chapters only"],
  json: ["--json", "Print all results as JSON"],
  draw: ["--draw FILE.mmd", "Draw the chart, with the example marked, as a Mermaid flowchart"],
  "n-jobs-per-worker": ["-n, --n-jobs-per-worker N", "The limit of runs in progress"],
  tunnel: ["--tunnel", "Refused: Heddle opens no tunnel"],
};

/** The descriptions of options that differ for single commands. */
const OWN_TEXTS: { readonly [C in CommandName]?: { readonly [O in Option]?: string } } = {
  dev: { data: "Data directory; default .heddle next to the configuration file" },
  cluster: { cluster: "The URL of the cluster's PostgreSQL database" },
  inspect: {
    host: "Host of the server; default 127.0.0.1",
    port: "Port of the server; default 2024",
    data: "Data directory of the server; default .heddle in this directory",
  },
};

/** The maximum number of characters in a line. */
const LINE_WIDTH = 120;

/** Formats the help text of one command: its usage, purpose and options. */
export function commandHelp(command: CommandName): string {
  const forms = FORMS[command];
  const usage = forms.map(([form], i) => `${i === 0 ? "Usage: " : "       "}heddle ${form} [options]`);
  const purposes = forms.map(
    ([form, purpose]) => [forms.length === 1 ? "" : `heddle ${form}`, purpose] as const,
  );
  const options = [...COMMAND_OPTIONS[command].map((option) => textOf(command, option)), HELP_OPTION];
  return [
    ...usage,
    "",
    ...columns(purposes),
    "",
    "Options",
    ...columns(options),
    "",
    '"heddle --help" lists all commands, the exit codes, and the environment variables.',
    "",
  ].join("\n");
}

const HELP_OPTION = ["-h, --help", "Print this help"] as const;

function textOf(command: CommandName, option: Option): readonly [notation: string, text: string] {
  if (isIgnored(option)) return [`--${option}`, `Ignored: ${IGNORED_OPTIONS[option]}`];
  const [notation, text] = OPTION_TEXTS[option];
  return [notation, OWN_TEXTS[command]?.[option] ?? text];
}

const isIgnored = (option: Option): option is keyof typeof IGNORED_OPTIONS =>
  Object.hasOwn(IGNORED_OPTIONS, option);

/** Formats rows in two columns. A long text continues on further lines of the second column. */
function columns(rows: readonly (readonly [name: string, text: string])[]): readonly string[] {
  const longest = Math.max(...rows.map(([name]) => name.length));
  const indent = longest === 0 ? "" : " ".repeat(longest + 4);
  return rows.flatMap(([name, text]) => {
    const lines = wrap(text, LINE_WIDTH - indent.length);
    return lines.map((line, i) => (i === 0 && name !== "" ? `  ${name}`.padEnd(longest + 4) : indent) + line);
  });
}

function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last === undefined || last.length + word.length >= width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
