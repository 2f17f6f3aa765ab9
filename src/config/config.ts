import { parse } from "dotenv";
import type { ModuleExport } from "../model/module-export.ts";
import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, extname, join, resolve } from "node:path";
import { type HttpConfig, parseHttpConfig } from "../access/http-config.ts";
import { type HeaderPatterns, parseHeaderPatterns } from "../access/configurable-headers.ts";
import { type AuthConfig, parseAuthConfig } from "./auth.ts";
import { DEFAULTS_VARIABLE, parseAssistantDefaults } from "./assistant-defaults.ts";
import { checkConfigKeys, ENCRYPTION_REFUSAL } from "./config-keys.ts";
import { jsonError } from "./json-error.ts";
import { hasComponentFile, type UiConfig } from "./component-bundler.ts";
import { type DashboardConfig, parseDashboardConfig } from "./dashboard.ts";
import { type InspectConfig, parseInspectConfig } from "./inspector.ts";
import type { AssistantDefaults } from "../model/assistant.ts";
import { parseFields, mapMembersOrThrow, ServiceError } from "../model/errors.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import { parseDuration } from "../model/time.ts";
import { parseStoreConfig, type StoreConfig } from "./store.ts";
import { parseThreadTtl, type ThreadTtlConfig } from "./thread-ttl.ts";
import { fillTemplates, parseWebhookPolicy } from "./webhooks.ts";

/** The contents of a configuration file, checked. A setting that the file does not have is absent, unless it has a default. */
export interface Config {
  /** The path of the file, absolute. */
  readonly path: string;
  readonly graphs: { readonly [name: string]: ModuleExport };
  /** Environment variables that the file defines, by name. */
  readonly env: { readonly [name: string]: string };
  /** Settings with which default assistants are created, from the variable `LANGGRAPH_CONFIG` and the descriptions of the graphs. */
  readonly assistants?: AssistantDefaults;
  /**
   * The longest time in milliseconds for reading the types of one graph, from which its JSON schemas are made. From the variable
   * `LANGGRAPH_SCHEMA_RESOLVE_TIMEOUT_MS`.
   */
  readonly schemaTimeout?: number;
  /** The path of the `.env` file, absolute. */
  readonly envFile?: string;
  /** Warnings about the file, such as keys that have no effect or a missing `.env` file. */
  readonly notes?: readonly string[];
  readonly maxBody?: number;
  /** The project's own HTTP application. */
  readonly httpApp?: ModuleExport;
  readonly sync?: (typeof STREAM_SYNC_MODES)[number];
  readonly threadTtl?: ThreadTtlConfig;
  /** Milliseconds for which the events of an ended run are kept. */
  readonly streamsTtl?: number;
  /** Whether the stream mode `logs` includes the stack of a node's error. */
  readonly stacks?: boolean;
  /** Access settings of the section `http`. */
  readonly access?: HttpConfig;
  /** The request headers that are passed to runs in `config.configurable`. */
  readonly configurableHeaders?: HeaderPatterns;
  /** The section `webhooks`, checked. Each `${{ env.NAME }}` in its headers is replaced by the value of the environment variable. */
  readonly webhooks?: JsonObject;
  readonly runs?: RunLimits;
  /** The number of worker threads that run nodes. */
  readonly workers?: number;
  readonly inspect?: InspectConfig;
  readonly dashboard?: DashboardConfig;
  /** The sections `ui` and `ui_config`: the project's UI components. */
  readonly components?: UiConfig;
  /** The section `store`: settings of the long-term store. */
  readonly store?: StoreConfig<ModuleExport>;
  /** The section `auth`: how users are authenticated. Absent: the server has no users. */
  readonly auth?: AuthConfig<ModuleExport>;
}

/**
 * Limits of runs: how many may be running at once, how many may be queued, how much memory they may take, and how often and how long each
 * may run. `actors/` uses the same field names.
 */
