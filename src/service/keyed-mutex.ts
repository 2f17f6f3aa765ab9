/** A mutex by name: work under the same name never overlaps; work under different names does not wait. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<void>>();

  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(name) ?? Promise.resolve();
    const done = before.then(work);
    const over = done.then(
      () => undefined,
      // Ignores the result and the error: the next caller only has to wait until this work has ended.
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
