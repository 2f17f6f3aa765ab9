import type {
  AssistantDefaults,
  AssistantFilter,
  AssistantRecord,
  AssistantVersion,
} from "../model/assistant.ts";
import { ServiceError } from "../model/errors.ts";
import { parseUuid } from "../model/ids.ts";
import { contains, type JsonObject } from "../model/json.ts";
import type { Permits } from "../model/permitted-resources.ts";
import type { TimeBudget } from "../ports/time-budget.ts";
import type { Catalog } from "../ports/catalog.ts";
import type { Clock } from "../ports/clock.ts";
import type { Engine } from "../ports/engine.ts";
import { andThen, type Eventually } from "../ports/eventually.ts";
import { type AssistantPage, type AssistantSearch, searchAssistants } from "./assistant-search.ts";
import { DefaultAssistants } from "./default-assistants.ts";
import { KeyedMutex } from "./keyed-mutex.ts";
import { requireStorableObject } from "./storable-values.ts";

/** The fields of an assistant that a client may set. */
export interface AssistantSettings {
  readonly graph_id?: string;
  readonly name?: string;
  readonly description?: string;
  readonly config?: JsonObject;
  readonly context?: JsonObject;
  readonly metadata?: JsonObject;
}

export interface NewAssistant extends AssistantSettings {
  readonly graph_id: string;
  readonly assistant_id?: string;
  /** When the id is taken: `raise` (default) throws `assistant.exists`, `do_nothing` returns the existing assistant. */
  readonly if_exists?: "raise" | "do_nothing";
}

export interface VersionQuery {
  readonly limit: number;
  readonly offset: number;
  /** The version's metadata must contain all these entries. */
  readonly metadata?: JsonObject;
}

/**
 * Assistants, each addressed by its id; a default assistant also by its graph's name. `permits` returns whether the request may reach an
 * assistant with the given metadata. Other assistants count as missing.
 */
export interface Assistants {
  /** The id of the default assistant that has this id, or whose graph has this name; undefined when there is none. */
  defaultId(name: string): string | undefined;
  /** @throws ServiceError `assistant.not_found` */
  get(tenant: string, name: string, permits?: Permits): Eventually<AssistantRecord>;
  /** The assistant that a run uses. @throws ServiceError `assistant.not_found`, `graph.not_found` */
  resolve(tenant: string, name: string, permits?: Permits): Eventually<AssistantRecord>;
  /**
   * Creates an assistant. `permits` decides whether `do_nothing` may return the existing assistant.
   * @throws ServiceError `graph.not_found`, `assistant.exists`, `validation.failed`
   */
  create(tenant: string, settings: NewAssistant, permits?: Permits): Promise<AssistantRecord>;
  /**
   * Makes a new version, numbered above all earlier ones. Metadata is merged; each other field is replaced if it is given.
   * @throws ServiceError `assistant.not_found`, `graph.not_found`, `validation.failed`
   */
  update(
    tenant: string,
    name: string,
    settings: AssistantSettings,
    permits?: Permits,
  ): Promise<AssistantRecord>;
  /** The permitted versions of an assistant, newest first. @throws ServiceError `assistant.not_found` */
  versions(
    tenant: string,
    name: string,
    query: VersionQuery,
    permits?: Permits,
  ): Promise<readonly AssistantVersion[]>;
  /**
   * Sets the assistant back to this version, which must be permitted too.
   * @throws ServiceError `assistant.not_found`, `assistant.version_not_found`
   */
  setLatest(tenant: string, name: string, version: number, permits?: Permits): Promise<AssistantRecord>;
  /**
   * Deletes the assistant with all its versions; a default assistant returns to its initial form.
   * @throws ServiceError `assistant.not_found`
   */
  delete(tenant: string, name: string, permits?: Permits): Promise<AssistantRecord>;
  /** Default order: newest first, default assistants last. */
  search(tenant: string, query: AssistantSearch): Promise<AssistantPage>;
  count(tenant: string, filter: AssistantFilter): Promise<number>;
}

