/**
 * `npm run simulate -- --seeds N [--from SEED] [--plant NAME] [--remote]`: runs N simulated worlds, with `--remote` over a storage whose
 * reads take time. Exits with 1 if an invariant
 * was violated. With a planted fault this is expected, and the first seed that found it is printed.
 */
import { numberOf, readOptions } from "../../bench/options.ts";
import { plantedFaults, simulate, type PlantedFault } from "./seed.ts";

const values = readOptions({
  seeds: { type: "string", default: "600" },
  from: { type: "string", default: "1" },
  plant: { type: "string" },
  remote: { type: "boolean", default: false },
});
const seeds = numberOf("seeds", values.seeds, { least: 1 });
const from = numberOf("from", values.from, { least: 0 });
const plant = values.plant as PlantedFault | undefined;
if (plant !== undefined && !plantedFaults.includes(plant)) {
  process.stderr.write(`no planted fault "${plant}"; there are: ${plantedFaults.join(", ")}\n`);
  process.exit(2);
}
const say = (line: string) => process.stdout.write(`${line}\n`);
const ended = { stop: 0, cut: 0, kill: 0, power: 0 };
let failed = 0;
let current = from;
// A deadlocked world ends the process, because the event loop is empty.
process.on("exit", (code) => {
  if (code === 13) say(`seed ${current}: waits for something that never happens`);
});
for (let seed = from; seed < from + seeds; seed++) {
  current = seed;
  const found = await simulate(seed, plant, values.remote);
  for (const how of ["stop", "cut", "kill", "power"] as const) ended[how] += found.world.ended[how];
  if (found.violations.length === 0) continue;
  failed++;
  for (const violation of found.violations.slice(0, 8)) say(`seed ${seed}: ${violation}`);
  if (plant !== undefined) break;
}
say(
  `seeds from ${from}: ${failed} of ${seeds} breach an invariant; ${ended.stop} stops, ${ended.cut} killed in a stop, ` +
    `${ended.kill} kills, ${ended.power} power cuts`,
);
process.exit(failed === 0 ? 0 : 1);
