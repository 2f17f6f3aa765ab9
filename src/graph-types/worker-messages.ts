import type { TypeSchemas } from "../ports/graph-type-schemas.ts";
import type { ModuleExport } from "../model/module-export.ts";

/** A request to the worker to read one graph. The worker gets the next request after it has answered. */
export type GraphTypesRequest = ModuleExport;

export type GraphTypesMessage =
  /**
   * Hashes of the project's own files that the graph's program consists of, by path. They are sent before the types are
   * read, so that they are known even if reading takes too long.
   */
  | { readonly t: "files"; readonly hashes: { readonly [path: string]: string } }
  | { readonly t: "schemas"; readonly schemas: { readonly [path: string]: TypeSchemas } | null }
  /**
   * The project has no TypeScript whose compiler can be called. `installed`: the version of TypeScript
   * that it has; null if it has none.
   */
  | { readonly t: "no-compiler"; readonly installed: string | null }
  | { readonly t: "failed"; readonly why: string };
