import { statSync } from "node:fs";
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";
import type { Config } from "../config/config.ts";
import type { ModuleExport } from "../model/module-export.ts";
import { type FactoryRuntime, READ_ONLY_RUNTIME } from "../langgraph/factory-runtime.ts";
import { loadLangGraph, type LoadedLangGraph } from "../langgraph/exported-graph.ts";
import { type GraphDefinition, isDefinition } from "../graph/definition.ts";
import { isMachine } from "../machines/xstate-types.ts";
import { ErrorCollector, ServiceError } from "../model/errors.ts";
import { isObject } from "../model/json.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import { describeLoadError } from "./describe-load-error.ts";
import { createModuleLoader, type ModuleLoader, type ModuleOptions } from "./module-loader.ts";

const LOAD_TIMEOUT_MS = 30_000;

export interface LoadOptions extends ModuleOptions {
  readonly scheduler: Scheduler;
  /** Milliseconds: the timeout for one file. Default: 30 s. */
  readonly timeout?: number;
}

export interface LoadedGraphs {
  readonly graphs: { readonly [name: string]: GraphDefinition };
  readonly langGraphs: ReadonlyMap<string, LoadedLangGraph>;
}

/**
 * Loads graph files: JavaScript or TypeScript, ES modules or CommonJS. In these files, `heddle` resolves to the running
 * package, never to a second copy. All other packages, including LangGraph.js, come from the project of the file. If an
 * export is a function, it is called to make the graph.
 * @throws ServiceError `config.invalid`, with the name of the graph and the file, and with the name of the export if
 * only the export is wrong
 */
export async function loadGraphs(
  config: Pick<Config, "path" | "graphs">,
  options: LoadOptions,
): Promise<LoadedGraphs> {
  const graphs: Record<string, GraphDefinition> = {};
  const langGraphs = new Map<string, LoadedLangGraph>();
  const files = Object.values(config.graphs).map(({ file }) => file);
  const modules = await createModuleLoader(files, dirname(config.path), options);
  await forEachGraph(config.graphs, async (name, graphFile) => {
    const graph = await loadGraph(graphFile, modules, options, (what, cause) => {
      throw new ServiceError("config.invalid", `graphs.${name}: ${what}`, { cause });
    });
    if (isDefinition(graph)) graphs[name] = graph;
    else langGraphs.set(name, graph);
  });
  modules.report?.();
  return { graphs, langGraphs };
}

/**
 * Loads graphs one after the other, and goes on when one cannot be loaded.
 * @throws ServiceError the error of the graph that cannot be loaded; if there are several, one error with a line for each
 */
export async function forEachGraph<T>(
  graphs: { readonly [name: string]: T },
  load: (name: string, graph: T) => Promise<void>,
): Promise<void> {
  const errors = new ErrorCollector();
  for (const [name, graph] of Object.entries(graphs)) {
    await load(name, graph).catch((error: unknown) => errors.add(error));
  }
  errors.throw();
}

type Refuse = (what: string, cause?: unknown) => never;

async function loadGraph(
  { file, name }: ModuleExport,
  modules: ModuleLoader,
  options: LoadOptions,
  refuse: Refuse,
): Promise<GraphDefinition | LoadedLangGraph> {
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined) return refuse(`there is no file ${file}`);
  if (stats.isDirectory()) return refuse(`${file} is a folder; name a file in it`);
  const failed = (what: string) => async (cause: unknown) => {
    modules.report?.();
    return refuse(`${what}: ${await describeLoadError(file, cause)}`, cause);
  };
  const module = await withLoadTimeout(modules.load(pathToFileURL(file).href), options).catch(
    failed(`${file} cannot be loaded`),
  );
  const found = exportNamed(module, name);
  const exports = exportNames(module);
  const others = `it exports: ${exports.join(", ") || "nothing"}`;
  if (found === undefined) return refuse(`${file} exports no "${name}"; ${others}`);
  const graph = await withLoadTimeout(
    typeof found === "function" ? callFactory(found) : found,
    options,
  ).catch(failed(`${file}: the function "${name}" gave no graph`));
  if (isDefinition(graph)) return graph;
  try {
    const machine = await machineAsGraph(graph, [file]);
    if (machine !== undefined) return machine;
  } catch (cause) {
    return refuse(`${file}: the machine "${name}" cannot be served: ${(cause as Error).message}`, cause);
  }
  const hosted = await withLoadTimeout(loadLangGraph({ file, name, found, given: graph }), options).catch(
    (cause: unknown) => {
      const what = `${file}: the graph "${name}" cannot be served`;
      // A `ServiceError` comes from Heddle itself, so no line of the file is to blame.
      return cause instanceof ServiceError ? refuse(`${what}: ${cause.message}`, cause) : failed(what)(cause);
    },
  );
  if (hosted !== undefined) return hosted;
  return refuse(`the export "${name}" of ${file} is no graph: ${notAGraphMessage(graph, others)}`);
}