export interface RunLimits {
  readonly concurrent: {
    readonly all: number;
    readonly perTenant: number;
    readonly perGraph: { readonly [graph: string]: number };
  };
  readonly maxQueued?: number;
  readonly maxQueuedPerTenant?: number;
  readonly maxQueuedBytes?: number;
  readonly maxStateBytes?: number;
  readonly attempts?: number;
  readonly grace?: number;
  readonly timeout?: number;
}

export const STREAM_SYNC_MODES = ["os", "memory"] as const;

/**
 * The path of the configuration file for a command. `given`: the path of a file, which is returned unchanged, or a directory with a
 * configuration file. Default: the current directory.
 * @throws ServiceError `config.invalid` if the directory has none
 */
export const configFileAt = (given = process.cwd()): string =>
  statSync(given, { throwIfNoEntry: false })?.isDirectory() === true ? findConfig(given) : given;

/**
 * The path of the configuration file in `directory`: `heddle.json`, else `langgraph.json`.
 * @throws ServiceError `config.invalid` if there is neither
 */
export function findConfig(directory: string): string {
  for (const name of ["heddle.json", "langgraph.json"]) {
    const path = join(directory, name);
    if (existsSync(path)) return path;
  }
  throw new ServiceError(
    "config.invalid",
    `There is no heddle.json and no langgraph.json in ${directory}; name one with --config FILE`,
  );
}

/**
 * Checks that a new data directory does not contain a configuration file. If it did, Heddle would write its files among those of the
 * project. One of Heddle's files is named `heddle.json`, as the configuration file may be.
 * @throws ServiceError `config.invalid`; the message names the directory and the configuration file in it
 */
export function checkDataDirectory(directory: string, configFile: string): void {
  const path = resolve(directory);
  // A directory that already has data is accepted, because refusing it would make the data unavailable to its owner.
  if (!existsSync(path) || existsSync(join(path, "level"))) return;
  const isProject = realpathSync(path) === realpathSync(dirname(configFile));
  const file = isProject ? basename(configFile) : "langgraph.json";
  if (!isProject && !existsSync(join(path, file))) return;
  throw new ServiceError(
    "config.invalid",
    `The data directory ${path} holds the configuration file ${file}; name a directory of its own with --data, such as ${join(path, ".heddle")}`,
  );
}

/**
 * Reads a configuration file: `heddle.json`, or an unchanged `langgraph.json`. Variables of `environment` take precedence over those that
 * the file defines.
 * @throws ServiceError `config.invalid`; the message names the file and the key
 */
