/**
 * A map for cases with mostly one entry or none: a single entry is stored in the object itself. An empty `Map` takes 184 bytes,
 * and gets a new table when its last entry is deleted; a run would make fifteen such maps.
 */
export class SmallMap<K extends string, V> implements ReadonlyMap<K, V> {
  #key: K | undefined;
  #value: V | undefined;
  /** All entries in a `Map`, once there have been two at the same time; undefined until then. */
  #all: Map<K, V> | undefined;

  get size(): number {
    if (this.#all !== undefined) return this.#all.size;
    return this.#key === undefined ? 0 : 1;
  }

  has(key: K): boolean {
    return this.#all === undefined ? this.#key === key : this.#all.has(key);
  }

  get(key: K): V | undefined {
    if (this.#all !== undefined) return this.#all.get(key);
    return this.#key === key ? this.#value : undefined;
  }

  set(key: K, value: V): this {
    if (this.#all === undefined) {
      if (this.#key === undefined || this.#key === key) {
        this.#key = key;
        this.#value = value;
        return this;
      }
      this.#all = new Map([[this.#key, this.#value as V]]);
      this.#key = this.#value = undefined;
    }
    this.#all.set(key, value);
    return this;
  }

  delete(key: K): boolean {
    if (this.#all !== undefined) return this.#all.delete(key);
    if (this.#key !== key) return false;
    this.#key = this.#value = undefined;
    return true;
  }

  clear(): void {
    this.#key = this.#value = this.#all = undefined;
  }

  forEach(callback: (value: V, key: K, map: ReadonlyMap<K, V>) => void): void {
    if (this.#all !== undefined) this.#all.forEach((value, key) => callback(value, key, this));
    else if (this.#key !== undefined) callback(this.#value as V, this.#key, this);
  }

  keys(): MapIterator<K> {
    if (this.#all !== undefined) return this.#all.keys();
    return (this.#key === undefined ? [] : [this.#key]).values();
  }

  values(): MapIterator<V> {
    if (this.#all !== undefined) return this.#all.values();
    return (this.#key === undefined ? [] : [this.#value as V]).values();
  }

  entries(): MapIterator<[K, V]> {
    if (this.#all !== undefined) return this.#all.entries();
    const entry: [K, V][] = this.#key === undefined ? [] : [[this.#key, this.#value as V]];
    return entry.values();
  }

  [Symbol.iterator](): MapIterator<[K, V]> {
    return this.entries();
  }
}

/** A map of items by key. Of several items with the same key, the last one wins. */
export function smallMapBy<K extends string, V>(items: readonly V[], keyOf: (item: V) => K): SmallMap<K, V> {
  const result = new SmallMap<K, V>();
  for (const item of items) result.set(keyOf(item), item);
  return result;
}
