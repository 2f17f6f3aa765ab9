import Module, { register } from "node:module";
import { fileURLToPath } from "node:url";
import { resolvesToHeddle } from "./native-resolution-check.ts";
import { entryUrl, packageUrl } from "./heddle-package-paths.ts";

/** The package's main module: built, or in the sources. */
const HEDDLE_URL = entryUrl("index").href;

/** The main module in the sources. The demo imports it, even if the program is built. */
const SOURCE_INDEX = packageUrl("src/index.ts").href;

/** The suffix that tsx appends to file names to separate loads; `?` is escaped in paths. */
const MARK = /(%3[Ff][^/\\]*)?(\?[^/\\]*)?$/;
const TYPESCRIPT = /\.([cm]?ts|tsx|jsx)$/;

interface Resolved {
  readonly url: string;
  readonly format?: string | null | undefined;
  readonly shortCircuit?: boolean;
}

type ResolveFilename = (request: string, ...rest: unknown[]) => string;

type SyncResolve = (
  name: string,
  context: unknown,
  next: (name: string, context: unknown) => Resolved,
) => Resolved;

/** `module.registerHooks`, in Node 22.15 and later. */
type RegisterHooks = ((hooks: { resolve: SyncResolve }) => unknown) | undefined;

/**
 * Changes module resolution for the whole process, since Node has no smaller scope: `heddle` resolves to the running package,
 * and imports of packages within the tsx `namespace` resolve to the shared copy.
 * @param files the only files that will be loaded, if known
 */
export function resolveHeddle(namespace: string | undefined, files?: readonly string[]): void {
  const cjs = Module as unknown as { _resolveFilename: ResolveFilename; registerHooks: RegisterHooks };
  const before = cjs._resolveFilename;
  const file = fileURLToPath(HEDDLE_URL);
  cjs._resolveFilename = function (this: unknown, request, ...rest) {
    return request === "heddle" ? file : plain(before.call(this, request, ...rest), namespace);
  };
  if (cjs.registerHooks !== undefined) {
    cjs.registerHooks({
      resolve(name, context, next) {
        if (name === "heddle") return ours();
        const found = next(name, context);
        return isSourceIndex(found.url) ? ours() : { ...found, url: plain(found.url, namespace) };
      },
    });
    return;
  }
  // In older versions of Node, hooks run in a thread of their own, whose start takes time. So they are registered only if they are needed.
  if (files?.every((name) => resolvesToHeddle(name, file)) === true) return;
  // The hook thread cannot access this module, so the code is passed to it as text.
  const hook = `
    const HEDDLE_URL = ${JSON.stringify(HEDDLE_URL)}, SOURCE_INDEX = ${JSON.stringify(SOURCE_INDEX)}, MARK = ${MARK}, TYPESCRIPT = ${TYPESCRIPT};
    ${String(plain)}
    ${String(isSourceIndex)}
    ${String(ours)}
    export async function resolve(name, context, next) {
      if (name === "heddle") return ours();
      const found = await next(name, context);
      return isSourceIndex(found.url) ? ours() : { ...found, url: plain(found.url, ${JSON.stringify(namespace)}) };
    }`;
  register(`data:text/javascript,${encodeURIComponent(hook)}`);
}

function ours(): Resolved {
  return { url: HEDDLE_URL, format: "module", shortCircuit: true };
}

function isSourceIndex(url: string): boolean {
  return url.split("?")[0] === SOURCE_INDEX;
}

/** The name of a package's file without the namespace; with it, Node would load the package a second time. */
function plain(name: string, namespace: string | undefined): string {
  if (namespace === undefined || !name.includes(namespace)) return name;
  const found = name.replace(MARK, "");
  return /[/\\]node_modules[/\\]/.test(found) && !TYPESCRIPT.test(found) ? found : name;
}
