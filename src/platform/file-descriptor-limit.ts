import { readFileSync } from "node:fs";

/** The most file descriptors that this process may have open; undefined if there is no limit, or if the system is not Linux. */
export function maxFileDescriptors(): number | undefined {
  try {
    const most = Number(/^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "latin1"))?.[1]);
    return Number.isSafeInteger(most) ? most : undefined;
  } catch {
    return undefined;
  }
}