export function readConfig(file: string, environment: Env = process.env): Config {
  const path = resolve(file);
  const base = dirname(path);
  const refuse: Refuse = (what) => {
    throw new ServiceError("config.invalid", `${path}: ${what.replaceAll("\n", `\n${path}: `)}`);
  };
  const root = readJson(path, refuse);
  // All errors are reported together, each once: several functions may find the same error.
  const errors = new Set<string>();
  const attempt = <T>(read: () => T): T | undefined => {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      for (const line of error.message.split("\n")) errors.add(line);
      return undefined;
    }
  };
  const sectionOf = (key: string): JsonObject => attempt(() => section(root, key, refuse)) ?? {};
  const notes = [...checkConfigKeys(root, (what) => attempt(() => refuse(what)))];
  const http = sectionOf("http");
  const access = attempt(() => parseHttpConfig(http, refuse)) ?? {};
  const configurableHeaders = attempt(() => parseHeaderPatterns(http, refuse));
  const maxBody = attempt(() => parseMaxBody(http, refuse));
  const httpApp = attempt(() => parseHttpApp(http, base, refuse));
  const streams = attempt(() => parseStreams(sectionOf("streams"), refuse));
  const threadTtl = sectionOf("checkpointer")["ttl"] ?? undefined;
  const lifetime = threadTtl === undefined ? undefined : attempt(() => parseThreadTtl(threadTtl, refuse));
  const graphs = attempt(() =>
    parseGraphs(root["graphs"], base, Object.keys(root).find(isLikeGraphs), refuse),
  );
  const env = attempt(() => readEnv(root["env"], base, environment, notes, refuse)) ?? {};
  const files = {
    module: (text: string, at: string) => parseModuleExport(text, base, (what) => refuse(`${at} ${what}`)),
    data: (text: string) => resolve(base, text),
  };
  const embedder = (text: string) => files.module(text, "store.index.embed");
  const store = attempt(() => parseStoreConfig(sectionOf("store"), embedder, refuse)) ?? {};
  if (store.noIndex !== undefined) notes.push(`store.index is left out: a query ${store.noIndex}`);
  const auth = attempt(() => parseAuthConfig(sectionOf("auth"), files, refuse));
  const variables = { ...env, ...environment };
  if ((variables[ENCRYPTION_VARIABLE] ?? "") !== "")
    attempt(() => refuse(`${ENCRYPTION_VARIABLE} ${ENCRYPTION_REFUSAL}`));
  const webhooks = attempt(() => parseWebhooks(sectionOf("webhooks"), variables, refuse));
  const settings = attempt(() => parseAssistantDefaults(variables[DEFAULTS_VARIABLE], refuse));
  const descriptions = attempt(() => parseDescriptions(root["graphs"], refuse)) ?? {};
  const assistants = withDescriptions(settings ?? {}, descriptions);
  const schemaTimeout = attempt(() => parseSchemaTimeout(variables[SCHEMA_TIMEOUT_VARIABLE], refuse));
  const noteMissing = (names: readonly string[], at: string) => {
    const others = names.filter((name) => graphs !== undefined && !Object.hasOwn(graphs, name));
    notes.push(...others.map((name) => `${at}: there is no graph ${JSON.stringify(name)}`));
  };
  noteMissing(Object.keys(settings ?? {}), DEFAULTS_VARIABLE);
  const runs = root["runs"] === undefined ? undefined : attempt(() => parseRuns(sectionOf("runs"), refuse));
  noteMissing(Object.keys(runs?.concurrent.perGraph ?? {}), "runs.max_per_graph");
  const config: Config = {
    path,
    graphs: graphs ?? {},
    env,
    ...(Object.keys(assistants).length === 0 ? {} : { assistants }),
    ...(schemaTimeout === undefined ? {} : { schemaTimeout }),
    ...(Object.keys(access).length === 0 ? {} : { access }),
    ...(configurableHeaders === undefined ? {} : { configurableHeaders }),
    ...(typeof root["env"] === "string" ? { envFile: resolve(base, root["env"]) } : {}),
    notes,
    ...(Object.keys(store).length === 0 ? {} : { store }),
    ...(auth === undefined ? {} : { auth }),
    ...(maxBody === undefined ? {} : { maxBody }),
    ...(httpApp === undefined ? {} : { httpApp }),
    ...streams,
    ...(lifetime === undefined ? {} : { threadTtl: lifetime }),
    ...(root["webhooks"] === undefined || webhooks === undefined ? {} : { webhooks }),
    ...(root["inspect"] === undefined
      ? {}
      : attempt(() => ({ inspect: parseInspectConfig(sectionOf("inspect"), refuse) }))),
    ...(root["dashboard"] === undefined
      ? {}
      : attempt(() => ({ dashboard: parseDashboardConfig(sectionOf("dashboard"), refuse) }))),
    ...attempt(() => parseComponents(root, base, notes, refuse)),
    ...attempt(() => parseWorkers(sectionOf("nodes"), refuse)),
    ...(runs === undefined ? {} : { runs }),
  };
  if (errors.size === 0) return config;
  throw new ServiceError(
    "config.invalid",
    [...errors, ...notes.map((note) => `${path}: ${note}`)].join("\n"),
  );
}

