import { createRequire } from "node:module";
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import type * as Messages from "@langchain/core/messages";
import type * as Runnables from "@langchain/core/runnables";
import type * as LangGraph from "@langchain/langgraph";
import type * as PregelModule from "@langchain/langgraph/pregel";
import type * as SchemaModule from "@langchain/langgraph/zod/schema";
import type * as CheckpointPackage from "@langchain/langgraph-checkpoint";
import { ServiceError } from "../model/errors.ts";
import { isObject } from "../model/json.ts";
import { type MakeRunnable, createRunnableMaker } from "./untraced-runnable-maker.ts";

/** The LangGraph.js packages that are installed in a user's project, in one module format. They are never Heddle's own copy. */
export interface LangGraphLibrary {
  readonly langgraph: typeof LangGraph;
  readonly pregel: typeof PregelModule;
  readonly schema: typeof SchemaModule;
  readonly messages: typeof Messages;
  readonly runnables: typeof Runnables;
  readonly checkpoint: typeof CheckpointPackage;
  readonly version: string;
  readonly makeRunnable: MakeRunnable;
}

/**
 * A module format: ES modules (`import`) or CommonJS (`require`). LangGraph.js is published in both. Which one a graph uses depends on how
 * the graph's file was loaded.
 */
type Form = "import" | "require";

const NAME = "@langchain/langgraph";
const RANGE = ">=1.0 <2";

/** The newest version of LangGraph.js that the tests cover. */
export const NEWEST_TESTED = "1.7.3";

/**
 * Finds the LangGraph.js that a graph was made with.
 * @param file the path of the graph's file. LangGraph.js is resolved from this file, or, if that installation has not made the graph, from
 * the files of `alsoIn`
 * @param graph the graph, from which the installation and the module format in use are found
 * @throws ServiceError `config.invalid` if the library is not installed, its version is not supported, or it cannot be loaded
 */
export async function resolveLibrary(
  file: string,
  graph: unknown,
  alsoIn: readonly string[] = [],
): Promise<LangGraphLibrary> {
  const installed = new Map<string, { readonly file: string; readonly found: Package }>();
  for (const path of [file, ...alsoIn]) {
    const found = packageAt(NAME, path);
    if (found !== undefined && !installed.has(found.manifest))
      installed.set(found.manifest, { file: path, found });
  }
  let first: LangGraphLibrary | undefined;
  for (const { file: importer, found } of installed.values()) {
    const library = await libraryFor(importer, found, graph);
    if (isOf(library, graph)) return library;
    first ??= library;
  }
  if (first !== undefined) return first;
  throw refusal(`${file} exports a LangGraph.js graph, and its project has no ${NAME}: npm install ${NAME}`);
}

async function libraryFor(file: string, found: Package, graph: unknown): Promise<LangGraphLibrary> {
  const { version } = found;
  const [major] = numbersOf(version);
  if (major !== 1) {
    const how = major < 1 ? updateHint(file) : `it must be ${RANGE}`;
    throw refusal(`${NAME} ${version}, which ${file} uses, is not served: ${how}`);
  }
  try {
    const library = await loaded(found, "import");
    if (isOf(library, graph)) return library;
    const other = await loaded(found, "require");
    return isOf(other, graph) ? other : library;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw refusal(`${NAME} ${version}, which ${file} uses, cannot be loaded: ${why}`, cause);
  }
}

/** Whether a graph is an instance of this library's class. */
function isOf({ pregel }: LangGraphLibrary, graph: unknown): boolean {
  return graph instanceof pregel.Pregel;
}

async function loaded(langgraph: Package, form: Form): Promise<LangGraphLibrary> {
  // Packages are resolved as LangGraph resolves them, because a project may have several copies of a package.
  const part = (name: string, path = "."): Promise<unknown> => {
    const found = name === NAME ? langgraph : packageAt(name, langgraph.manifest);
    if (found === undefined) throw new Error(`it finds no ${name}: npm install ${name}`);
    return load(found, path, form);
  };
  const [graphs, pregel, schema, messages, runnables, checkpoint] = await Promise.all([
    part(NAME),
    part(NAME, "./pregel"),
    part(NAME, "./zod/schema"),
    part("@langchain/core", "./messages"),
    part("@langchain/core", "./runnables"),
    part("@langchain/langgraph-checkpoint"),
  ]);
  const { version } = langgraph;
  const runnableOf = createRunnableMaker(runnables as typeof Runnables);
  return {
    langgraph: graphs,
    pregel,
    schema,
    messages,
    runnables,
    checkpoint,
    version,
    makeRunnable: runnableOf,
  } as LangGraphLibrary;
}

