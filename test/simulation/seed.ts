import { plants as onDisk, type Plant as DiskPlant } from "./disk.ts";
import { check } from "./invariants.ts";
import { plantLeftEnding } from "./left-ending.ts";
import { World } from "./world.ts";

/** Faults that can be planted on purpose. The invariants must find each of them. */
export const plants = [...onDisk, "left-ending"] as const;
export type Plant = (typeof plants)[number];

/** Returns the violations in the world of a seed, and the world after its end. */
export async function simulate(
  seed: number,
  plant: Plant | null = null,
): Promise<{ readonly violations: readonly string[]; readonly world: World }> {
  const takeOut = plant === "left-ending" ? plantLeftEnding() : undefined;
  const fault: DiskPlant = plant === "left-ending" ? null : plant;
  const world = new World({ seed, plant: fault });
  try {
    await world.run();
    return { violations: await check(world), world };
  } catch (thrown) {
    const unreadable = `I1: what was acknowledged cannot be read: ${String(thrown)}`;
    return { violations: [...world.observed.violations, unreadable], world };
  } finally {
    takeOut?.();
  }
}