function parseMaxBody({ max_body }: JsonObject, refuse: Refuse): number | undefined {
  if (max_body === undefined || isPositiveInteger(max_body)) return max_body;
  return refuse("http.max_body must be a whole number of bytes, 1 or more");
}

function parseStreams(
  { sync, ttl, stacks }: JsonObject,
  refuse: Refuse,
): Pick<Config, "sync" | "streamsTtl" | "stacks"> {
  const streamsTtl = parseDuration(ttl);
  return parseFields({
    sync: () => {
      if (sync === undefined || isStreamSync(sync)) return sync;
      return refuse(`streams.sync must be one of ${STREAM_SYNC_MODES.join(", ")}`);
    },
    streamsTtl: () => {
      if (ttl === undefined || streamsTtl !== undefined) return streamsTtl;
      return refuse('streams.ttl must be milliseconds, or a text such as "90s", "24h" or "7d"');
    },
    stacks: () => {
      if (stacks === undefined || typeof stacks === "boolean") return stacks;
      return refuse("streams.stacks must be true or false");
    },
  });
}

/** The variable with the key with which LangGraph's own server encrypts checkpoints. Heddle refuses it. */
const ENCRYPTION_VARIABLE = "LANGGRAPH_AES_KEY";
const SCHEMA_TIMEOUT_VARIABLE = "LANGGRAPH_SCHEMA_RESOLVE_TIMEOUT_MS";

function parseSchemaTimeout(text: string | undefined, refuse: Refuse): number | undefined {
  if (text === undefined || text.trim() === "") return undefined;
  const milliseconds = Number(text);
  if (isPositiveInteger(milliseconds)) return milliseconds;
  return refuse(`${SCHEMA_TIMEOUT_VARIABLE} must be a whole number of milliseconds, 1 or more`);
}

function parseHttpApp({ app }: JsonObject, base: string, refuse: Refuse): ModuleExport | undefined {
  if (app === undefined || app === null) return undefined;
  if (typeof app !== "string" || app === "")
    return refuse('http.app must name an application, as "./http.ts:app"');
  return parseModuleExport(app, base, (what) => refuse(`http.app ${what}`));
}

/**
 * Reads the sections `ui` and `ui_config`. If a file is missing, that is only a warning, because the components are bundled when they are
 * requested.
 * @param notes the list to which the warning is added
 */
function parseComponents(
  root: JsonObject,
  base: string,
  notes: string[],
  refuse: Refuse,
): { readonly components?: UiConfig } {
  const ui = section(root, "ui", refuse);
  if (Object.keys(ui).length === 0) return {};
  const files = Object.entries(ui).map(([graph, file]) => {
    if (typeof file !== "string" || file === "") return refuse(`ui.${graph} must name a file, as "./ui.tsx"`);
    const path = resolve(base, file);
    if (!hasComponentFile(path)) notes.push(`ui.${graph} names "${file}", but there is no file ${path}`);
    return [graph, path] as const;
  });
  const { shared = [] } = section(root, "ui_config", refuse);
  if (!Array.isArray(shared) || !shared.every((name) => typeof name === "string"))
    refuse("ui_config.shared must be a list of packages");
  return { components: { files: Object.fromEntries(files), shared: shared as readonly string[] } };
}

const MAX_WORKERS = 64;

function parseWorkers({ workers }: JsonObject, refuse: Refuse): { readonly workers?: number } {
  if (workers === undefined || workers === null) return {};
  return isWorkerCount(workers)
    ? { workers }
    : refuse(`nodes.workers must be a whole number from 0 to ${MAX_WORKERS}`);
}

/** Whether a value is a valid number of worker threads. */
export const isWorkerCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= MAX_WORKERS;

