interface Slot<V> {
  value: V | undefined;
}

/**
 * A map whose deleted values can be garbage-collected at once, for thousands of short-lived entries. When a `Map` grows, V8
 * keeps a link from the old table to the new one (`OrderedHashTable::Rehash`): if an old table is in the old generation, the
 * values in all later tables live until the next full collection. Here, the tables hold slots instead of values, and the slot of
 * a deleted entry is empty.
 */
export class ReleasingMap<K, V extends object> implements ReadonlyMap<K, V> {
  readonly #slots = new Map<K, Slot<V>>();

  get size(): number {
    return this.#slots.size;
  }

  has(key: K): boolean {
    return this.#slots.has(key);
  }

  get(key: K): V | undefined {
    return this.#slots.get(key)?.value;
  }

  set(key: K, value: V): this {
    const slot = this.#slots.get(key);
    if (slot === undefined) this.#slots.set(key, { value });
    else slot.value = value;
    return this;
  }

  delete(key: K): boolean {
    const slot = this.#slots.get(key);
    if (slot === undefined) return false;
    slot.value = undefined;
    return this.#slots.delete(key);
  }

  clear(): void {
    for (const slot of this.#slots.values()) slot.value = undefined;
    this.#slots.clear();
  }

  forEach(callback: (value: V, key: K, map: ReadonlyMap<K, V>) => void): void {
    for (const [key, value] of this) callback(value, key, this);
  }

  keys(): MapIterator<K> {
    return this.#slots.keys();
  }

  *values(): MapIterator<V> {
    for (const { value } of this.#slots.values()) if (value !== undefined) yield value;
  }

  *entries(): MapIterator<[K, V]> {
    for (const [key, { value }] of this.#slots) if (value !== undefined) yield [key, value];
  }

  [Symbol.iterator](): MapIterator<[K, V]> {
    return this.entries();
  }
}
