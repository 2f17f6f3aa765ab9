/** Entries kept, those whose object is gone included. */
const MAX_ENTRIES = 256;

/**
 * Large objects by name, shared by those that read them at the same time: each decoded copy would take its own memory. It keeps no object
 * alive.
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
