import { readFileSync } from "node:fs";
import type { Random } from "../ports/random.ts";

/**
 * Names the machine's boot. Where the system does not tell, every process counts as a boot of its own: then a restart is
 * taken for a power cut, which costs a gap in event ids and nothing else.
 */
export function bootId(random: Random, file = "/proc/sys/kernel/random/boot_id"): string {
  try {
    const id = readFileSync(file, "utf8").trim();
    if (id !== "") return id;
  } catch {
    // Not Linux, or not to be read.
  }
  return Buffer.from(random.bytes(16)).toString("hex");
}
