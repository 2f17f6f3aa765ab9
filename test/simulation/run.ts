/**
 * `npm run simulate -- --seeds N [--from SEED] [--plant NAME] [--remote] [--cluster]`: runs N simulated worlds, with `--remote` over a
 * storage whose reads take time, with `--cluster` the worlds of a cluster with several nodes. Exits with 1 if an invariant was violated.
 * With a planted fault this is expected, and the first seed that found it is printed.
 */
import { numberOf, readOptions, refuse } from "../../bench/options.ts";
import { type ClusterPlantName, clusterPlants } from "./cluster/planted-faults.ts";
import { simulateCluster } from "./cluster/seed.ts";
import { plantedFaults, simulate, type PlantedFault } from "./seed.ts";

const values = readOptions({
  seeds: { type: "string", default: "600" },
  from: { type: "string", default: "1" },
  plant: { type: "string" },
  remote: { type: "boolean", default: false },
  cluster: { type: "boolean", default: false },
});
const seeds = numberOf("seeds", values.seeds, { least: 1 });
const from = numberOf("from", values.from, { least: 0 });
const { plant } = values;
const plants: readonly string[] = values.cluster ? Object.keys(clusterPlants) : plantedFaults;
if (plant !== undefined && !plants.includes(plant))
  refuse(`no planted fault "${plant}"; there are: ${plants.join(", ")}`);
if (values.cluster && values.remote) refuse("--remote is not for --cluster");
const say = (line: string) => process.stdout.write(`${line}\n`);
const sums = new Map<string, number>();
let failed = 0;
let current = from;
// A deadlocked world ends the process, because the event loop is empty.
process.on("exit", (code) => {
  if (code === 13) say(`seed ${current}: waits for something that never happens`);
});
for (let seed = from; seed < from + seeds; seed++) {
  current = seed;
  const { violations, counts } = values.cluster ? await ofCluster(seed) : await ofServer(seed);
  for (const [what, count] of counts) sums.set(what, (sums.get(what) ?? 0) + count);
  if (violations.length === 0) continue;
  failed++;
  for (const violation of violations.slice(0, 8)) say(`seed ${seed}: ${violation}`);
  if (plant !== undefined) break;
}
const counted = [...sums].map(([what, count]) => `${count} ${what}`).join(", ");
say(`seeds from ${from}: ${failed} of ${seeds} breach an invariant; ${counted}`);
process.exit(failed === 0 ? 0 : 1);

/** What a world found, and what happened in it. */
interface Found {
  readonly violations: readonly string[];
  readonly counts: readonly (readonly [what: string, count: number])[];
}

async function ofServer(seed: number): Promise<Found> {
  const { violations, world } = await simulate(seed, plant as PlantedFault | undefined, values.remote);
  const { stop, cut, kill, power } = world.ended;
  return {
    violations,
    counts: [
      ["stops", stop],
      ["killed in a stop", cut],
      ["kills", kill],
      ["power cuts", power],
    ],
  };
}

async function ofCluster(seed: number): Promise<Found> {
  const world = await simulateCluster(seed, plant as ClusterPlantName | undefined);
  const { acknowledged, unknown, reads } = world.clients.counts;
  return {
    violations: world.violations,
    counts: [
      ["writes acknowledged", acknowledged],
      ["with an unknown outcome", unknown],
      ["reads", reads],
      ["takeovers", world.takeovers],
      ["snapshots", world.snapshots],
      ...[...world.faults]
        .toSorted(([one], [other]) => (one < other ? -1 : 1))
        .map(([fault, count]) => [`times "${fault}"`, count] as const),
    ],
  };
}
