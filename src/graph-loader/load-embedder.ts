import type { ModuleExport } from "../model/module-export.ts";
import type { LoadOptions } from "./load-graphs.ts";
import { loadProjectExport } from "./load-export.ts";

export type Embed = (texts: string[]) => unknown;

/**
 * Loads the store's embedder that a configuration names: a function of texts, or a LangChain `Embeddings` object.
 * @param config the absolute path of the configuration file
 * @throws ServiceError `config.invalid`
 */
export function loadEmbedder(config: string, file: ModuleExport, options: LoadOptions): Promise<Embed> {
  return loadProjectExport(
    config,
    file,
    { setting: "store.index.embed", needed: "function of texts", read: embedderOf },
    options,
  );
}

function embedderOf(found: unknown): Embed | undefined {
  if (typeof found === "function") return found as Embed;
  const { embedDocuments } = (found ?? {}) as { readonly embedDocuments?: unknown };
  if (typeof embedDocuments !== "function") return undefined;
  return (texts) => embedDocuments.call(found, texts) as unknown;
}
