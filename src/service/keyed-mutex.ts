/** A mutex by name: work under the same name never overlaps; work under different names does not wait. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<void>>();

  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(name) ?? Promise.resolve();
    const done = before.then(work);
    const over = done.then(
      () => undefined,
      // The next caller only needs to know that this work is over.
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
