/** Answers by the first digit of their status. */
export type Answers = number[];

/** Of a route, what tells it from the others. */
interface Served {
  readonly method: string;
  readonly path: string;
}

/** What goes through a server's doors, in plain numbers: they are counted for every request. */
export class Traffic {
  /** Streams of server-sent events that are open. */
  streams = 0;
  /** Requests that found no route, or were not let in. */
  readonly elsewhere: Answers = none();
  readonly #routes = new Map<Served, Answers>();

  of(route: Served): Answers {
    let answers = this.#routes.get(route);
    if (answers === undefined) this.#routes.set(route, (answers = none()));
    return answers;
  }

  /** By route, of those that were asked for. */
  get routes(): ReadonlyMap<Served, Readonly<Answers>> {
    return this.#routes;
  }
}

const none = (): Answers => [0, 0, 0, 0, 0, 0];

export function count(answers: Answers, status: number): void {
  const first = (status / 100) | 0;
  answers[first] = (answers[first] ?? 0) + 1;
}
