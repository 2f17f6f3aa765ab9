import { readFileSync, readdirSync } from "node:fs";

/** CPU seconds of this process by thread id; the main thread's id is the process's. */
export function cpuByThread(): Map<number, number> {
  const used = new Map<number, number>();
  for (const task of readdirSync("/proc/self/task")) {
    try {
      const text = readFileSync(`/proc/self/task/${task}/schedstat`, "latin1");
      used.set(Number(task), Number(text.split(" ", 1)[0]) / 1e9);
    } catch {
      // The thread has ended between the two calls.
    }
  }
  return used;
}

/** CPU seconds since `before`, of the main thread and of all others together. */
export function cpuSince(before: ReadonlyMap<number, number>): {
  readonly main: number;
  readonly others: number;
} {
  let main = 0;
  let others = 0;
  for (const [id, now] of cpuByThread()) {
    const used = now - (before.get(id) ?? 0);
    if (id === process.pid) main += used;
    else others += used;
  }
  return { main, others };
}

/**
 * A fixed amount of work that no compiler can remove: about a microsecond for each 500 rounds on the machine of the
 * README.
 */
export function burn(rounds: number): number {
  let x = 0x2545f491;
  for (let i = 0; i < rounds; i++) {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
  }
  return x;
}