interface Package {
  /** The path of its package.json. */
  readonly manifest: string;
  readonly version: string;
  readonly exports: unknown;
}

/**
 * The package that a file would import by this name; undefined if there is none. It is found by its package.json, because the main module
 * may be missing in one of the formats.
 */
function packageAt(name: string, from: string): Package | undefined {
  for (const directory of createRequire(from).resolve.paths(name) ?? []) {
    const path = join(directory, name, "package.json");
    if (!existsSync(path)) continue;
    const { version = "", exports } = JSON.parse(readFileSync(path, "utf8")) as Partial<Package>;
    return { manifest: realpathSync(path), version, exports };
  }
  return undefined;
}

async function load({ manifest, exports }: Package, path: string, form: Form): Promise<unknown> {
  const target = targetOf(isObject(exports) ? exports[path] : undefined, form);
  if (target === undefined) throw new Error(`${manifest} exports no ${path}`);
  const file = join(dirname(manifest), target);
  return form === "require" ? createRequire(manifest)(file) : import(pathToFileURL(file).href);
}

function targetOf(entry: unknown, form: Form): string | undefined {
  if (typeof entry === "string") return entry;
  if (!isObject(entry)) return undefined;
  return targetOf(entry[form] ?? entry["default"], form);
}

/**
 * What to do about LangGraph.js below version 1: the command that updates the project's packages, and what the update changes for the
 * project's code.
 */
function updateHint(file: string): string {
  const found = ownPackages(file).filter((name) => name !== NAME && name !== "@langchain/core");
  const packages = [NAME, "@langchain/core"].map((name) => `${name}@1`);
  const command = `npm install ${[...packages, ...found.map((name) => `${name}@latest`)].join(" ")}`;
  return (
    `update it with the packages beside it (${command}); graphs stay as they are, but an interrupt has only an id and a value ` +
    `since 0.4, toLangGraphEventStream is gone, and createAgent of langchain takes the place of createReactAgent`
  );
}

/** LangChain's packages among the dependencies of a file's project. */
function ownPackages(file: string): readonly string[] {
  for (let at = dirname(file); ; at = dirname(at)) {
    const path = join(at, "package.json");
    if (existsSync(path)) {
      const { dependencies } = JSON.parse(readFileSync(path, "utf8")) as { readonly dependencies?: unknown };
      const names = isObject(dependencies) ? Object.keys(dependencies) : [];
      return names.filter((name) => name === "langchain" || name.startsWith("@langchain/"));
    }
    if (at === dirname(at)) return [];
  }
}

/** Warnings about versions of LangGraph.js that are newer than {@link NEWEST_TESTED}, one for each version. */
export function versionWarnings(graphs: Iterable<{ readonly library: LangGraphLibrary }>): readonly string[] {
  const versions = new Set([...graphs].map(({ library }) => library.version));
  return [...versions]
    .filter((version) => isNewer(numbersOf(version), numbersOf(NEWEST_TESTED)))
    .map(
      (version) =>
        `${NAME} ${version} is newer than ${NEWEST_TESTED}, the newest that this version of Heddle is tested with`,
    );
}

type Numbers = readonly [major: number, minor: number, patch: number];

function numbersOf(version: string): Numbers {
  const [major = 0, minor = 0, patch = 0] = version.split(/[.+-]/).map((part) => Number(part) || 0);
  return [major, minor, patch];
}

function isNewer(a: Numbers, b: Numbers): boolean {
  const differing = a.findIndex((number, i) => number !== b[i]);
  return differing >= 0 && (a[differing] ?? 0) > (b[differing] ?? 0);
}

export const isAtLeastVersion = (version: string, least: string): boolean =>
  !isNewer(numbersOf(least), numbersOf(version));

function refusal(message: string, cause?: unknown): ServiceError {
  return new ServiceError("config.invalid", message, { cause });
}
