/**
 * `npm run chaos -- --kills N [--stops N] [--seconds S] [--seed X] [--threads N] [--clients N] [--longest MS] [--plant
 * NAME] [--hosted]`: kills a server under load N times, and stops it gracefully N times. `npm run chaos -- --cluster
 * [--faults N] [--only FAULT] [--seconds S] [--seed X] [--threads N] [--clients N] [--longest MS]`: breaks something of
 * a cluster under load N times. Exits with 1 if an invariant was violated; with a planted fault this is expected.
 */
import { spawnSync } from "node:child_process";
import { numberOf, readOptions, refuse } from "../../bench/options.ts";
import { FAULTS, type FaultName } from "./cluster/faults.ts";
import type { Violation } from "./ledger.ts";

/** The number of violations of one invariant that are printed in full. */
const MOST = 8;

const values = readOptions({
  kills: { type: "string" },
  stops: { type: "string" },
  cluster: { type: "boolean", default: false },
  faults: { type: "string" },
  only: { type: "string" },
  seconds: { type: "string" },
  seed: { type: "string" },
  threads: { type: "string", default: "50" },
  clients: { type: "string" },
  longest: { type: "string" },
  plant: { type: "string" },
  hosted: { type: "boolean", default: false },
});
const { seconds, plant, cluster, only } = values;
for (const [name, isOfCluster] of Object.entries({
  kills: false,
  stops: false,
  plant: false,
  faults: true,
  only: true,
})) {
  if (values[name as keyof typeof values] !== undefined && isOfCluster !== cluster)
    refuse(`--${name} is not an option ${cluster ? "with" : "without"} --cluster`);
}
if (cluster && values.hosted) refuse("--hosted is not an option with --cluster");
if (only !== undefined && !FAULTS.some((fault) => fault === only))
  refuse(`--only "${only}" is no fault; there are: ${FAULTS.join(", ")}`);
const seed =
  values.seed === undefined
    ? Math.floor(Math.random() * 2 ** 31)
    : numberOf("seed", values.seed, { least: 0 });
const shared = {
  seed,
  threads: numberOf("threads", values.threads, { least: 1 }),
  ...(seconds === undefined ? {} : { seconds: numberOf("seconds", seconds, { least: 1 }) }),
  ...(values.longest === undefined ? {} : { longest: numberOf("longest", values.longest, { least: 1 }) }),
  ...(values.clients === undefined ? {} : { clients: numberOf("clients", values.clients, { least: 1 }) }),
  say: (line: string) => process.stdout.write(`${line}\n`),
};
process.stdout.write(`seed ${seed}\n`);
process.exit((cluster ? await breakCluster() : await killServer()).length === 0 ? 0 : 1);

async function killServer(): Promise<readonly Violation[]> {
  const stops = numberOf("stops", values.stops ?? "0", { least: 0 });
  const kills = numberOf("kills", values.kills ?? "20", { least: stops > 0 ? 0 : 1 });
  const { runChaos } = await import("./driver.ts");
  const outcome = await runChaos({
    ...shared,
    kills,
    stops,
    hosted: values.hosted,
    ...(plant === undefined ? {} : { plant }),
  });
  print(outcome.violations);
  if (outcome.kills < kills || outcome.stops < stops) {
    const why = outcome.violations.length > 0 ? "a violation" : "the time limit";
    process.stdout.write(`\nended early, by ${why}: ${kills} kills and ${stops} stops were asked for\n`);
  }
  process.stdout.write(
    `\nseed ${seed}: ${outcome.kills} kills, ${outcome.stops} stops, ${outcome.operations} operations, ${outcome.runs} runs acknowledged ` +
      `(${outcome.stateless} without a thread), ` +
      `${outcome.events} events received, ${outcome.machineEvents} events sent to machines, ${outcome.repeated} requests sent again, ${outcome.violations.length} violations` +
      `${outcome.directory === undefined ? "" : `; kept: ${outcome.directory}`}\n`,
  );
  return outcome.violations;
}

async function breakCluster(): Promise<readonly Violation[]> {
  const faults = numberOf("faults", values.faults ?? "20", { least: 1 });
  const { status } = spawnSync("npm", ["run", "--silent", "build", "--", "--if-changed"], {
    stdio: "inherit",
  });
  if (status !== 0) refuse("the package cannot be built");
  const { runClusterChaos } = await import("./cluster/driver.ts").catch((error: unknown) => {
    if ((error as { readonly code?: string }).code !== "ERR_MODULE_NOT_FOUND") throw error;
    return refuse(`PostgreSQL is missing, which comes with "npm install": ${String(error)}`);
  });
  const outcome = await runClusterChaos({
    ...shared,
    faults,
    ...(only === undefined ? {} : { only: [only as FaultName] }),
  });
  print(outcome.violations);
  const caused = [...outcome.faults.values()].reduce((sum, count) => sum + count, 0);
  if (caused < faults) {
    const why = outcome.violations.length > 0 ? "a violation" : "the time limit";
    process.stdout.write(`\nended early, by ${why}: ${faults} faults were asked for\n`);
  }
  for (const [name, count] of outcome.faults) process.stdout.write(`${count} x ${name}\n`);
  const sorted = outcome.recoveries.toSorted((one, other) => one - other);
  process.stdout.write(
    `\nseed ${seed}: ${caused} faults, ${outcome.operations} operations and ${outcome.lost} cut short, ${outcome.cuts} connections cut during verifications, ${outcome.runs} runs acknowledged ` +
      `(${outcome.stateless} without a thread), ${outcome.events} events received, ${outcome.machineEvents} events sent to machines; ` +
      `${outcome.entries} entries in the logs, ${outcome.takeovers} takeovers, ${outcome.begunAgain} tasks begun again, ${outcome.copies} databases of nodes compared; all shards served ` +
      `${sorted[Math.floor(sorted.length / 2)]} ms after a fault (median), ${sorted.at(-1)} ms at most; ${outcome.violations.length} violations` +
      `${outcome.directory === undefined ? "" : `; kept: ${outcome.directory}`}\n`,
  );
  return outcome.violations;
}

function print(violations: readonly Violation[]): void {
  const reported = new Map<string, number>();
  for (const { invariant, message, evidence } of violations) {
    const count = (reported.get(invariant) ?? 0) + 1;
    reported.set(invariant, count);
    if (count > MOST) continue;
    process.stdout.write(
      `\n${invariant}: ${message}\n${JSON.stringify(evidence, undefined, 1)?.slice(0, 4000)}\n`,
    );
  }
  for (const [invariant, count] of reported) {
    if (count > MOST) process.stdout.write(`\n${invariant}: ${count - MOST} more\n`);
  }
}
