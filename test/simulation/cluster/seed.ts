import { type ClusterPlantName, clusterPlants, type ClusterPlant } from "./planted-faults.ts";
import { ClusterWorld } from "./world.ts";

/** Runs the cluster of a seed, and returns it after its end. */
export async function simulateCluster(seed: number, plant?: ClusterPlantName): Promise<ClusterWorld> {
  const planted: ClusterPlant | undefined = plant && clusterPlants[plant];
  const takeOut = planted?.plant?.();
  const world = new ClusterWorld(seed, planted);
  try {
    await world.run();
  } finally {
    takeOut?.();
  }
  return world;
}
