import { createRequire } from "node:module";
import { existsSync } from "node:fs";
import { dirname, extname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { ServiceError } from "../model/errors.ts";
import { HEDDLE_FOLDERS } from "./own-package-paths.ts";
import { resolveHeddle, withReload } from "./resolve-heddle.ts";

/** Loads files. A module that several files import is loaded only once. */
export interface ModuleLoader {
  load(url: string): Promise<unknown>;
  /**
   * Calls {@link ModuleOptions.onFile} for each loaded CommonJS file. Unlike ES modules, these files cannot be reported one
   * by one while they are loaded.
   */
  readonly report?: () => void;
}

export interface ModuleOptions {
  /**
   * The reload number, for a project that is loaded again after each change: how often it was loaded before,
   * 0 at the first time. Absent for a project that is loaded only once. Each load has its own instances of
   * the modules.
   */
  readonly reload?: number;
  readonly onFile?: (path: string) => void;
  /** Called with each problem that does not stop the files from loading. */
  readonly onWarning?: (warning: string) => void;
}

const TYPESCRIPT_EXTENSIONS: ReadonlySet<string> = new Set([".ts", ".mts", ".cts", ".tsx", ".jsx"]);

/**
 * Makes the loader of these files: Node's own `import`; or tsx if one of the files is in TypeScript, or if
 * there is a reload number. Loads with the same reload number share the instances of their modules.
 * `directory`: the folder in which, and above which, the `tsconfig.json` is searched.
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

/**
 * A module that calls Node's own `import`. Tools that run Heddle from its TypeScript sources, such as vitest, replace
 * `import` in the source files, but not in a `data:` URL.
 */
const NATIVE_IMPORT = "data:text/javascript,export default (url) => import(url)";

interface Registration {
  readonly reload: number | undefined;
  unregister(): Promise<void>;
}

/** The active registrations of tsx, by the path of the tsconfig. The key undefined is for files without a tsconfig. */
const registrations = new Map<string | undefined, Registration>();

/**
 * Registers tsx for the whole thread, once for each tsconfig and reload number. A registration limited to a tsx namespace
 * would not be enough: tsx would not resolve dynamic imports in CommonJS files, and their `__dirname` would not be the
 * folder of the file.
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
    // The tsconfig may extend a tsconfig from a development package, which is often missing in a container image. The
    // files are then loaded without a tsconfig.
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
  // Removes the project's CommonJS files from Node's cache, so that they are loaded again. ES modules do not need this,
  // because their URLs contain the reload number.
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

/**
 * Makes `require` load Heddle's own files with Node instead of tsx, because tsx would make a second instance of
 * Heddle's ES modules. Returns a function that makes `require` load these files with tsx again.
 */
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

/**
 * Sets an environment variable during `work`, unless it has a value already. The CommonJS part of tsx reads
 * the path of the tsconfig only from the environment.
 */
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