interface Deps {
  readonly catalog: Catalog;
  readonly engine: Engine;
  readonly clock: Clock;
  readonly newId: () => string;
  /** Makes long searches yield to other work. */
  readonly budget: TimeBudget;
  readonly assistantDefaults?: AssistantDefaults | undefined;
}

export function createAssistants(deps: Deps): Assistants {
  const { catalog, engine, clock, newId, budget, assistantDefaults = {} } = deps;
  const defaults = new DefaultAssistants({
    catalog,
    engine,
    started: clock.now(),
    begins: assistantDefaults,
  });
  /**
   * Serialises the changes of one assistant. If changes overlapped, two updates could start from the same version, or two requests could
   * create an assistant with the same id.
   */
  const changes = new KeyedMutex();

  function find(tenant: string, name: string): Eventually<AssistantRecord | undefined> {
    const found = defaults.find(tenant, name);
    if (found !== undefined) return found;
    const id = parseUuid(name);
    return id === undefined ? undefined : catalog.assistant(tenant, id);
  }

  const get = (tenant: string, name: string, permits?: Permits) =>
    andThen(find(tenant, name), (found) =>
      isReachable(found, permits) ? found : refuse("assistant.not_found", "Assistant not found"),
    );

  /** Changes an assistant. Changes of the same assistant never overlap. */
  async function change<T>(
    tenant: string,
    name: string,
    permits: Permits | undefined,
    work: (assistant: AssistantRecord) => Promise<T>,
  ): Promise<T> {
    const { assistant_id: id } = await get(tenant, name, permits);
    return changes.run(`${tenant}/${id}`, async () => work(await get(tenant, id, permits)));
  }

  const search = async (tenant: string, query: AssistantSearch) =>
    searchAssistants(catalog, tenant, await defaults.all(tenant), query, budget.share(tenant));

  async function store(
    tenant: string,
    assistant: AssistantRecord,
    versions: readonly AssistantVersion[],
  ): Promise<AssistantRecord> {
    await catalog.transact(tenant, [
      { kind: "assistant.put", assistant },
      ...versions.map((version) => ({ kind: "assistant.version", version }) as const),
    ]);
    defaults.noteStored(tenant, assistant.assistant_id, assistant);
    return assistant;
  }

  async function make(
    tenant: string,
    id: string,
    settings: NewAssistant,
    permits: Permits | undefined,
  ): Promise<AssistantRecord> {
    const existing = await find(tenant, id);
    if (existing !== undefined) {
      if (settings.if_exists === "do_nothing" && isReachable(existing, permits)) return existing;
      throw new ServiceError("assistant.exists", "Assistant already exists");
    }
    const now = clock.now();
    const made: AssistantRecord = {
      assistant_id: id,
      graph_id: settings.graph_id,
      version: 1,
      name: nameOf(settings.name ?? "Untitled", settings.graph_id),
      description: settings.description ?? null,
      config: requireStorableObject(settings.config, "config"),
      context: requireStorableObject(settings.context, "context"),
      metadata: requireStorableObject(settings.metadata, "metadata"),
      created_at: now,
      updated_at: now,
    };
    return store(tenant, made, [versionOf(made, now)]);
  }

  async function revise(
    tenant: string,
    before: AssistantRecord,
    settings: AssistantSettings,
  ): Promise<AssistantRecord> {
    const { graph_id = before.graph_id, name, description, config, context, metadata } = settings;
    const newest = await newestOf(tenant, before.assistant_id);
    const now = clock.now();
    const after: AssistantRecord = {
      ...before,
      graph_id,
      version: (newest ?? before.version) + 1,
      updated_at: now,
      ...(name !== undefined && { name: nameOf(name, graph_id) }),
      ...(description !== undefined && { description }),
      ...(config !== undefined && { config: requireStorableObject(config, "config") }),
      ...(context !== undefined && { context: requireStorableObject(context, "context") }),
      metadata: { ...before.metadata, ...requireStorableObject(metadata, "metadata") },
    };
    // Stores the initial form as the first version, because a default assistant has no stored version before its first change.
    const first = newest === undefined ? [versionOf(before, before.created_at)] : [];
    return store(tenant, after, [...first, versionOf(after, now)]);
  }

  async function newestOf(tenant: string, id: string): Promise<number | undefined> {
    for await (const { version } of catalog.versions(tenant, id)) return version;
    return undefined;
  }

  function checkGraph(graph: string): void {
    if (engine.has(graph)) return;
    refuse("graph.not_found", `There is no graph "${clip(graph)}"; there is ${list(engine)}`);
  }

  return {
    defaultId: (name) => defaults.initial(name)?.assistant_id,

    get,

    resolve: (tenant, name, permits) =>
      andThen(find(tenant, name), (found) => {
        if (!isReachable(found, permits)) return refuse("assistant.not_found", noAssistantMessage(name));
        if (engine.has(found.graph_id)) return found;
        return refuse("graph.not_found", `The assistant's graph "${found.graph_id}" is not there any more`);
      }),

    async create(tenant, settings, permits) {
      checkGraph(settings.graph_id);
      const id = settings.assistant_id ?? newId();
      return changes.run(`${tenant}/${id}`, () => make(tenant, id, settings, permits));
    },

    update: (tenant, name, settings, permits) =>
      change(tenant, name, permits, (before) => {
        if (settings.graph_id !== undefined) checkGraph(settings.graph_id);
        return revise(tenant, before, settings);
      }),

    async versions(tenant, name, { limit, offset, metadata = {} }, permits) {
      const assistant = await get(tenant, name, permits);
      const found: AssistantVersion[] = [];
      let skipped = 0;
      let stored = false;
      for await (const version of catalog.versions(tenant, assistant.assistant_id)) {
        stored = true;
        if (!contains(version.metadata, metadata) || !isReachable(version, permits)) continue;
        if (skipped++ < offset) continue;
        if (found.length === limit) break;
        found.push(version);
      }
      if (stored || offset > 0 || !contains(assistant.metadata, metadata)) return found;
      return [versionOf(assistant, assistant.created_at)];
    },

    setLatest: (tenant, name, number, permits) =>
      change(tenant, name, permits, async (before) => {
        const isOnly = number === before.version;
        const version = isOnly ? before : await catalog.version(tenant, before.assistant_id, number);
        if (!isReachable(version, permits)) {
          return refuse("assistant.version_not_found", `Assistant version not found: there is no ${number}`);
        }
        const { created_at } = before;
        return store(tenant, { ...version, created_at, updated_at: clock.now() }, []);
      }),

    delete: (tenant, name, permits) =>
      change(tenant, name, permits, async (before) => {
        const { assistant_id: id } = before;
        await catalog.transact(tenant, [{ kind: "assistant.delete", assistant: id }]);
        defaults.noteStored(tenant, id, null);
        return before;
      }),

    search,

    count: async (tenant, filter) => (await search(tenant, { ...filter, limit: 0, offset: 0 })).total,
  };
}

/** True if the assistant or version exists and the request may reach it. */
export function isReachable<T extends { readonly metadata: JsonObject }>(
  found: T | undefined,
  permits: Permits | undefined,
): found is T {
  return found !== undefined && (permits === undefined || permits(found.metadata));
}

function versionOf(assistant: AssistantRecord, created_at: number): AssistantVersion {
  const { updated_at: _, ...version } = assistant;
  return { ...version, created_at };
}

const nameOf = (name: string, graph: string) => (name === "" ? graph : name);

function refuse(
  code: "assistant.not_found" | "assistant.version_not_found" | "graph.not_found",
  message: string,
): never {
  throw new ServiceError(code, message);
}

/** The message of the error for a name that leads to no assistant that the request may use. */
export const noAssistantMessage = (name: string) =>
  `No assistant found for "${clip(name)}". Make sure the assistant ID is for a valid assistant or a valid graph ID.`;

const list = (engine: Engine) =>
  engine
    .graphs()
    .map((graph) => `"${graph}"`)
    .join(", ") || "none";

/** Shortens a client's text for use in a message. */
const clip = (text: string) => (text.length > 100 ? `${text.slice(0, 100)}...` : text);
