import { type FSWatcher, watch } from "node:fs";
import { dirname, join } from "node:path";
import type { Logger } from "../ports/logger.ts";
import type { WatchFiles } from "../ports/file-watcher.ts";

/** Watches the folders of files, because the watch of a single file ends when an editor replaces the file. */
export function systemWatchFiles(logger: Logger): WatchFiles {
  return (changed) => {
    const folders = new Map<string, FSWatcher | undefined>();
    return {
      add(path) {
        const folder = dirname(path);
        if (folders.has(folder)) return;
        folders.set(folder, open(folder));
      },
      close() {
        for (const watcher of folders.values()) watcher?.close();
        folders.clear();
      },
    };

    function open(folder: string): FSWatcher | undefined {
      const failed = (cause: unknown) => logger.warn("changes are not seen here", { folder, cause });
      try {
        return watch(folder, { persistent: false }, (_, name) => {
          if (name !== null) changed(join(folder, name));
        }).on("error", failed);
      } catch (cause) {
        failed(cause);
        return undefined;
      }
    }
  };
}
