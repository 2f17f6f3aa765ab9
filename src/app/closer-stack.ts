/**
 * The functions that close the parts of a server. `close` calls them in the reverse order in which they were added. If a part fails to
 * close, the remaining parts are closed anyway, and the promise rejects with the last error.
 */
export class CloserStack {
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
