import type { ModuleExport } from "../model/module-export.ts";
import type { Fetch, HttpApp } from "../ports/http-app.ts";
import { loadProjectExport } from "./load-export.ts";
import type { LoadOptions } from "./load-graphs.ts";

/**
 * Loads the HTTP application that a configuration names.
 * @param config the absolute path of the configuration file
 * @throws ServiceError `config.invalid`
 */
export function loadHttpApp(config: string, file: ModuleExport, options: LoadOptions): Promise<HttpApp> {
  const needed = "function of requests, nor an object with fetch";
  return loadProjectExport(config, file, { setting: "http.app", needed, read: httpAppOf }, options);
}

function httpAppOf(found: unknown): HttpApp | undefined {
  if (typeof found === "function") return found as Fetch;
  const { fetch } = (found ?? {}) as { readonly fetch?: unknown };
  return typeof fetch === "function" ? (found as HttpApp) : undefined;
}
