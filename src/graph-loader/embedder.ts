import { existsSync } from "node:fs";
import { dirname, extname } from "node:path";
import { pathToFileURL } from "node:url";
import type { GraphFile } from "../config/config.ts";
import { ServiceError } from "../model/errors.ts";
import {
  exportNamed,
  type LoadOptions,
  exportNames,
  withLoadTimeout,
  TYPESCRIPT_EXTENSIONS,
} from "./load-graphs.ts";
import { nodeModuleLoader, typescriptModuleLoader } from "./module-loader.ts";

export type Embed = (texts: string[]) => unknown;

/**
 * Loads the store's embedder that a configuration names: a function of texts, or a LangChain `Embeddings` object.
 * @param config the absolute path of the configuration file
 * @throws ServiceError `config.invalid`
 */
export async function loadEmbedder(
  config: string,
  { file, name }: GraphFile,
  options: LoadOptions,
): Promise<Embed> {
  const refuse = (what: string, cause?: unknown): never => {
    throw new ServiceError("config.invalid", `store.index.embed: ${what}`, { cause });
  };
  if (!existsSync(file)) return refuse(`there is no file ${file}`);
  const modules = TYPESCRIPT_EXTENSIONS.has(extname(file))
    ? await typescriptModuleLoader(dirname(config), options)
    : await nodeModuleLoader([file]);
  const module = await withLoadTimeout(modules.load(pathToFileURL(file).href), options).catch(
    (cause: unknown) =>
      refuse(`${file} cannot be loaded: ${cause instanceof Error ? cause.message : String(cause)}`, cause),
  );
  const found = exportNamed(module, name);
  if (typeof found === "function") return found as Embed;
  const { embedDocuments } = (found ?? {}) as { readonly embedDocuments?: unknown };
  if (typeof embedDocuments === "function") return (texts) => embedDocuments.call(found, texts) as unknown;
  const others = `it exports: ${exportNames(module).join(", ") || "nothing"}`;
  return refuse(`the export "${name}" of ${file} is no function of texts; ${others}`);
}