/**
 * The graph made from an XState machine, or from versions of one; undefined for everything else.
 * @param files the files from which XState is resolved
 * @throws ServiceError `config.invalid` when the machine cannot be served
 */
export async function machineAsGraph(
  value: unknown,
  files: readonly string[],
): Promise<GraphDefinition | undefined> {
  if (!isMachine(value) && !hasVersions(value)) return undefined;
  const { loadMachine } = await import("../machines/exported-machine.ts");
  return loadMachine(value, files);
}

/** True for an object whose member `versions` lists versions of a machine. */
const hasVersions = (value: unknown): value is { readonly versions: readonly unknown[] } =>
  isObject(value) && Array.isArray(value["versions"]);

/**
 * Describes a value that is not a graph, and says what to give instead. `others`: what else its file exports; absent for a value that comes
 * from no file.
 */
export function notAGraphMessage(value: unknown, others?: string): string {
  const verb = others === undefined ? "give" : "export";
  const { invoke, nodes } = (value ?? {}) as { readonly invoke?: unknown; readonly nodes?: unknown };
  if (isObject(value) && isObject(nodes))
    return `a definition that was not given to graph(): ${verb} graph({ ... })`;
  const what = `${verb} what graph({ ... }) returns, a graph of LangGraph.js, or an XState machine${others === undefined ? "" : `; ${others}`}`;
  return typeof invoke === "function" ? `a runnable that is no compiled graph; ${what}` : what;
}

/**
 * Calls a graph factory with an empty configuration. A factory of a LangGraph.js graph that takes the configuration is called
 * again for each run, with the run's configuration.
 */
export async function callFactory(factory: unknown): Promise<unknown> {
  return (factory as (config: object, runtime: FactoryRuntime) => unknown)(
    { configurable: {} },
    READ_ONLY_RUNTIME,
  );
}

/** Awaits `value`; rejects after the timeout. */
export function withLoadTimeout<T>(
  value: T,
  { scheduler, timeout = LOAD_TIMEOUT_MS }: LoadOptions,
): Promise<Awaited<T>> {
  return new Promise((resolve, reject) => {
    const cancel = scheduler.after(timeout, () =>
      reject(
        new Error(
          `it did not come to an end in ${timeout / 1000} s; does it await something at its top level?`,
        ),
      ),
    );
    Promise.resolve(value).then(resolve, reject).finally(cancel);
  });
}

/**
 * The export objects of a module, from the outermost to the innermost. A CommonJS file has its exports under `default`,
 * and a CommonJS file compiled from TypeScript has them under `default.default`.
 */
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

export function exportNamed(module: unknown, name: string): unknown {
  let found: unknown;
  for (const members of layers(module)) {
    if (name === "default" && isCommonJs(members)) break;
    if (Object.hasOwn(members, name)) found = members[name];
    // A named export is taken from the outermost layer that has it, the default export from the innermost.
    if (found !== undefined && name !== "default") break;
  }
  return found;
}

/** The names that a module exports, without those that CommonJS adds. */
export function exportNames(module: unknown): readonly string[] {
  const all = [...layers(module)].filter((members) => isModule(members));
  const names = new Set(
    all.flatMap((members) =>
      Object.keys(members).filter((name) => name !== "default" || !isCommonJs(members)),
    ),
  );
  names.delete("__esModule");
  names.delete("module.exports");
  return [...names];
}

/**
 * Whether the default export of a layer is only Node's view of a CommonJS file: an object that has at least
 * one of the named exports too, with the same value.
 */
function isCommonJs(members: { readonly [name: string]: unknown }): boolean {
  const { default: inner, ...named } = members;
  return (
    isObject(inner) &&
    isModule(inner) &&
    !Object.hasOwn(inner, "default") &&
    Object.keys(named).some((name) => Object.hasOwn(inner, name) && inner[name] === named[name])
  );
}

/** True for an object of exports; false for an exported value, which is a function, a class instance or a graph. */
function isModule(members: object): boolean {
  if (typeof members === "function" || "~heddle" in members) return false;
  const prototype = Object.getPrototypeOf(members) as unknown;
  return prototype === null || prototype === Object.prototype;
}
