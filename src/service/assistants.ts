import type { AssistantRecord } from "../model/assistant.ts";
import { ServiceError } from "../model/errors.ts";
import { defaultAssistantId, parseUuid, uuid7 } from "../model/ids.ts";
import type { JsonObject } from "../model/json.ts";
import type { Catalog } from "../ports/catalog.ts";
import type { Clock } from "../ports/clock.ts";
import type { Engine } from "../ports/engine.ts";
import { andThen, type Eventually } from "../ports/eventually.ts";
import type { Random } from "../ports/random.ts";
import { type AssistantPage, type AssistantSearch, searchAssistants } from "./assistant-search.ts";
import { storableObject } from "./storable.ts";

export interface NewAssistant {
  readonly graph_id: string;
  readonly assistant_id?: string;
  readonly name?: string;
  readonly description?: string;
  readonly config?: JsonObject;
  readonly context?: JsonObject;
  readonly metadata?: JsonObject;
  /** What to do when the id is taken: `raise` (default) throws `assistant.exists`, `do_nothing` answers what is there. */
  readonly if_exists?: "raise" | "do_nothing";
}

export interface Assistants {
  /** @throws ServiceError `assistant.not_found` */
  get(tenant: string, id: string): Eventually<AssistantRecord>;
  /** The assistant that a run names: by id, or by its graph's name. @throws ServiceError `assistant.not_found` */
  resolve(tenant: string, name: string): Eventually<AssistantRecord>;
  /** @throws ServiceError `graph.not_found`, `assistant.exists`, `validation.failed` */
  create(tenant: string, asked: NewAssistant): Promise<AssistantRecord>;
  /** Unless it is asked for otherwise, newest first, the default ones last. */
  search(tenant: string, query: AssistantSearch): Promise<AssistantPage>;
}

interface Deps {
  readonly catalog: Catalog;
  readonly engine: Engine;
  readonly clock: Clock;
  readonly random: Random;
}

export function createAssistants({ catalog, engine, clock, random }: Deps): Assistants {
  /** One for each graph, by its name and by its id; nothing of them is stored. */
  const byGraph = new Map<string, AssistantRecord>();
  const byId = new Map<string, AssistantRecord>();
  const started = clock.now();

  function defaultOf(graph: string): AssistantRecord {
    const known = byGraph.get(graph);
    if (known !== undefined) return known;
    const made = defaultAssistant(graph, started);
    byGraph.set(graph, made);
    byId.set(made.assistant_id, made);
    return made;
  }

  /** Graphs may come and go while the server runs. */
  const defaults = () => engine.graphs().map(defaultOf);

  /** Creations under way under an id that the client chose: two of them must not both find it free. */
  const creating = new Map<string, Promise<unknown>>();

  function find(tenant: string, name: string): Eventually<AssistantRecord | undefined> {
    if (engine.has(name)) return defaultOf(name);
    const id = parseUuid(name);
    if (id === undefined) return undefined;
    if (!byId.has(id)) defaults();
    const system = byId.get(id);
    if (system === undefined) return catalog.assistant(tenant, id);
    return engine.has(system.graph_id) ? system : undefined;
  }

  async function store(tenant: string, id: string, asked: NewAssistant): Promise<AssistantRecord> {
    const existing = await find(tenant, id);
    if (existing !== undefined) {
      if (asked.if_exists === "do_nothing") return existing;
      throw new ServiceError("assistant.exists", "Assistant already exists");
    }
    const now = clock.now();
    const assistant: AssistantRecord = {
      assistant_id: id,
      graph_id: asked.graph_id,
      version: 1,
      name: asked.name === "" ? asked.graph_id : (asked.name ?? "Untitled"),
      description: asked.description ?? null,
      config: storableObject(asked.config, "config"),
      context: storableObject(asked.context, "context"),
      metadata: storableObject(asked.metadata, "metadata"),
      created_at: now,
      updated_at: now,
    };
    await catalog.transact(tenant, [{ kind: "assistant.put", assistant }]);
    return assistant;
  }

  return {
    get: (tenant, id) =>
      andThen(find(tenant, id), (found) => found ?? refuse("assistant.not_found", "Assistant not found")),

    resolve: (tenant, name) =>
      andThen(find(tenant, name), (found) => {
        if (found === undefined) refuse("assistant.not_found", noAssistant(name));
        if (engine.has(found.graph_id)) return found;
        return refuse("graph.not_found", `The assistant's graph "${found.graph_id}" is not there any more`);
      }),

    async create(tenant, asked) {
      if (!engine.has(asked.graph_id)) {
        refuse("graph.not_found", `There is no graph "${clip(asked.graph_id)}"; there is ${list(engine)}`);
      }
      if (asked.assistant_id === undefined) {
        return store(tenant, uuid7(clock.now(), random.bytes(16)), asked);
      }
      const name = `${tenant}/${asked.assistant_id}`;
      while (creating.has(name)) await creating.get(name);
      const made = store(tenant, asked.assistant_id, asked);
      // Whoever waits only wants to know that it is over.
      creating.set(
        name,
        made.catch(() => undefined),
      );
      try {
        return await made;
      } finally {
        creating.delete(name);
      }
    },

    search: (tenant, query) => searchAssistants(catalog, tenant, defaults(), query),
  };
}

export function defaultAssistant(graph: string, now: number): AssistantRecord {
  return {
    assistant_id: defaultAssistantId(graph),
    graph_id: graph,
    version: 1,
    name: graph,
    description: null,
    config: {},
    context: {},
    metadata: { created_by: "system" },
    created_at: now,
    updated_at: now,
  };
}

function refuse(code: "assistant.not_found" | "graph.not_found", message: string): never {
  throw new ServiceError(code, message);
}

const noAssistant = (name: string) =>
  `No assistant found for "${clip(name)}". Make sure the assistant ID is for a valid assistant or a valid graph ID.`;

const list = (engine: Engine) =>
  engine
    .graphs()
    .map((graph) => `"${graph}"`)
    .join(", ") || "none";

/** A client's text in a message: not longer than a message should be. */
const clip = (text: string) => (text.length > 100 ? `${text.slice(0, 100)}...` : text);
