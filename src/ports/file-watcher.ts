export interface FileWatcher {
  /** Watches this file from now on, also after it is deleted, replaced or created again (MUST). It need not exist. */
  add(path: string): void;
  close(): void;
}

/** Makes a watcher. `changed` is called for each change, often more than once, and also for files beside the watched ones. */
export type WatchFiles = (changed: (path: string) => void) => FileWatcher;
