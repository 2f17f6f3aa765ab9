import { existsSync } from "node:fs";
import { dirname, extname } from "node:path";
import { pathToFileURL } from "node:url";
import type { Config, GraphFile } from "../config/config.ts";
import { langGraphOf, type LoadedLangGraph } from "../langgraph/exported-graph.ts";
import { type Definition, isDefinition } from "../graph/definition.ts";
import { ServiceError } from "../model/errors.ts";
import type { Random } from "../ports/random.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import { plainModules, typescriptModules, type Modules } from "./module-loader.ts";

export const TYPESCRIPT: ReadonlySet<string> = new Set([".ts", ".mts", ".cts", ".tsx", ".jsx"]);

/** Milliseconds that one graph file may take. */
const PATIENCE = 30_000;

export interface LoadOptions {
  readonly random: Random;
  readonly scheduler: Scheduler;
  /** Load files anew although they were loaded before, as they are now. */
  readonly fresh?: boolean;
  /** Hears of each file of the user's own that is loaded, soon after. */
  readonly onFile?: (path: string) => void;
  /** Milliseconds that one file may take; default 30 s. */
  readonly patience?: number;
}

export interface LoadedGraphs {
  /** Heddle's own. */
  readonly graphs: { readonly [name: string]: Definition };
  /** Those of LangGraph.js. */
  readonly langGraphs: ReadonlyMap<string, LoadedLangGraph>;
}

/**
 * Loads graph files, JavaScript or TypeScript, ES modules or CommonJS. Inside them `heddle` is the running package, never
 * a second copy; all else, LangGraph.js too, comes from their own project. An export that is a function is called for the
 * graph.
 * @throws ServiceError `config.invalid`, naming the graph, the file and the export
 */
export async function loadGraphs(
  config: Pick<Config, "path" | "graphs">,
  options: LoadOptions,
): Promise<LoadedGraphs> {
  const graphs: Record<string, Definition> = {};
  const langGraphs = new Map<string, LoadedLangGraph>();
  const entries = Object.entries(config.graphs);
  const typescript = entries.some(([, { file }]) => TYPESCRIPT.has(extname(file)));
  // What has to be loaded anew goes through tsx as well: it keeps one load apart from another.
  const files = entries.map(([, { file }]) => file);
  const viaTsx =
    typescript || options.fresh === true
      ? await typescriptModules(dirname(config.path), options)
      : await plainModules(files);
  const plain = typescript && options.fresh !== true ? await plainModules(files) : viaTsx;
  for (const [name, place] of entries) {
    const modules = TYPESCRIPT.has(extname(place.file)) ? viaTsx : plain;
    const graph = await loadGraph(place, modules, options, (what, cause) => {
      throw new ServiceError("config.invalid", `graphs.${name}: ${what}`, { cause });
    });
    if (isDefinition(graph)) graphs[name] = graph;
    else langGraphs.set(name, graph);
  }
  viaTsx.report?.();
  return { graphs, langGraphs };
}

type Refuse = (what: string, cause?: unknown) => never;

async function loadGraph(
  { file, name }: GraphFile,
  modules: Modules,
  options: LoadOptions,
  refuse: Refuse,
): Promise<Definition | LoadedLangGraph> {
  if (!existsSync(file)) return refuse(`there is no file ${file}`);
  const failed = (what: string) => (cause: unknown) => {
    modules.report?.();
    return refuse(
      `${what}: ${cause instanceof Error ? cause.message : String(cause)}${hintOf(cause)}`,
      cause,
    );
  };
  const module = await settled(modules.load(pathToFileURL(file).href), options).catch(
    failed(`${file} cannot be loaded`),
  );
  const found = exported(module, name);
  const exports = namesOf(module);
  const others = `it exports: ${exports.join(", ") || "nothing"}`;
  if (found === undefined) return refuse(`${file} exports no "${name}"; ${others}`);
  const graph = await settled(typeof found === "function" ? made(found) : found, options).catch(
    failed(`${file}: the function "${name}" gave no graph`),
  );
  if (isDefinition(graph)) return graph;
  const hosted = await settled(langGraphOf({ file, found, given: graph }), options).catch(
    failed(`${file}: the graph "${name}" cannot be served`),
  );
  if (hosted !== undefined) return hosted;
  return refuse(`the export "${name}" of ${file} is no graph: ${whatIs(graph)}; ${others}`);
}

function whatIs(value: unknown): string {
  const { invoke } = (value ?? {}) as { readonly invoke?: unknown };
  const what = "export what graph({ ... }) returns, or a graph of LangGraph.js";
  return typeof invoke === "function" ? `a runnable that is no compiled graph; ${what}` : what;
}

/** What to do about it, where that is known. */
function hintOf(cause: unknown): string {
  const { code, message } =
    cause instanceof Error ? (cause as NodeJS.ErrnoException) : { code: "", message: "" };
  const missing = code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND";
  const [, name] = /'(@langchain\/[a-z-]+|langchain)/.exec(message) ?? [];
  return missing && name !== undefined ? `; install it in the project of the graph: npm install ${name}` : "";
}

/**
 * A function is asked once at the load, with an empty configuration. One that gives a LangGraph.js graph and takes the
 * configuration is asked again for each run, with the run's.
 */
async function made(factory: unknown): Promise<unknown> {
  return (factory as (config: object) => unknown)({ configurable: {} });
}

/** What `value` becomes, unless that takes too long. */
export function settled<T>(value: T, { scheduler, patience = PATIENCE }: LoadOptions): Promise<Awaited<T>> {
  return new Promise((resolve, reject) => {
    const cancel = scheduler.after(patience, () =>
      reject(
        new Error(
          `it did not come to an end in ${patience / 1000} s; does it await something at its top level?`,
        ),
      ),
    );
    Promise.resolve(value).then(resolve, reject).finally(cancel);
  });
}

/** The layers of a module: CommonJS puts its exports behind `default`, and TypeScript's once more. */
function* layers(module: unknown): Generator<{ readonly [name: string]: unknown }> {
  let holder = module;
  for (let depth = 0; depth < 3; depth++) {
    if ((typeof holder !== "object" && typeof holder !== "function") || holder === null) return;
    const members = holder as { readonly [name: string]: unknown };
    yield members;
    if (!Object.hasOwn(members, "default")) return;
    holder = members["default"];
  }
}

export function exported(module: unknown, name: string): unknown {
  let found: unknown;
  for (const members of layers(module)) {
    if (Object.hasOwn(members, name)) found = members[name];
    // Another name is taken where it is met first, the default from the innermost.
    if (found !== undefined && name !== "default") break;
  }
  return found;
}

/** What a module exports, as its author wrote it. */
export function namesOf(module: unknown): readonly string[] {
  const all = [...layers(module)].filter((members) => isModule(members));
  const names = new Set(all.flatMap((members) => Object.keys(members)));
  names.delete("__esModule");
  names.delete("module.exports");
  return [...names];
}

/** A layer, and not an exported thing: that has a prototype of its own, or says what it is. */
function isModule(members: object): boolean {
  if (typeof members === "function" || "~heddle" in members) return false;
  const prototype = Object.getPrototypeOf(members) as unknown;
  return prototype === null || prototype === Object.prototype;
}
