import { ServiceError } from "../model/errors.ts";
import { isDefinition, type GraphDefinition } from "./definition.ts";

/** A graph definition with its edition: a number that is unique in its registry. */
interface Edition {
  readonly definition: GraphDefinition;
  readonly edition: number;
}

/**
 * The graphs that a server serves, by name. A name may get a new definition while runs are in progress. A run that
 * started with the earlier definition finds this definition by its edition, until the definition is garbage-collected.
 */
export class GraphRegistry {
  #graphs = new Map<string, Edition>();
  readonly #earlier = new Map<number, WeakRef<GraphDefinition>>();
  #last = 0;

  /**
   * Adds a graph, and returns this registry.
   * @throws ServiceError `graph.invalid` when `graph` was not made by `graph()`, or the name is taken
   */
  add(name: string, graph: unknown): this {
    if (this.#graphs.has(name))
      throw new ServiceError("graph.invalid", `There are two graphs named "${name}"`);
    this.#graphs.set(name, this.#edition(requireDefinition(name, graph)));
    return this;
  }

  /**
   * Replaces all graphs at once. If one of the new graphs is refused, replaces none.
   * @throws ServiceError `graph.invalid` if a graph was not made by `graph()`
   */
  replace(graphs: { readonly [name: string]: unknown }): void {
    const next = new Map<string, Edition>();
    for (const [name, graph] of Object.entries(graphs)) {
      const definition = requireDefinition(name, graph);
      const now = this.#graphs.get(name);
      next.set(name, now?.definition === definition ? now : this.#edition(definition));
    }
    for (const [edition, reference] of this.#earlier) {
      if (reference.deref() === undefined) this.#earlier.delete(edition);
    }
    for (const { edition, definition } of this.#graphs.values()) {
      this.#earlier.set(edition, new WeakRef(definition));
    }
    this.#graphs = next;
  }

  has(name: string): boolean {
    return this.#graphs.has(name);
  }

  names(): readonly string[] {
    return [...this.#graphs.keys()];
  }

  /** The current definition of a graph. @throws ServiceError `graph.not_found` */
  get(name: string): GraphDefinition {
    return this.current(name).definition;
  }

  /** The current definition of a graph, with its edition. @throws ServiceError `graph.not_found` */
  current(name: string): Edition {
    const graph = this.#graphs.get(name);
    if (graph !== undefined) return graph;
    const known = this.names().join(", ") || "none";
    throw new ServiceError("graph.not_found", `There is no graph "${name}"; the graphs are: ${known}`);
  }

  /**
   * The definition with this edition, or the name's current definition if the former was garbage-collected.
   * @throws ServiceError `graph.not_found`
   */
  at(name: string, edition: number): GraphDefinition {
    const now = this.#graphs.get(name);
    if (now?.edition === edition) return now.definition;
    return this.#earlier.get(edition)?.deref() ?? this.get(name);
  }

  #edition(definition: GraphDefinition): Edition {
    return { definition, edition: ++this.#last };
  }
}

function requireDefinition(name: string, graph: unknown): GraphDefinition {
  if (isDefinition(graph)) return graph;
  throw new ServiceError("graph.invalid", `"${name}" is no graph: export what graph({ ... }) returns`);
}
