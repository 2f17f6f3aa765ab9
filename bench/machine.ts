import { closeSync, fdatasyncSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import { join } from "node:path";
import { summarize, type Summary } from "./stats.ts";

export interface Machine {
  readonly processor: string;
  readonly cores: number;
  readonly memory: string;
  readonly kernel: string;
  readonly filesystem: string;
  readonly node: string;
}

export function describeMachine(directory: string): Machine {
  return {
    processor: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
    kernel: release(),
    filesystem: filesystemOf(directory),
    node: process.version,
  };
}

/**
 * The type of the file system that contains a directory. The bench reports it, because figures of durable writes from
 * a file system in memory would be meaningless.
 */
export function filesystemOf(directory: string): string {
  let best = { point: "", type: "unknown" };
  for (const line of readFileSync("/proc/mounts", "latin1").split("\n")) {
    const [, point, type] = line.split(" ");
    if (point === undefined || type === undefined) continue;
    const holds = point === "/" || directory === point || directory.startsWith(`${point}/`);
    if (holds && point.length >= best.point.length) best = { point, type };
  }
  return best.type;
}

/** Milliseconds to append 4 KiB and call fdatasync, one after the other: the least that a synced batch can cost. */
export function measureSync(directory: string, times: number): Summary {
  const file = join(directory, "fdatasync-probe");
  const fd = openSync(file, "a");
  const block = Buffer.alloc(4096, 7);
  const samples: number[] = [];
  try {
    for (let i = 0; i < times; i++) {
      const start = performance.now();
      writeSync(fd, block);
      fdatasyncSync(fd);
      samples.push(performance.now() - start);
    }
  } finally {
    closeSync(fd);
    rmSync(file, { force: true });
  }
  return summarize(samples);
}
