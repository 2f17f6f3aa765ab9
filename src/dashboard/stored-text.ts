import { pathPrefix } from "./path-prefix.ts";

interface StoredTextOptions {
  /** `tab`: until this browser tab is closed. `browser`: for all tabs, even after the browser has been closed. */
  readonly keptFor: "tab" | "browser";
  /** Whether another user must not see the text: {@link forgetPrivateTexts} then removes it. */
  readonly isPrivate?: boolean;
}

const privateTexts: StoredText[] = [];

/**
 * A text in the browser's storage. If the storage is disabled or full, the text is kept in memory until the page is
 * closed or reloaded.
 */
export class StoredText {
  readonly #key: string;
  readonly #keptFor: StoredTextOptions["keptFor"];
  /** The text, if it could not be written to the browser's storage; otherwise null. */
  #unstored: string | null = null;

  constructor(key: string, { keptFor, isPrivate = false }: StoredTextOptions) {
    this.#key = key;
    this.#keptFor = keptFor;
    if (isPrivate) privateTexts.push(this);
  }

  read(): string | null {
    if (this.#unstored !== null) return this.#unstored;
    try {
      return this.#storage().getItem(this.#name());
    } catch {
      return null;
    }
  }

  /**
   * Returns false if the text could be kept in memory only. The browser's storage then still contains the previous text,
   * which is read again after the page has been reloaded.
   */
  write(text: string): boolean {
    try {
      this.#storage().setItem(this.#name(), text);
      this.#unstored = null;
      return true;
    } catch {
      this.#unstored = text;
      return false;
    }
  }

  remove(): void {
    this.#unstored = null;
    try {
      this.#storage().removeItem(this.#name());
    } catch {
      // The storage is disabled, so it does not contain the text.
    }
  }

  /** A text that is kept for the tab, such as the API key, belongs to one server, so its name contains the server's path prefix. */
  #name(): string {
    const prefix = pathPrefix();
    return this.#keptFor === "browser" || prefix === "/" ? this.#key : `${this.#key} ${prefix}`;
  }

  /** @throws DOMException if the browser's storage is disabled */
  #storage(): Storage {
    return this.#keptFor === "tab" ? sessionStorage : localStorage;
  }
}

/** Removes all private texts. Called before another user may sign in. */
export function forgetPrivateTexts(): void {
  for (const text of privateTexts) text.remove();
}
