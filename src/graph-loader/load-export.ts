import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";
import type { ModuleExport } from "../model/module-export.ts";
import { ServiceError } from "../model/errors.ts";
import { exportNamed, type LoadOptions, exportNames, withLoadTimeout } from "./load-graphs.ts";
import { describeLoadError } from "./describe-load-error.ts";
import { createModuleLoader } from "./module-loader.ts";

/**
 * Loads a value that a configuration names as `./file.ts:export`, other than a graph. `setting` is the name of the setting,
 * and `needed` describes what the value must be; both are for the error message. `read` converts the value, and returns
 * undefined if the value is not what is needed.
 * @param config the absolute path of the configuration file
 * @throws ServiceError `config.invalid`
 */
export async function loadProjectExport<T>(
  config: string,
  { file, name }: ModuleExport,
  {
    setting,
    needed,
    read,
  }: { readonly setting: string; readonly needed: string; read(found: unknown): T | undefined },
  options: LoadOptions,
): Promise<T> {
  const refuse = (what: string, cause?: unknown): never => {
    throw new ServiceError("config.invalid", `${setting}: ${what}`, { cause });
  };
  const module = await loadModule(file, dirname(config), options, refuse);
  const found = read(exportNamed(module, name));
  if (found !== undefined) return found;
  const others = `it exports: ${exportNames(module).join(", ") || "nothing"}`;
  return refuse(`the export "${name}" of ${file} is no ${needed}; ${others}`);
}

/** Loads a file of the user's project. `directory`: the project's `tsconfig.json` is looked for in this folder and in the folders above. */
export async function loadModule(
  file: string,
  directory: string,
  options: LoadOptions,
  refuse: (what: string, cause?: unknown) => never,
): Promise<unknown> {
  if (!existsSync(file)) return refuse(`there is no file ${file}`);
  const modules = await createModuleLoader([file], directory, options);
  const module = await withLoadTimeout(modules.load(pathToFileURL(file).href), options).catch(
    async (cause: unknown) => {
      modules.report?.();
      return refuse(`${file} cannot be loaded: ${await describeLoadError(file, cause)}`, cause);
    },
  );
  modules.report?.();
  return module;
}
