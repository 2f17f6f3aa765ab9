import Module, { register } from "node:module";
import { fileURLToPath } from "node:url";
import { findsOurs } from "./self-resolution.ts";
import { entry, inSource } from "./package-files.ts";

/** The package's own door: built, or from source. */
const OWN = entry("index").href;

/** The same door in source, when this is the built one: the demo goes through it. */
const TWIN = OWN.endsWith(".js") ? inSource("../index.ts").href : OWN;

/** What tsx puts behind a file's name to tell one load from another; `?` is escaped where a path has to hold it. */
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

/** In Node 22.15 and later. */
type RegisterHooks = ((hooks: { resolve: SyncResolve }) => unknown) | undefined;

/**
 * What `import` and `require` find from now on, for the whole process, since Node knows no smaller scope: `heddle` is the
 * running package, and under `namespace` (of tsx) a package is the one that everybody else has.
 * @param files the only ones that will be loaded, where they are known
 */
export function resolveAsOurs(namespace: string | undefined, files?: readonly string[]): void {
  const cjs = Module as unknown as { _resolveFilename: ResolveFilename; registerHooks: RegisterHooks };
  const before = cjs._resolveFilename;
  const file = fileURLToPath(OWN);
  cjs._resolveFilename = function (this: unknown, request, ...rest) {
    return request === "heddle" ? file : plain(before.call(this, request, ...rest), namespace);
  };
  if (cjs.registerHooks !== undefined) {
    cjs.registerHooks({
      resolve(name, context, next) {
        if (name === "heddle") return ours();
        const found = next(name, context);
        return isTwin(found.url) ? ours() : { ...found, url: plain(found.url, namespace) };
      },
    });
    return;
  }
  // Elsewhere hooks live in a thread of their own, which a start has to wait for: only where it makes a difference.
  if (files?.every((name) => findsOurs(name, file)) === true) return;
  // Nothing of this file can be reached there.
  const hook = `
    const OWN = ${JSON.stringify(OWN)}, TWIN = ${JSON.stringify(TWIN)}, MARK = ${MARK}, TYPESCRIPT = ${TYPESCRIPT};
    ${String(plain)}
    ${String(isTwin)}
    ${String(ours)}
    export async function resolve(name, context, next) {
      if (name === "heddle") return ours();
      const found = await next(name, context);
      return isTwin(found.url) ? ours() : { ...found, url: plain(found.url, ${JSON.stringify(namespace)}) };
    }`;
  register(`data:text/javascript,${encodeURIComponent(hook)}`);
}

function ours(): Resolved {
  return { url: OWN, format: "module", shortCircuit: true };
}

function isTwin(url: string): boolean {
  return url.split("?")[0] === TWIN;
}

/** The name of a package's file without the namespace, under which Node would load it once more. */
function plain(name: string, namespace: string | undefined): string {
  if (namespace === undefined || !name.includes(namespace)) return name;
  const found = name.replace(MARK, "");
  return /[/\\]node_modules[/\\]/.test(found) && !TYPESCRIPT.test(found) ? found : name;
}
