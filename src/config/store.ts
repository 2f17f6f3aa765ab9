import { parseFields } from "../model/errors.ts";
import { isObject, type JsonObject } from "../model/json.ts";

/** The lifetime of items in the store. */
export interface StoreTtl {
  /** The default lifetime of items in minutes. Null (default): items do not expire. */
  readonly default_ttl?: number | null;
  /** Whether reading an item restarts its lifetime, if the read has no `refresh_ttl`. Default: true. */
  readonly refresh_on_read?: boolean;
  /**
   * Minutes between two searches for expired items, which are then deleted. Default: 5. Reads never return expired items, even before they
   * are deleted.
   */
  readonly sweep_interval_minutes?: number;
}

/** The configuration of semantic search in the store. `Embed` is the type of the embedder, or of a reference to it. */
export interface StoreIndexConfig<Embed> {
  readonly embed: Embed;
  /** The number of dimensions of a vector. */
  readonly dims: number;
  /** The paths in an item's value whose texts are embedded. Default: `["$"]`, the whole value. */
  readonly fields?: readonly string[];
}

/** Store settings in the options of `createApp`. */
export interface StoreOptions {
  readonly ttl?: StoreTtl;
  /**
   * `embed` gets a list of texts, and returns for each text a vector of `dims` numbers, in the same order, or a promise of these vectors.
   */
  readonly index?: StoreIndexConfig<(texts: string[]) => unknown>;
}

/** The settings of a semantic search index without its embedder. */
interface IndexShape {
  readonly dims: number;
  readonly fields: readonly string[];
}

/** The section `store` of a configuration file. `Place` is the type of a reference to a module's export. */
export interface StoreConfig<Place> {
  readonly ttl?: StoreTtl;
  readonly index?: { readonly embed: Place } & IndexShape;
  /** Why there is no index although the file configures one. */
  readonly noIndex?: string;
}

const MAX_DIMS = 65_536;
/** The longest lifetime in minutes: a hundred years. */
const MAX_MINUTES = 52_560_000;

type Refuse = (what: string) => never;

/**
 * Reads the section `store`. `resolveModule` parses a reference such as `"./file.ts:export"`. If a key is invalid, calls `refuse` with the
 * key and what is wrong.
 */
export function parseStoreConfig<Place>(
  section: JsonObject,
  resolveModule: (text: string) => Place,
  refuse: Refuse,
): StoreConfig<Place> {
  const { ttl, index } = section;
  const read = parseFields({
    ttl: () => (ttl === undefined || ttl === null ? {} : { ttl: parseStoreTtl(ttl, refuse) }),
    index: () => {
      if (index === undefined || index === null) return {};
      if (!isObject(index)) return refuse("store.index must be an object");
      return Object.keys(index).length === 0 ? {} : parseIndex(index, resolveModule, refuse);
    },
  });
  return { ...read.ttl, ...read.index };
}

export function parseStoreTtl(ttl: unknown, refuse: Refuse): StoreTtl {
  if (!isObject(ttl)) return refuse("store.ttl must be an object");
  const minutes = (name: string) => (): number | undefined => {
    const value = ttl[name] ?? undefined;
    if (value === undefined || (typeof value === "number" && value > 0 && value <= MAX_MINUTES)) return value;
    return refuse(`store.ttl.${name} must be a number of minutes, above 0`);
  };
  return parseFields({
    default_ttl: minutes("default_ttl"),
    refresh_on_read: () => {
      const value = ttl["refresh_on_read"] ?? undefined;
      if (value === undefined || typeof value === "boolean") return value;
      return refuse("store.ttl.refresh_on_read must be true or false");
    },
    sweep_interval_minutes: minutes("sweep_interval_minutes"),
  });
}

function parseIndex<Place>(
  index: JsonObject,
  resolveModule: (text: string) => Place,
  refuse: Refuse,
): Pick<StoreConfig<Place>, "index" | "noIndex"> {
  const { embed } = index;
  if (typeof embed !== "string" || embed === "")
    return refuse(
      'store.index.embed must be "./file.ts:export", a function of texts that gives their vectors',
    );
  const shape = parseIndexShape(index, refuse);
  if (isFile(embed)) return { index: { embed: resolveModule(embed), ...shape } };
  // `embed` is LangGraph's name of a hosted model, which Heddle cannot call. The store then has no semantic search.
  const noIndex = `is not served: store.index.embed names "${embed}", and has to name a function, as "./file.ts:export"`;
  return { noIndex };
}

/** Reads the members of `store.index` other than its embedder. */
export function parseIndexShape({ dims, fields }: JsonObject, refuse: Refuse): IndexShape {
  if (typeof dims !== "number" || !Number.isInteger(dims) || dims < 1 || dims > MAX_DIMS)
    return refuse(`store.index.dims must be a whole number from 1 to ${MAX_DIMS}`);
  const paths: unknown = fields ?? ["$"];
  if (!Array.isArray(paths) || !paths.every((path) => typeof path === "string" && path !== ""))
    return refuse("store.index.fields must be a list of paths");
  return { dims, fields: paths as readonly string[] };
}

/** Whether a text is a path of a file. Paths of Python files are also accepted here, and refused when the reference is parsed. */
const isFile = (text: string): boolean => /^\.{0,2}[\\/]|\.([cm]?[jt]sx?|py)(:|$)/.test(text);
