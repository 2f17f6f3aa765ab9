/**
 * `npm run chaos -- --kills N [--stops N] [--seconds S] [--seed X] [--threads N] [--clients N] [--longest MS] [--plant
 * NAME] [--hosted]`: kills a server under load N times, and stops it gracefully N times. Exits with 1 if an invariant
 * was violated; with a planted fault this is expected.
 */
import { numberOf, readOptions } from "../../bench/options.ts";
import { runChaos } from "./driver.ts";

/** The number of violations of one invariant that are printed in full. */
const MOST = 8;

const values = readOptions({
  kills: { type: "string", default: "20" },
  stops: { type: "string", default: "0" },
  seconds: { type: "string" },
  seed: { type: "string" },
  threads: { type: "string", default: "50" },
  clients: { type: "string", default: "24" },
  longest: { type: "string", default: "3000" },
  plant: { type: "string" },
  hosted: { type: "boolean", default: false },
});
const { seconds, plant } = values;
const seed =
  values.seed === undefined
    ? Math.floor(Math.random() * 2 ** 31)
    : numberOf("seed", values.seed, { least: 0 });
const stops = numberOf("stops", values.stops, { least: 0 });
const kills = numberOf("kills", values.kills, { least: stops > 0 ? 0 : 1 });
process.stdout.write(`seed ${seed}\n`);
const outcome = await runChaos({
  kills,
  stops,
  seed,
  threads: numberOf("threads", values.threads, { least: 1 }),
  clients: numberOf("clients", values.clients, { least: 1 }),
  hosted: values.hosted,
  longest: numberOf("longest", values.longest, { least: 1 }),
  ...(seconds === undefined ? {} : { seconds: numberOf("seconds", seconds, { least: 1 }) }),
  ...(plant === undefined ? {} : { plant }),
  say: (line) => process.stdout.write(`${line}\n`),
});
const reported = new Map<string, number>();
for (const { invariant, message, evidence } of outcome.violations) {
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
process.exit(outcome.violations.length === 0 ? 0 : 1);
