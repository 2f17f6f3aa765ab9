import { readFileSync } from "node:fs";
import type { Random } from "../ports/random.ts";

/**
 * The id of the machine's current boot. If the system has none, each process counts as a boot of its own: a restart is then handled like a
 * power cut, which only leaves a gap in event ids.
 */
export function bootId(random: Random, file = "/proc/sys/kernel/random/boot_id"): string {
  try {
    const id = readFileSync(file, "utf8").trim();
    if (id !== "") return id;
  } catch {
    // The system is not Linux, or the file is not readable: a random id is used.
  }
  return Buffer.from(random.bytes(16)).toString("hex");
}
