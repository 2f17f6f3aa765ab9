import { readFileSync } from "node:fs";
import type { Random } from "../ports/random.ts";

/**
 * Id of the machine's current boot. When the system gives none, each process counts as a boot of its own: a restart is then
 * taken for a power cut, which costs a gap in event ids and nothing else.
 */
export function bootId(random: Random, file = "/proc/sys/kernel/random/boot_id"): string {
  try {
    const id = readFileSync(file, "utf8").trim();
    if (id !== "") return id;
  } catch {
    // Not Linux, or the file is not readable.
  }
  return Buffer.from(random.bytes(16)).toString("hex");
}
