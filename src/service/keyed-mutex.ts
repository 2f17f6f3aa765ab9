interface Entry {
  /** Resolves when all work under the name has ended. */
  readonly all: Promise<void>;
  /** Resolves when all exclusive work under the name has ended. */
  readonly exclusive: Promise<void> | undefined;
}

/**
 * A mutex by name: exclusive work under a name overlaps with no other work under the same name. Waiting work begins in the order in which
 * it came. Work under different names does not wait for each other.
 */
export class KeyedMutex {
  readonly #entries = new Map<string, Entry>();

  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.#entries.get(name)?.all ?? Promise.resolve();
    const done = before.then(work);
    const over = endOf(done);
    this.#entries.set(name, { all: over, exclusive: over });
    try {
      return await done;
    } finally {
      this.#forget(name, over);
    }
  }

  /** Does work that overlaps with other shared work, but not with exclusive work under any of `names`. */
  async runShared<T>(names: readonly string[], work: () => Promise<T>): Promise<T> {
    const before = names.flatMap((name) => this.#entries.get(name)?.exclusive ?? []);
    const done = before.length === 0 ? work() : Promise.all(before).then(work);
    const over = endOf(done);
    const mine = names.map((name) => {
      const entry = this.#entries.get(name);
      const all = entry === undefined ? over : endOf(Promise.all([entry.all, over]));
      this.#entries.set(name, { all, exclusive: entry?.exclusive });
      return [name, all] as const;
    });
    try {
      return await done;
    } finally {
      for (const [name, all] of mine) void all.then(() => this.#forget(name, all));
    }
  }

  #forget(name: string, all: Promise<void>): void {
    if (this.#entries.get(name)?.all === all) this.#entries.delete(name);
  }
}

/** Resolves when `work` has ended, with or without an error. */
const endOf = (work: Promise<unknown>): Promise<void> =>
  work.then(
    () => undefined,
    () => undefined,
  );
