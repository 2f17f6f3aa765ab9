/** The most entries, including those whose objects have been garbage-collected. */
const MAX_ENTRIES = 256;

/**
 * A cache of large objects by name, so that concurrent readers share one decoded copy. The cache itself does not keep the objects alive.
 */
export class WeakCache<T extends object> {
  readonly #objects = new Map<string, WeakRef<T>>();

  get(name: string): T | undefined {
    return this.#objects.get(name)?.deref();
  }

  set(name: string, object: T): void {
    this.#objects.delete(name);
    if (this.#objects.size >= MAX_ENTRIES)
      for (const oldest of this.#objects.keys()) if (this.#objects.delete(oldest)) break;
    this.#objects.set(name, new WeakRef(object));
  }
}
