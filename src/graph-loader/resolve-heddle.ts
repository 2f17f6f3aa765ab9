import Module, { register } from "node:module";
import { fileURLToPath } from "node:url";
import { resolvesToHeddle } from "./native-resolution-check.ts";
import { entryUrl, HEDDLE_FOLDERS, urlInPackage } from "./own-package-paths.ts";

/** The package's main module: built, or in the sources. */
const HEDDLE_URL = entryUrl("index").href;

/** The main module in the sources. The demo imports it, even if the program is built. */
const SOURCE_INDEX = urlInPackage("src/index.ts").href;

/**
 * The query parameter with the reload number in the URLs of ES modules. Each reload has other URLs, so it has its own
 * instances of the modules.
 */
const PARAMETER = "heddle-reload";

interface Resolved {
  readonly url: string;
  readonly format?: string | null | undefined;
  readonly shortCircuit?: boolean;
}

interface Context {
  readonly parentURL?: string | undefined;
  readonly conditions: readonly string[];
  /** True if a newer registration of these hooks has already resolved the import. The hooks of older registrations then do nothing. */
  readonly isResolved?: boolean;
}

interface Loaded {
  readonly format?: string | null | undefined;
  readonly responseURL?: string;
}

type ResolveFilename = (request: string, ...rest: unknown[]) => string;

interface SyncHooks {
  resolve(name: string, context: Context, next: (name: string, context: Context) => Resolved): Resolved;
  load(url: string, context: unknown, next: (url: string, context: unknown) => Loaded): Loaded;
}

/** `module.registerHooks`, in Node 22.15 and later. */
type RegisterHooks = ((hooks: SyncHooks) => unknown) | undefined;

const constants = { HEDDLE_URL, SOURCE_INDEX, HEDDLE_FOLDERS, PARAMETER };

/**
 * Changes module resolution for the whole process, since Node has no smaller scope: `heddle` resolves to the running
 * package, and the URLs of the project's ES modules contain the reload number.
 * @param files the only files that will be loaded, if known
 */
export function resolveHeddle(files?: readonly string[]): void {
  const cjs = Module as unknown as { _resolveFilename: ResolveFilename; registerHooks: RegisterHooks };
  const before = cjs._resolveFilename;
  const file = fileURLToPath(HEDDLE_URL);
  cjs._resolveFilename = function (this: unknown, request, ...rest) {
    return request === "heddle" ? file : before.call(this, request, ...rest);
  };
  if (cjs.registerHooks !== undefined) {
    const { ours, reloadOf, withoutReload, contextOf, resolved, loaded } = hookFunctions(constants);
    cjs.registerHooks({
      resolve(name, context, next) {
        if (name === "heddle") return ours;
        const reload = reloadOf(name, context);
        return resolved(next(withoutReload(name), contextOf(context)), reload);
      },
      load: (url, context, next) => loaded(next(withoutReload(url), context), url),
    });
    return;
  }
  // In older versions of Node, hooks run in a thread of their own, whose start takes time. So they are registered only if they are needed.
  if (files?.every((name) => resolvesToHeddle(name, file)) === true) return;
  // The hook thread cannot access this module, so the code is passed to it as text. esbuild may have added calls of `__name` to it.
  const hook = `
    const __name = (named) => named;
    const { ours, reloadOf, withoutReload, contextOf, resolved, loaded } = (${String(hookFunctions)})(${JSON.stringify(constants)});
    export async function resolve(name, context, next) {
      if (name === "heddle") return ours;
      const reload = reloadOf(name, context);
      return resolved(await next(withoutReload(name), contextOf(context)), reload);
    }
    export async function load(url, context, next) {
      const found = loaded(await next(withoutReload(url), context), url);
      // Removes the source, so that Node reads the CommonJS file itself. Only then does the file get a complete \`require\`.
      return found.format === "commonjs" && found.responseURL?.startsWith("file:")
        ? { ...found, source: undefined }
        : found;
    }`;
  register(`data:text/javascript,${encodeURIComponent(hook)}`);
}

/** Adds the reload number to the URL of a project's file. The first load adds nothing, so that its URLs are those of the files. */
export function withReload(url: string, reload: number | undefined): string {
  return reload === undefined || reload === 0 ? url : `${url}?${PARAMETER}=${reload}`;
}

/** The functions that all hooks share. They use nothing from outside of this function, because its text is passed to another thread. */
function hookFunctions({
  HEDDLE_URL: heddle,
  SOURCE_INDEX: source,
  HEDDLE_FOLDERS: folders,
  PARAMETER: parameter,
}: typeof constants) {
  const pattern = new RegExp(`[?&]${parameter}=(\\d+)`);
  const ours: Resolved = { url: heddle, format: "module", shortCircuit: true };
  /** The newest reload number; undefined if nothing was reloaded yet. */
  let newest: string | undefined;

  function isProjectFile(url: string): boolean {
    if (!url.startsWith("file:") || url.includes("/node_modules/")) return false;
    return url.includes("/src/demo/") || !folders.some((folder) => url.startsWith(folder));
  }

  function withoutReload(url: string): string {
    return url.replace(pattern, "");
  }

  return {
    ours,
    withoutReload,

    /**
     * The reload number for an import: the number in the imported URL, which only the loader of the graph
     * files adds; else that in the URL of the importing file. CommonJS files have no number in their URLs, so
     * their imports get the newest number. Undefined for imports in packages.
     */
    reloadOf(name: string, { parentURL = "", conditions, isResolved }: Context): string | undefined {
      // A `require` needs no reload number: the loader removes the project's CommonJS files from the cache of `require` instead.
      if (isResolved === true || !conditions.includes("import")) return undefined;
      const given = pattern.exec(name)?.[1];
      if (given !== undefined) newest = given;
      return given ?? (isProjectFile(parentURL) ? (pattern.exec(parentURL)?.[1] ?? newest) : undefined);
    },

    /**
     * The context for the next hooks. The reload number is removed from the parent's URL, because tsx treats the imports of
     * a CommonJS file differently if the file's URL has a query.
     */
    contextOf: (context: Context): Context => ({
      ...context,
      parentURL: context.parentURL && withoutReload(context.parentURL),
      isResolved: true,
    }),

    resolved(found: Resolved, reload: string | undefined): Resolved {
      const { url } = found;
      if (url.split("?")[0] === source) return ours;
      return reload === undefined || !isProjectFile(url)
        ? found
        : { ...found, url: `${url}${url.includes("?") ? "&" : "?"}${parameter}=${reload}` };
    },

    /**
     * Keeps the reload number in the URL of an ES module, so that the module's own imports get the same number. A CommonJS
     * file is loaded by its path, without a number.
     */
    loaded: (found: Loaded, url: string): Loaded =>
      found.format === "module" && pattern.test(url) ? { ...found, responseURL: url } : found,
  };
}
