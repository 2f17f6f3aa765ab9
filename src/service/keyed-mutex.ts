/** Does what is asked for under one name one after the other; under different names nothing waits. */
export class Exclusive {
  readonly #last = new Map<string, Promise<void>>();

  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(name) ?? Promise.resolve();
    const done = before.then(work);
    const over = done.then(
      () => undefined,
      // Whoever waits only wants to know that it is over.
      () => undefined,
    );
    this.#last.set(name, over);
    try {
      return await done;
    } finally {
      if (this.#last.get(name) === over) this.#last.delete(name);
    }
  }
}
