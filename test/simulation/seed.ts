import { plantedFaults as onDisk, type PlantedFault as DiskFault } from "./disk.ts";
import { check } from "./invariants.ts";
import { plantLostPause, plantParkedEnding } from "./planted-faults.ts";
import { World } from "./world.ts";

/** Faults that can be planted on purpose. The invariants must find each of them. */
export const plantedFaults = [...onDisk, "parked-ending", "lost-pause"] as const;
export type PlantedFault = (typeof plantedFaults)[number];

/** Plants a fault in the code of the server. Returns a function that removes it; undefined where the disk has the fault. */
function plantInServer(plant: PlantedFault | null): (() => void) | undefined {
  if (plant === "parked-ending") return plantParkedEnding();
  return plant === "lost-pause" ? plantLostPause() : undefined;
}

/** Returns the violations in the world of a seed, and the world after its end. `isRemote`: its storage is one over a network. */
export async function simulate(
  seed: number,
  plant: PlantedFault | null = null,
  isRemote = false,
): Promise<{ readonly violations: readonly string[]; readonly world: World }> {
  const takeOut = plantInServer(plant);
  const fault: DiskFault = plant === "parked-ending" || plant === "lost-pause" ? null : plant;
  const world = new World({ seed, plant: fault, isRemote });
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
