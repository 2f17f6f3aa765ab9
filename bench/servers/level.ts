/**
 * Control: group commit on LevelDB alone, without HTTP. `actors` loops write concurrently, and each waits for its
 * commit before it writes the next one. Two commits are one operation, as in a one-node run. The bench passes the data
 * directory as an argument, and receives the result over IPC.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ClassicLevel } from "classic-level";
import { summarize } from "../stats.ts";
import { GroupCommit } from "./group.ts";

const [, , base = "/tmp", actors = "1", total = "1000"] = process.argv;
const directory = mkdtempSync(join(base, "group-commit-"));
const db = new ClassicLevel<string, Buffer>(directory, { valueEncoding: "buffer" });
await db.open();
const group = new GroupCommit(db);
const record = Buffer.alloc(256, 1);
const latencies: number[] = [];
let left = Number(total);

async function actor(name: string): Promise<void> {
  while (left-- > 0) {
    const key = `${name}${left.toString(36).padStart(6, "0")}`;
    const began = performance.now();
    await group.commit(`${key}a`, record);
    await group.commit(`${key}b`, record);
    latencies.push(performance.now() - began);
  }
}

const cpu = process.cpuUsage();
const start = performance.now();
await Promise.all(Array.from({ length: Number(actors) }, (_, i) => actor(`a${String(i).padStart(7, "0")}`)));
const seconds = (performance.now() - start) / 1000;
const used = process.cpuUsage(cpu);
await db.close();
rmSync(directory, { recursive: true, force: true });
process.send?.({
  operations: latencies.length,
  seconds,
  latency: summarize(latencies),
  batches: group.batches,
  cpu: (used.user + used.system) / 1e6,
});
process.disconnect?.();
