import { readFileSync } from "node:fs";

/** How many descriptors this process may have open; undefined where the platform does not tell, or sets no bound. */
export function mostDescriptors(): number | undefined {
  try {
    const most = Number(/^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "latin1"))?.[1]);
    return Number.isSafeInteger(most) ? most : undefined;
  } catch {
    return undefined;
  }
}
