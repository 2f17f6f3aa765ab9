import type { Config } from "../config/config.ts";
import { loadEmbedder } from "../graph-loader/load-embedder.ts";
import { ServiceError } from "../model/errors.ts";
import { isObject } from "../model/json.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { StoreIndex } from "../service/store/embedding.ts";
import type { StorePolicy } from "../service/store/store.ts";
import { parseIndexShape, parseStoreTtl, type StoreOptions, type StoreTtl } from "../config/store.ts";

/** The settings of a server's store. */
export interface StoreSetup {
  readonly policy: StorePolicy;
  /** Milliseconds between two passes that delete expired items. */
  readonly sweep: number;
}

const MINUTE = 60_000;
const DEFAULT_SWEEP = 5;

/**
 * Reads the store's settings, and loads its embedder. `given`, an option of `createApp`, takes precedence over the configuration file.
 * @throws ServiceError `config.invalid`
 */
export async function setUpStore(
  given: StoreOptions | undefined,
  config: Config | undefined,
  scheduler: Scheduler,
): Promise<StoreSetup> {
  const refuse = (what: string): never => {
    throw new ServiceError("config.invalid", what);
  };
  const file = config?.store;
  const own = given?.ttl === undefined ? {} : parseStoreTtl(given.ttl, refuse);
  const ttl: StoreTtl = { ...file?.ttl, ...own };
  let index: StoreIndex | undefined;
  if (given?.index !== undefined) {
    const { embed } = given.index;
    if (typeof embed !== "function") refuse("store.index.embed must be a function of texts");
    index = { embed, ...parseIndexShape(isObject(given.index) ? given.index : {}, refuse) };
  } else if (file?.index !== undefined && config !== undefined) {
    const { embed, dims, fields } = file.index;
    index = { embed: await loadEmbedder(config.path, embed, { scheduler }), dims, fields };
  }
  const noIndex = index === undefined ? file?.noIndex : undefined;
  return {
    policy: {
      defaultTtl: ttl.default_ttl ?? null,
      refreshOnRead: ttl.refresh_on_read ?? true,
      ...(index && { index }),
      ...(noIndex !== undefined && { noIndex }),
    },
    sweep: (ttl.sweep_interval_minutes ?? DEFAULT_SWEEP) * MINUTE,
  };
}