function parseRuns(runs: JsonObject, refuse: Refuse): RunLimits {
  const limit = (value: unknown, name: string): number | undefined => {
    if (value === undefined || value === null) return undefined;
    return isPositiveInteger(value) ? value : refuse(`runs.${name} must be a whole number, 1 or more`);
  };
  const limitOf = (name: string) => () => limit(runs[name], name);
  const {
    all = Infinity,
    perTenant = Infinity,
    perGraph,
    ...others
  } = parseFields({
    all: limitOf("max_concurrent"),
    perTenant: limitOf("max_per_tenant"),
    perGraph: () => {
      const graphs = runs["max_per_graph"] ?? {};
      if (!isObject(graphs)) return refuse("runs.max_per_graph must be an object of graph names and numbers");
      return mapMembersOrThrow(graphs, (value, name) => limit(value, `max_per_graph.${name}`));
    },
    maxQueued: limitOf("max_queued"),
    maxQueuedPerTenant: limitOf("max_queued_per_tenant"),
    maxQueuedBytes: limitOf("max_queued_bytes"),
    maxStateBytes: limitOf("max_state_bytes"),
    attempts: limitOf("max_attempts"),
    grace: limitOf("grace_ms"),
    timeout: () => {
      const given = runs["timeout"] ?? undefined;
      const timeout = parseDuration(given);
      if (given === undefined || timeout !== undefined) return timeout;
      return refuse('runs.timeout must be milliseconds, or a text such as "90s", "30m" or "2h"');
    },
  });
  return { concurrent: { all, perTenant, perGraph }, ...others };
}

export const isPositiveInteger = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 1;

export const isStreamSync = (value: unknown): value is (typeof STREAM_SYNC_MODES)[number] =>
  (STREAM_SYNC_MODES as readonly unknown[]).includes(value);

type Env = { readonly [name: string]: string | undefined };

type Refuse = (what: string) => never;

function readJson(path: string, refuse: Refuse): JsonObject {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    return refuse(code === "ENOENT" ? "there is no such file" : `the file cannot be read: ${message}`);
  }
  let root: unknown;
  const json = text.replace(/^\uFEFF/, "");
  try {
    root = JSON.parse(json);
  } catch (cause) {
    return refuse(`is not JSON: ${jsonError(json) ?? (cause as Error).message}`);
  }
  return isObject(root) ? root : refuse("must hold a JSON object");
}

function section(root: JsonObject, key: string, refuse: Refuse): JsonObject {
  const value = root[key] ?? {};
  return isObject(value) ? value : refuse(`${key} must be an object`);
}

function parseWebhooks(given: JsonObject, env: Env, refuse: Refuse): JsonObject {
  try {
    const webhooks = fillTemplates(given, env);
    parseWebhookPolicy(webhooks);
    return webhooks;
  } catch (cause) {
    return refuse((cause as Error).message);
  }
}

/** Reads the section `graphs`. @param other a key of the file that may have been meant as `graphs`, for the error message */
function parseGraphs(
  value: unknown,
  base: string,
  other: string | undefined,
  refuse: Refuse,
): Config["graphs"] {
  const example = 'an object such as { "agent": "./agent.ts:default" }';
  if (value === undefined)
    return refuse(
      `graphs is missing: it must be ${example}${other === undefined ? "" : `; there is "${other}"`}`,
    );
  if (!isObject(value)) return refuse(`graphs must be ${example}`);
  const read = (entry: unknown, name: string): ModuleExport => {
    if (name === "") refuse('graphs."" must have a name, by which clients call it');
    // LangGraph also accepts an object: `{ "path": ..., "description": ... }`.
    const entryPath = isObject(entry) ? entry["path"] : entry;
    if (typeof entryPath !== "string" || entryPath === "") {
      const keys = isObject(entry) ? `, not one with ${namesOf(entry)}` : "";
      return refuse(`graphs.${name} must be "./file.ts:export", or an object with "path"${keys}`);
    }
    return parseModuleExport(entryPath, base, (what) => refuse(`graphs.${name} ${what}`));
  };
  return mapMembersOrThrow(value, read);
}

