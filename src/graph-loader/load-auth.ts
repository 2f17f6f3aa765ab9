import { readFileSync } from "node:fs";
import { type AuthHandlers, whyNotAuth } from "../access/custom-auth.ts";
import type { ModuleExport } from "../model/module-export.ts";
import { ServiceError } from "../model/errors.ts";
import { isObject, type JsonObject } from "../model/json.ts";
import type { LoadOptions } from "./load-graphs.ts";
import { loadProjectExport } from "./load-export.ts";

/**
 * Loads the `Auth` object that a configuration names.
 * @param config the absolute path of the configuration file
 * @throws ServiceError `config.invalid`, with the file and the export
 */
export function loadAuth(config: string, file: ModuleExport, options: LoadOptions): Promise<AuthHandlers> {
  const needed = "Auth of @langchain/langgraph-sdk/auth with an authenticate handler";
  return loadProjectExport(config, file, { setting: "auth.path", needed, read: authOf }, options);
}

const authOf = (found: unknown): AuthHandlers | undefined =>
  whyNotAuth(found) === undefined ? (found as AuthHandlers) : undefined;

/** Reads a file with a JSON Web Key Set. @throws ServiceError `config.invalid` */
export function loadKeySet(file: string): JsonObject {
  const refuse = (what: string, cause?: unknown): never => {
    throw new ServiceError("config.invalid", `auth.jwt.jwks: ${what}`, { cause });
  };
  let set: unknown;
  try {
    set = JSON.parse(readFileSync(file, "utf8"));
  } catch (cause) {
    return refuse(`${file} cannot be read: ${(cause as Error).message}`, cause);
  }
  return isObject(set) && Array.isArray(set["keys"]) ? set : refuse(`${file} holds no key set`);
}
