import { readFileSync, readdirSync } from "node:fs";

/** CPU seconds of each live thread of this process, by thread id. The main thread's id is the process id. */
export function cpuByThread(): Map<number, number> {
  const used = new Map<number, number>();
  for (const task of readdirSync("/proc/self/task")) {
    try {
      const text = readFileSync(`/proc/self/task/${task}/schedstat`, "latin1");
      used.set(Number(task), Number(text.split(" ", 1)[0]) / 1e9);
    } catch {
      // The thread has ended after its folder was listed.
    }
  }
  return used;
}

/** CPU seconds used since `before`: by the main thread, and by all other threads together. */
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
 * Computes for a fixed number of rounds; the result keeps a compiler from removing the loop. 500 rounds take about a
 * microsecond on the machine described in the README.
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
