import { readFileSync } from "node:fs";
import type { Random } from "../ports/random.ts";

/**
 * Returns an id that is the same for all processes until the machine boots again. Where the system has no such id, it is random: each
 * restart of the process then looks like a power cut, which only leaves a gap in event ids.
 */
export function bootId(random: Random, file = "/proc/sys/kernel/random/boot_id"): string {
  try {
    const id = readFileSync(file, "utf8").trim();
    if (id !== "") return id;
  } catch {
    // Not Linux, or not readable: a random id is used.
  }
  return Buffer.from(random.bytes(16)).toString("hex");
}
