/** The numbers of responses. The index is the first digit of their status. */
export type StatusCounts = number[];

/** The method and path pattern of a route. */
interface Served {
  readonly method: string;
  readonly path: string;
}

/** Counts of requests and streams, as plain numbers because they are updated for every request. */
export class Traffic {
  /** Open server-sent event streams. */
  streams = 0;
  /**
   * Responses to requests that found no route, that were refused by access control, or that the project's own
   * application answered.
   */
  readonly unrouted: StatusCounts = none();
  readonly #routes = new Map<Served, StatusCounts>();

  of(route: Served): StatusCounts {
    let answers = this.#routes.get(route);
    if (answers === undefined) this.#routes.set(route, (answers = none()));
    return answers;
  }

  /** The response counts of each route that was requested so far. */
  get routes(): ReadonlyMap<Served, Readonly<StatusCounts>> {
    return this.#routes;
  }
}

const none = (): StatusCounts => [0, 0, 0, 0, 0, 0];

export function countResponse(answers: StatusCounts, status: number): void {
  const first = (status / 100) | 0;
  answers[first] = (answers[first] ?? 0) + 1;
}
