interface StoredTextOptions {
  /** `tab`: kept for this browser tab; `browser`: kept for all tabs, and when the browser is closed. */
  readonly keptFor: "tab" | "browser";
  /** Whether the text is that of the signed-in user, so that another user must not see it. */
  readonly isPrivate?: boolean;
}

/** Private texts, for {@link forgetPrivateTexts}. */
const privateTexts: StoredText[] = [];

/**
 * A text in the browser's storage. If the storage is disabled or full, the text is kept until the page is closed or
 * reloaded.
 */
export class StoredText {
  readonly #key: string;
  readonly #keptFor: StoredTextOptions["keptFor"];
  /** The text, if the browser's storage has not taken it. */
  #unstored: string | null = null;

  constructor(key: string, { keptFor, isPrivate = false }: StoredTextOptions) {
    this.#key = key;
    this.#keptFor = keptFor;
    if (isPrivate) privateTexts.push(this);
  }

  read(): string | null {
    if (this.#unstored !== null) return this.#unstored;
    try {
      return this.#storage().getItem(this.#key);
    } catch {
      return null;
    }
  }

  /** Returns whether the browser's storage has taken the text. */
  write(text: string): boolean {
    this.remove();
    try {
      this.#storage().setItem(this.#key, text);
      return true;
    } catch {
      this.#unstored = text;
      return false;
    }
  }

  remove(): void {
    this.#unstored = null;
    try {
      this.#storage().removeItem(this.#key);
    } catch {
      // The storage is disabled, so it does not contain the text.
    }
  }

  /** Throws if the browser's storage is disabled. */
  #storage(): Storage {
    return this.#keptFor === "tab" ? sessionStorage : localStorage;
  }
}

/** Removes everything that the signed-in user has typed. Called before another user may sign in. */
export function forgetPrivateTexts(): void {
  for (const text of privateTexts) text.remove();
}
