export interface FileWatcher {
  /** Starts to watch a file, whether or not the file exists. MUST continue after the file is deleted, replaced or created again. */
  add(path: string): void;
  close(): void;
}

/** Makes a watcher. It calls `changed` for each change, often more than once, and also for other files in the same folders. */
export type WatchFiles = (changed: (path: string) => void) => FileWatcher;
