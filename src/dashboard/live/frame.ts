import { signal } from "@preact/signals";

/** A count of changes that rises once a frame at most, however much happens meanwhile. */
export class Changes {
  readonly #count = signal(0);
  #due = false;

  /** Reads it, so that whoever renders is rendered anew. */
  get seen(): number {
    return this.#count.value;
  }

  made(): void {
    if (this.#due) return;
    this.#due = true;
    const tell = () => {
      if (!this.#due) return;
      this.#due = false;
      this.#count.value++;
    };
    requestAnimationFrame(tell);
    // A page in the background has no frames.
    setTimeout(tell, 250);
  }
}
