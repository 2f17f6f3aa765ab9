import { createRequire } from "node:module";
import { existsSync } from "node:fs";
import { dirname, extname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { ServiceError } from "../model/errors.ts";
import { HEDDLE_FOLDERS } from "./heddle-package-paths.ts";
import { resolveHeddle, withReload } from "./resolve-heddle.ts";

/** A way to load files. A module that two files import is loaded once. */
export interface ModuleLoader {
  load(url: string): Promise<unknown>;
  /** Calls `onFile` for CommonJS files, which cannot be reported while they are loaded. */
  readonly report?: () => void;
}

export interface ModuleOptions {
  /** Number of the load, from 0, if the project is loaded again and again. Each load has its own modules. */
  readonly reload?: number;
  readonly onFile?: (path: string) => void;
  /** Called with each problem that does not stop the files from loading. */
  readonly onWarning?: (warning: string) => void;
}

const TYPESCRIPT_EXTENSIONS: ReadonlySet<string> = new Set([".ts", ".mts", ".cts", ".tsx", ".jsx"]);

/**
 * Makes the loader of these files: Node's own `import`, or tsx if one is in TypeScript. All loads share their modules, except those with
 * different numbers. `directory`: its `tsconfig.json` is looked for in this folder and in the folders above.
 * @param files absolute paths
 */
export async function createModuleLoader(
  files: readonly string[],
  directory: string,
  options: ModuleOptions,
): Promise<ModuleLoader> {
  const { reload, onFile } = options;
  if (reload === undefined && !files.some((file) => TYPESCRIPT_EXTENSIONS.has(extname(file)))) {
    resolveHeddle(files);
    return { load: (url) => import(url) };
  }
  await registerTsx(findAbove(directory, "tsconfig.json"), options);
  const { default: importNatively } = (await import(NATIVE_IMPORT)) as {
    default: (url: string) => Promise<unknown>;
  };
  return {
    load: (url) => importNatively(withReload(url, reload)),
    report: () => commonJsFiles().forEach((file) => reportFile(file, onFile)),
  };
}

/** A module with Node's own `import`, which tools that run this program from its sources replace in its files. */
const NATIVE_IMPORT = "data:text/javascript,export default (url) => import(url)";

interface Registration {
  readonly reload: number | undefined;
  unregister(): Promise<void>;
}

/** By the path of the tsconfig. */
const registrations = new Map<string | undefined, Registration>();

/**
 * Registers tsx for the whole thread, once for each tsconfig and load. In a tsx namespace, dynamic imports in CommonJS files would not
 * be resolved by tsx, and their `__dirname` would not be the folder of the file.
 */
async function registerTsx(
  found: string | undefined,
  { reload, onFile, onWarning }: ModuleOptions,
): Promise<void> {
  const before = registrations.get(found);
  if (before !== undefined && before.reload === reload) return;
  const [cjs, esm] = await Promise.all([import("tsx/cjs/api"), import("tsx/esm/api")]).catch(
    (cause: unknown) => {
      throw new ServiceError("config.invalid", "tsx, which loads TypeScript, cannot be loaded itself", {
        cause,
      });
    },
  );
  await before?.unregister();
  let tsconfig: string | false | undefined = found;
  let unregisterCjs: () => void;
  try {
    unregisterCjs = withVariable("TSX_TSCONFIG_PATH", found, () => cjs.register());
  } catch (cause) {
    // A tsconfig often extends one from a development package, which is missing in a container image.
    onWarning?.(`${found} is not used, since it cannot be read: ${(cause as Error).message}`);
    tsconfig = false;
    unregisterCjs = cjs.register();
  }
  const restoreRequire = requireHeddleNatively();
  const unregisterEsm = esm.register({
    ...(tsconfig === undefined ? {} : { tsconfig }),
    ...(onFile === undefined ? {} : { onImport: (url: string) => reportFile(url, onFile) }),
  });
  // Registered after tsx, because the last registered hook runs first.
  resolveHeddle();
  // The number of the load does not apply to CommonJS files, so these are removed from Node's cache.
  if (reload !== undefined) for (const name of commonJsFiles()) delete cache[name];
  registrations.set(found, {
    reload,
    async unregister() {
      restoreRequire();
      unregisterCjs();
      await unregisterEsm();
    },
  });
}

const { cache, extensions } = createRequire(import.meta.url);
const loadNatively = extensions[".js"];

/** Otherwise tsx would make a second instance of Heddle's ES modules for \`require\`. Returns a function that undoes it. */
function requireHeddleNatively(): () => void {
  const loadWithTsx = extensions[".js"];
  extensions[".js"] = (module, file) => {
    const isHeddle = HEDDLE_FOLDERS.some((folder) => pathToFileURL(file).href.startsWith(folder));
    return (isHeddle ? loadNatively : loadWithTsx)?.(module, file);
  };
  return () => {
    extensions[".js"] = loadWithTsx;
  };
}

const commonJsFiles = (): readonly string[] =>
  Object.keys(cache).filter((name) => userFile(name) !== undefined);

function reportFile(name: string, onFile: ModuleOptions["onFile"]): void {
  const path = userFile(name);
  if (path !== undefined) onFile?.(path);
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
function withVariable<T>(name: string, value: string | undefined, work: () => T): T {
  const before = process.env[name];
  if (value === undefined || before !== undefined) return work();
  process.env[name] = value;
  try {
    return work();
  } finally {
    delete process.env[name];
  }
}
