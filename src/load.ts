import { existsSync } from "node:fs";
import Module, { register } from "node:module";
import { extname } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { GraphFile } from "./config.ts";
import { ServiceError } from "./model/errors.ts";
import type { Random } from "./ports/random.ts";

const TYPESCRIPT: ReadonlySet<string> = new Set([".ts", ".mts", ".cts", ".tsx", ".jsx"]);

/**
 * Loads graph files, JavaScript or TypeScript, ES modules or CommonJS. Inside them `heddle` is the running package, never
 * a second copy; all else comes from their own project.
 * @throws ServiceError `config.invalid`, naming the graph and the file
 */
export async function loadGraphs(
  files: { readonly [name: string]: GraphFile },
  random: Random,
): Promise<{ readonly [name: string]: unknown }> {
  const graphs: Record<string, unknown> = {};
  const places = Object.values(files);
  const viaTsx = places.some(({ file }) => TYPESCRIPT.has(extname(file))) ? await typescript(random) : plain;
  // After tsx: the hook that was registered last is asked first.
  resolveOwnName();
  for (const [name, place] of Object.entries(files)) {
    const load = TYPESCRIPT.has(extname(place.file)) ? viaTsx : plain;
    graphs[name] = await loadGraph(place, load, (what, cause) => {
      throw new ServiceError("config.invalid", `graphs.${name}: ${what}`, { cause });
    });
  }
  return graphs;
}

type Refuse = (what: string, cause?: unknown) => never;

async function loadGraph({ file, name }: GraphFile, load: Load, refuse: Refuse): Promise<unknown> {
  if (!existsSync(file)) return refuse(`there is no file ${file}`);
  let module: unknown;
  try {
    module = await load(pathToFileURL(file).href);
  } catch (cause) {
    if (cause instanceof ServiceError) throw cause;
    return refuse(
      `${file} cannot be loaded: ${cause instanceof Error ? cause.message : String(cause)}`,
      cause,
    );
  }
  const found = exported(module, name);
  if (found !== undefined) return found;
  return refuse(
    `${file} exports no "${name}"; it exports: ${Object.keys(module as object).join(", ") || "nothing"}`,
  );
}

/** CommonJS puts its exports behind `default`, and TypeScript's once more. */
function exported(module: unknown, name: string): unknown {
  let found: unknown;
  let holder = module;
  for (let depth = 0; depth < 3 && typeof holder === "object" && holder !== null; depth++) {
    const members = holder as { readonly [name: string]: unknown };
    if (Object.hasOwn(members, name)) found = members[name];
    // Another name is taken where it is met first, the default from the innermost.
    if (found !== undefined && name !== "default") break;
    if (!Object.hasOwn(members, "default")) break;
    holder = members["default"];
  }
  return found;
}

type Load = (url: string) => Promise<unknown>;

const plain: Load = (url) => import(url);

/** One for all files of a configuration, so that what two graphs import is one module. */
async function typescript(random: Random): Promise<Load> {
  const tsx = await Promise.all([import("tsx/cjs/api"), import("tsx/esm/api")]).catch((cause: unknown) => {
    const { typescript: native } = process.features as { readonly typescript?: string | false };
    if (native) return undefined;
    const hint =
      "graph files in TypeScript need tsx: install it (npm i -D tsx), or name the built JavaScript";
    throw new ServiceError("config.invalid", hint, { cause });
  });
  if (tsx === undefined) return plain;
  const [cjs, esm] = tsx;
  // Apart from whatever else runs through tsx in this process, an earlier load too.
  const namespace = `heddle-${Buffer.from(random.bytes(8)).toString("hex")}`;
  cjs.register({ namespace });
  const scope = esm.register({ namespace });
  return (url) => scope.import(url, import.meta.url);
}

/** The package's own door, beside this file: built, or from source. */
const OWN = new URL(`./index${extname(fileURLToPath(import.meta.url))}`, import.meta.url).href;

/** The same door in source, when this is the built one: the demo goes through it. */
const TWIN = OWN.endsWith(".js") ? new URL("../../src/index.ts", import.meta.url).href : OWN;

type ResolveFilename = (request: string, ...rest: unknown[]) => string;

/** What `import "heddle"` and `require("heddle")` find, for the whole process: Node knows no smaller scope. */
function resolveOwnName(): void {
  const cjs = Module as unknown as { _resolveFilename: ResolveFilename };
  const before = cjs._resolveFilename;
  const file = fileURLToPath(OWN);
  cjs._resolveFilename = function (this: unknown, request, ...rest) {
    return request === "heddle" ? file : before.call(this, request, ...rest);
  };
  const hook = `export async function resolve(name, context, next) {
    const found = name === "heddle" ? null : await next(name, context);
    if (found !== null && found.url.split("?")[0] !== ${JSON.stringify(TWIN)}) return found;
    return { url: ${JSON.stringify(OWN)}, format: "module", shortCircuit: true };
  }`;
  register(`data:text/javascript,${encodeURIComponent(hook)}`);
}
