import { readdirSync, readFileSync } from "node:fs";

/**
 * CPU seconds of all live threads of a process, from `schedstat`, which counts nanoseconds. (`stat` counts in ticks of
 * 10 ms.)
 */
export function cpuOf(pid: number): number {
  let nanoseconds = 0;
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    try {
      nanoseconds += Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, "latin1").split(" ", 1)[0]);
    } catch {
      // The thread has ended after its folder was listed.
    }
  }
  return nanoseconds / 1e9;
}

export interface IoCount {
  /** Bytes passed to write calls, for files and sockets alike. */
  readonly written: number;
  /** Bytes that the process caused to be written to a disk, LevelDB's compactions included. */
  readonly toDisk: number;
}

export function ioOf(pid: number): IoCount {
  const text = readFileSync(`/proc/${pid}/io`, "latin1");
  const field = (name: string) => Number(new RegExp(`^${name}: (\\d+)`, "m").exec(text)?.[1] ?? Number.NaN);
  return { written: field("wchar"), toDisk: field("write_bytes") };
}

export interface Resident {
  /** Bytes of resident anonymous memory: heaps, allocator arenas and stacks. */
  readonly anonymous: number;
  /**
   * Bytes of resident mapped files: code, and the LevelDB tables that were read. The kernel can drop them when it
   * needs memory.
   */
  readonly mapped: number;
}

export function residentOf(pid: number): Resident {
  const text = readFileSync(`/proc/${pid}/status`, "latin1");
  const field = (name: string) =>
    1024 * Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? Number.NaN);
  return { anonymous: field("RssAnon"), mapped: field("RssFile") };
}
