import { createRequire } from "node:module";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { ServiceError } from "../model/errors.ts";
import type { Random } from "../ports/random.ts";
import { resolveHeddle } from "./resolve-heddle.ts";

/** A way to load files. A module that two files import is loaded once. */
export interface ModuleLoader {
  load(url: string): Promise<unknown>;
  /** Calls `onFile` for CommonJS files, which cannot be reported while they are loaded. */
  readonly report?: () => void;
}

/** Loads JavaScript files with Node's own `import`. */
export async function nodeModuleLoader(files: readonly string[]): Promise<ModuleLoader> {
  resolveHeddle(undefined, files);
  return { load: (url) => import(url) };
}

export interface TypescriptOptions {
  readonly random: Random;
  /** Whether to load the user's files again even if they were loaded before. */
  readonly fresh?: boolean;
  readonly onFile?: (path: string) => void;
  /** Called with each problem that does not stop the files from loading. */
  readonly onWarning?: (warning: string) => void;
}

/**
 * Loads TypeScript files with tsx. Each load has its own tsx namespace, and with it its own modules, separate from earlier
 * loads and other uses of tsx in this process. Packages are shared, as in Node.
 */
export async function typescriptModuleLoader(
  directory: string,
  { random, fresh, onFile, onWarning }: TypescriptOptions,
): Promise<ModuleLoader> {
  const [cjs, esm] = await Promise.all([import("tsx/cjs/api"), import("tsx/esm/api")]).catch(
    (cause: unknown) => {
      throw new ServiceError("config.invalid", "tsx, which loads TypeScript, cannot be loaded itself", {
        cause,
      });
    },
  );
  const namespace = `heddle-${Buffer.from(random.bytes(8)).toString("hex")}`;
  const found = findAbove(directory, "tsconfig.json");
  let tsconfig: string | false | undefined = found;
  try {
    withVariable("TSX_TSCONFIG_PATH", found, () => cjs.register({ namespace }));
  } catch (cause) {
    // A tsconfig often extends one from a development package, which is missing in a container image.
    onWarning?.(`${found} is not used, since it cannot be read: ${(cause as Error).message}`);
    tsconfig = false;
    cjs.register({ namespace });
  }
  const reportFile = (url: string) => {
    const path = userFile(url);
    if (path !== undefined) onFile?.(path);
  };
  const scope = esm.register({
    namespace,
    ...(tsconfig === undefined ? {} : { tsconfig }),
    ...(onFile === undefined ? {} : { onImport: reportFile }),
  });
  // Registered after tsx, because the last registered hook runs first.
  resolveHeddle(namespace);
  const { cache } = createRequire(import.meta.url);
  const commonjs = () => Object.keys(cache).filter((name) => userFile(name) !== undefined);
  // The namespace does not apply to CommonJS files in plain JavaScript, so these are removed from Node's cache.
  if (fresh === true) for (const name of commonjs()) delete cache[name];
  return {
    load: (url) => scope.import(url, import.meta.url),
    report: () => commonjs().forEach(reportFile),
  };
}

/** The path of a file of the user's project; undefined for files of packages and built-in modules. */
function userFile(name: string): string | undefined {
  const plain = name.replace(/(%3[Ff]|\?)[^/]*$/, "");
  if (/[\\/]node_modules[\\/]/.test(plain)) return undefined;
  if (!plain.startsWith("file:"))
    return plain.includes(":") && !/^[A-Za-z]:[\\/]/.test(plain) ? undefined : plain;
  return fileURLToPath(plain);
}

function findAbove(directory: string, name: string): string | undefined {
  const path = join(directory, name);
  if (existsSync(path)) return path;
  const above = dirname(directory);
  return above === directory ? undefined : findAbove(above, name);
}

/** Sets an environment variable during `work`. The CommonJS part of tsx reads the path of the tsconfig only from the environment. */
function withVariable(name: string, value: string | undefined, work: () => void): void {
  const before = process.env[name];
  if (value === undefined || before !== undefined) return work();
  process.env[name] = value;
  try {
    work();
  } finally {
    delete process.env[name];
  }
}
