import { ServiceError } from "../model/errors.ts";
import { isDefinition, type Definition } from "./definition.ts";

/** The graphs that a server serves, by name. */
export class GraphRegistry {
  readonly #graphs = new Map<string, Definition>();

  /** @throws ServiceError `graph.invalid` when `graph` was not made by `graph()`, or the name is taken */
  add(name: string, graph: unknown): this {
    if (!isDefinition(graph)) {
      throw new ServiceError("graph.invalid", `"${name}" is no graph: export what graph({ ... }) returns`);
    }
    if (this.#graphs.has(name))
      throw new ServiceError("graph.invalid", `There are two graphs named "${name}"`);
    this.#graphs.set(name, graph);
    return this;
  }

  has(name: string): boolean {
    return this.#graphs.has(name);
  }

  names(): readonly string[] {
    return [...this.#graphs.keys()];
  }

  /** @throws ServiceError `graph.not_found` */
  get(name: string): Definition {
    const graph = this.#graphs.get(name);
    if (graph !== undefined) return graph;
    const known = this.names().join(", ") || "none";
    throw new ServiceError("graph.not_found", `There is no graph "${name}"; the graphs are: ${known}`);
  }
}