/** Reads the descriptions of the graphs, by the names of the graphs. */
function parseDescriptions(graphs: unknown, refuse: Refuse): { readonly [graph: string]: string } {
  const described = Object.entries(isObject(graphs) ? graphs : {}).flatMap(([name, entry]) => {
    const description = isObject(entry) ? (entry["description"] ?? undefined) : undefined;
    if (description === undefined) return [];
    if (typeof description !== "string") return refuse(`graphs.${name}.description must be a text`);
    return [[name, description] as const];
  });
  return Object.fromEntries(described);
}

function withDescriptions(
  settings: AssistantDefaults,
  descriptions: { readonly [graph: string]: string },
): AssistantDefaults {
  const described = Object.entries(descriptions).map(([name, description]) => {
    const own = Object.hasOwn(settings, name) ? settings[name] : undefined;
    return [name, { ...own, description }] as const;
  });
  return { ...settings, ...Object.fromEntries(described) };
}

const isLikeGraphs = (key: string): boolean => /^graphs?$/i.test(key);

const namesOf = (object: JsonObject): string =>
  Object.keys(object)
    .map((key) => JSON.stringify(key))
    .join(", ") || "nothing in it";

/**
 * Parses a reference to a module's export, `./file.ts:export`. Without a colon, the export is `default`. `refuse` is called with what is
 * wrong.
 */
export function parseModuleExport(entryPath: string, base: string, refuse: Refuse): ModuleExport {
  // Splits at the last colon, unless that colon belongs to a Windows drive such as `C:`.
  const colon = entryPath.lastIndexOf(":");
  const [path, name] =
    colon > 1 ? [entryPath.slice(0, colon), entryPath.slice(colon + 1)] : [entryPath, "default"];
  if (name === "") refuse(`names no export after the colon: "${entryPath}"`);
  if (extname(path) === ".py")
    refuse(`is a Python file: "${path}"; Heddle runs JavaScript and TypeScript graphs`);
  return { file: resolve(base, path), name };
}

/**
 * A hint to copy `.env.example` if the env file `name` is missing, because starter templates contain only the example. Empty if there is no
 * example.
 */
function templateHint(base: string, name: string): string {
  const template = `${name}.example`;
  return existsSync(resolve(base, template)) ? ` (cp ${template} ${name})` : "";
}

/**
 * Reads the section `env`. If the env file is missing, or listed variables are not set, that is only a warning: Git usually ignores such
 * files, and containers get their variables from outside.
 * @param notes the list to which the warning is added
 */
function readEnv(
  value: unknown,
  base: string,
  environment: Env,
  notes: string[],
  refuse: Refuse,
): Config["env"] {
  if (value === undefined || value === null) return {};
  if (typeof value === "string") {
    const file = resolve(base, value);
    if (!existsSync(file)) {
      notes.push(
        `env names "${value}", but there is no file ${file}; create it${templateHint(base, value)}, or remove env`,
      );
      return {};
    }
    try {
      return parse(readFileSync(file, "utf8"));
    } catch (cause) {
      const why = `the file ${file} cannot be read: ${(cause as Error).message}`;
      return refuse(`env names "${value}", but ${why}`);
    }
  }
  // A list contains only names of variables; their values come from the environment.
  if (Array.isArray(value) && value.every((name) => typeof name === "string")) {
    const unset = value.filter((name) => environment[name] === undefined);
    if (unset.length > 0)
      notes.push(
        `env lists variables that are not set: ${unset.map((name) => JSON.stringify(name)).join(", ")}`,
      );
    return {};
  }
  if (!isObject(value))
    return refuse("env must be the name of a .env file, an object of strings, or a list of names");
  return mapMembersOrThrow(value, (set, name) =>
    typeof set === "string" ? set : refuse(`env.${name} must be a string`),
  );
}
