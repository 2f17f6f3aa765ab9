/** Numbers of responses. The index is the first digit of their status: index 2 counts the statuses 200 to 299. */
export type StatusCounts = number[];

/** The method and path pattern of a route. */
interface Served {
  readonly method: string;
  readonly path: string;
}

/** Counts of requests and streams, as plain numbers because they are updated for every request. */
export class TrafficCounts {
  /** The number of open server-sent event streams. */
  streams = 0;
  /**
   * Counts of responses to requests that matched no route, that access control refused, or to which the project's own application
   * responded.
   */
  readonly unrouted: StatusCounts = none();
  readonly #routes = new Map<Served, StatusCounts>();

  of(route: Served): StatusCounts {
    let answers = this.#routes.get(route);
    if (answers === undefined) this.#routes.set(route, (answers = none()));
    return answers;
  }

  /** The response counts of each route that was requested since the server started. */
  get routes(): ReadonlyMap<Served, Readonly<StatusCounts>> {
    return this.#routes;
  }
}

const none = (): StatusCounts => [0, 0, 0, 0, 0, 0];

export function countResponse(answers: StatusCounts, status: number): void {
  const first = (status / 100) | 0;
  answers[first] = (answers[first] ?? 0) + 1;
}
