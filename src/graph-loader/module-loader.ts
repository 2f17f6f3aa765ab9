import { createRequire } from "node:module";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { ServiceError } from "../model/errors.ts";
import type { Random } from "../ports/random.ts";
import { resolveAsOurs } from "./resolve-heddle.ts";

/** One way to load files. What two of them import is one module. */
export interface Modules {
  load(url: string): Promise<unknown>;
  /** Tells of files that could not be told of while they were loaded. */
  readonly report?: () => void;
}

/** As Node does it. */
export async function plainModules(files: readonly string[]): Promise<Modules> {
  resolveAsOurs(undefined, files);
  return { load: (url) => import(url) };
}

export interface TypescriptOptions {
  readonly random: Random;
  /** Nothing of the user's own is taken from an earlier load. */
  readonly fresh?: boolean;
  readonly onFile?: (path: string) => void;
}

/**
 * Through tsx, apart from whatever else goes through it in this process, an earlier load too: each has a namespace, and
 * with it modules of its own. Packages are not meant: there is one of each, as Node has it.
 */
export async function typescriptModules(
  directory: string,
  { random, fresh, onFile }: TypescriptOptions,
): Promise<Modules> {
  const [cjs, esm] = await Promise.all([import("tsx/cjs/api"), import("tsx/esm/api")]).catch(
    (cause: unknown) => {
      throw new ServiceError("config.invalid", "tsx, which loads TypeScript, cannot be loaded itself", {
        cause,
      });
    },
  );
  const namespace = `heddle-${Buffer.from(random.bytes(8)).toString("hex")}`;
  const tsconfig = findAbove(directory, "tsconfig.json");
  withVariable("TSX_TSCONFIG_PATH", tsconfig, () => cjs.register({ namespace }));
  const tell = (url: string) => {
    const path = ownFile(url);
    if (path !== undefined) onFile?.(path);
  };
  const scope = esm.register({
    namespace,
    ...(tsconfig === undefined ? {} : { tsconfig }),
    ...(onFile === undefined ? {} : { onImport: tell }),
  });
  // After tsx: the hook that was registered last is asked first.
  resolveAsOurs(namespace);
  const { cache } = createRequire(import.meta.url);
  const commonjs = () => Object.keys(cache).filter((name) => ownFile(name) !== undefined);
  // The namespace does not reach CommonJS in plain JavaScript.
  if (fresh === true) for (const name of commonjs()) delete cache[name];
  return {
    load: (url) => scope.import(url, import.meta.url),
    report: () => commonjs().forEach(tell),
  };
}

/** The path of a file, unless a package brought it. */
function ownFile(name: string): string | undefined {
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

/** tsx's CommonJS side takes this setting from the environment alone. */
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
