/** A set with at most `max` entries: a further entry replaces the oldest one. */
export class BoundedSet<T> extends Set<T> {
  readonly #max: number;

  constructor(max: number) {
    super();
    this.#max = max;
  }

  override add(entry: T): this {
    if (this.size >= this.#max && !this.has(entry)) for (const oldest of this) if (this.delete(oldest)) break;
    return super.add(entry);
  }
}
