import { signal } from "@preact/signals";

/** A counter of changes that causes at most one rendering per animation frame, however many changes occur. */
export class RenderVersion {
  readonly #count = signal(0);
  #due = false;

  /** A component that reads this while it is rendered is rendered again when the counter rises. */
  get count(): number {
    return this.#count.value;
  }

  increment(): void {
    if (this.#due) return;
    this.#due = true;
    const update = () => {
      if (!this.#due) return;
      this.#due = false;
      this.#count.value++;
    };
    requestAnimationFrame(update);
    // A page in the background gets no animation frames, so a timer updates the counter there.
    setTimeout(update, 250);
  }
}
