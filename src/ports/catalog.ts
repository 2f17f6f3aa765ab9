import type { AssistantFilter, AssistantRecord, AssistantVersion } from "../model/assistant.ts";
import type { ThreadKey } from "../model/thread.ts";
import type { Eventually } from "./eventually.ts";
import type { Items } from "./items.ts";

export interface ThreadQuery {
  readonly limit: number;
  /** Only threads after this id, in the order of ids (which, being UUID version 7, is that of creation). */
  readonly after?: string;
}

/** One change of the catalog. */
export type CatalogChange =
  | { readonly kind: "assistant.put"; readonly assistant: AssistantRecord }
  | { readonly kind: "assistant.version"; readonly version: AssistantVersion }
  /** With its versions that are stored by then. */
  | { readonly kind: "assistant.delete"; readonly assistant: string };

/** What no thread owns. Each `transact` is atomic and acknowledged: it resolves once it would survive a power cut. */
export interface Catalog {
  assistant(tenant: string, id: string): Eventually<AssistantRecord | undefined>;
  /** Newest first. */
  assistants(tenant: string, filter: AssistantFilter): AsyncIterable<AssistantRecord>;
  /** An assistant's versions, newest first. */
  versions(tenant: string, assistant: string): AsyncIterable<AssistantVersion>;
  version(tenant: string, assistant: string, version: number): Eventually<AssistantVersion | undefined>;
  /** Those of the store. */
  readonly items: Items;
  transact(tenant: string, changes: readonly CatalogChange[]): Promise<void>;
  /** The index of threads, which the journal's appends keep; temporary ones are not in it. */
  threads(tenant: string, query: ThreadQuery): Promise<readonly ThreadKey[]>;
}
