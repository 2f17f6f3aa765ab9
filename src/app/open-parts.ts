/** Closes parts in the reverse order of their opening. If one fails to close, the others are closed anyway. */
export class OpenParts {
  readonly #closers: (() => unknown)[] = [];

  add(...closers: readonly (() => unknown)[]): void {
    this.#closers.push(...closers);
  }

  async close(): Promise<void> {
    try {
      for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop()) await close();
    } finally {
      if (this.#closers.length > 0) await this.close();
    }
  }
}
