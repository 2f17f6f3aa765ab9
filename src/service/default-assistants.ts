import type { AssistantDefaults, AssistantRecord } from "../model/assistant.ts";
import { defaultAssistantId, parseUuid } from "../model/ids.ts";
import type { Catalog } from "../ports/catalog.ts";
import type { Engine } from "../ports/engine.ts";
import { andThen, type Eventually } from "../ports/eventually.ts";

interface Deps {
  readonly catalog: Catalog;
  readonly engine: Engine;
  /** Epoch milliseconds: the creation time that default assistants show. */
  readonly started: number;
  /** The initial settings of default assistants, by graph. The default assistants of other graphs begin without settings. */
  readonly begins: AssistantDefaults;
}

/**
 * The default assistants: one for each graph, addressed by the graph's name or by an id derived from the name. A default assistant is
 * stored only when a tenant changes it; each tenant has its own stored form. If the stored form is deleted, the assistant has its initial
 * form again.
 */
export class DefaultAssistants {
  readonly #deps: Deps;
  readonly #byGraph = new Map<string, AssistantRecord>();
  readonly #byId = new Map<string, AssistantRecord>();
  /** A cache of stored forms, by tenant and id; null when none is stored. Every run that names a graph looks here. */
  readonly #stored = new Map<string, AssistantRecord | null>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /**
   * The initial form of the default assistant with this id or graph name. The engine is asked each time, because graphs
   * may be added and removed.
   */
  initial(name: string): AssistantRecord | undefined {
    const { engine } = this.#deps;
    if (engine.has(name)) return this.#of(name);
    const id = parseUuid(name);
    if (id === undefined) return undefined;
    if (!this.#byId.has(id)) for (const graph of engine.graphs()) this.#of(graph);
    const found = this.#byId.get(id);
    return found !== undefined && engine.has(found.graph_id) ? found : undefined;
  }

  /**
   * The default assistant with this id or graph name: in the tenant's stored form, or else in the initial form. Undefined when there is
   * none.
   */
  find(tenant: string, name: string): Eventually<AssistantRecord> | undefined {
    const made = this.initial(name);
    if (made === undefined) return undefined;
    const at = `${tenant}/${made.assistant_id}`;
    const stored = this.#stored.get(at);
    if (stored !== undefined) return stored ?? made;
    return andThen(this.#deps.catalog.assistant(tenant, made.assistant_id), (found) => {
      // If the assistant was changed during the read, the cache already has its newer form.
      if (!this.#stored.has(at)) this.#stored.set(at, found ?? null);
      return this.#stored.get(at) ?? made;
    });
  }

  /** All default assistants, each in the tenant's stored form or else in the initial form. */
  async all(tenant: string): Promise<readonly AssistantRecord[]> {
    const found: AssistantRecord[] = [];
    for (const graph of this.#deps.engine.graphs()) {
      const one = await this.find(tenant, graph);
      if (one !== undefined) found.push(one);
    }
    return found;
  }

  /** Updates the cache with the stored form of a default assistant; null: none is stored. */
  noteStored(tenant: string, id: string, stored: AssistantRecord | null): void {
    if (this.initial(id) !== undefined) this.#stored.set(`${tenant}/${id}`, stored);
  }

  #of(graph: string): AssistantRecord {
    const known = this.#byGraph.get(graph);
    if (known !== undefined) return known;
    const { started, begins } = this.#deps;
    const made = { ...defaultAssistant(graph, started), ...(Object.hasOwn(begins, graph) && begins[graph]) };
    this.#byGraph.set(graph, made);
    this.#byId.set(made.assistant_id, made);
    return made;
  }
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
