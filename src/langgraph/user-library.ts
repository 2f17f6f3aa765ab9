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
import { type MakeRunnable, runnableMaker } from "./untraced-runnable.ts";

/** LangGraph.js as it is installed in a user's project: never a copy of our own. There is one for each installation. */
export interface Library {
  readonly langgraph: typeof LangGraph;
  readonly pregel: typeof PregelModule;
  readonly schema: typeof SchemaModule;
  readonly messages: typeof Messages;
  readonly runnables: typeof Runnables;
  readonly checkpoint: typeof CheckpointPackage;
  readonly version: string;
  readonly makeRunnable: MakeRunnable;
}

/** A module format. A package has its modules in both; which one a graph uses depends on how its file was loaded. */
type Form = "import" | "require";

const NAME = "@langchain/langgraph";
const RANGE = ">=1.4.12 <2";

/**
 * The LangGraph.js that a graph file imports.
 * @param file the path of the graph file
 * @param graph the file's graph, from which the module format in use is found
 * @throws ServiceError `config.invalid` when it is not installed, of a version that is not supported, or cannot be loaded
 */
export async function resolveLibrary(file: string, graph: unknown): Promise<Library> {
  const found = packageAt(NAME, file);
  if (found === undefined) {
    throw refusal(
      `${file} exports a LangGraph.js graph, and its project has no ${NAME}: npm install ${NAME}`,
    );
  }
  const { version } = found;
  if (!isServed(version)) {
    throw refusal(`${NAME} ${version}, which ${file} uses, is not served: it must be ${RANGE}`);
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

/** True when the graph is an instance of this library's class. */
function isOf({ pregel }: Library, graph: unknown): boolean {
  return graph instanceof pregel.Pregel;
}

async function loaded(langgraph: Package, form: Form): Promise<Library> {
  // Resolved as LangGraph resolves them: a project may have several copies of a package.
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
  const runnableOf = runnableMaker(runnables as typeof Runnables);
  return {
    langgraph: graphs,
    pregel,
    schema,
    messages,
    runnables,
    checkpoint,
    version,
    makeRunnable: runnableOf,
  } as Library;
}

interface Package {
  /** The path of its package.json. */
  readonly manifest: string;
  readonly version: string;
  readonly exports: unknown;
}

/** The package that a file gets by this name. It is not resolved by its main module, which may be missing in a format. */
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

function isServed(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split(/[.+-]/).map(Number);
  return major === 1 && (minor > 4 || (minor === 4 && patch >= 12));
}

function refusal(message: string, cause?: unknown): ServiceError {
  return new ServiceError("config.invalid", message, { cause });
}
