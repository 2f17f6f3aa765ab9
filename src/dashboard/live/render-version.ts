import { signal } from "@preact/signals";

/** A counter of changes that rises at most once per animation frame, however many changes occur. */
export class RenderVersion {
  readonly #count = signal(0);
  #due = false;

  /** Reads the counter, so that the component that is being rendered subscribes to it. */
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
    // A background page gets no animation frames.
    setTimeout(update, 250);
  }
}
