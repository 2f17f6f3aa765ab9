/** Tells when files change. */
export interface Watcher {
  /** From now on this file is watched; MUST go on when it is deleted, replaced or made again. It need not exist. */
  add(path: string): void;
  close(): void;
}

/** `changed` hears of each change, often more than once; also of other files beside those that are watched. */
export type Watch = (changed: (path: string) => void) => Watcher;
