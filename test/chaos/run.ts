/**
 * `npm run chaos -- --kills N [--seconds S] [--seed X] [--threads N] [--clients N] [--longest MS] [--plant NAME] [--hosted]`: kills a
 * server under load N times. Ends with 1 when an invariant was breached; with a planted fault it has to.
 */
import { parseArgs } from "node:util";
import { runChaos } from "./driver.ts";

/** Violations of one invariant that are told in full. */
const MOST = 8;

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "20" },
    seconds: { type: "string" },
    seed: { type: "string" },
    threads: { type: "string", default: "50" },
    clients: { type: "string", default: "24" },
    longest: { type: "string", default: "3000" },
    plant: { type: "string" },
    hosted: { type: "boolean", default: false },
  },
});
const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed);
if (!Number.isSafeInteger(seed)) throw new TypeError(`--seed ${values.seed} is no whole number`);
process.stdout.write(`seed ${seed}\n`);
const outcome = await runChaos({
  kills: Number(values.kills),
  seed,
  threads: Number(values.threads),
  clients: Number(values.clients),
  hosted: values.hosted,
  longest: Number(values.longest),
  ...(values.seconds === undefined ? {} : { seconds: Number(values.seconds) }),
  ...(values.plant === undefined ? {} : { plant: values.plant }),
  say: (line) => process.stdout.write(`${line}\n`),
});
const told = new Map<string, number>();
for (const { invariant, message, evidence } of outcome.violations) {
  const count = (told.get(invariant) ?? 0) + 1;
  told.set(invariant, count);
  if (count > MOST) continue;
  process.stdout.write(
    `\n${invariant}: ${message}\n${JSON.stringify(evidence, undefined, 1)?.slice(0, 4000)}\n`,
  );
}
for (const [invariant, count] of told) {
  if (count > MOST) process.stdout.write(`\n${invariant}: ${count - MOST} more\n`);
}
process.stdout.write(
  `\nseed ${seed}: ${outcome.kills} kills, ${outcome.operations} operations, ${outcome.runs} runs acknowledged ` +
    `(${outcome.alone} without a thread), ` +
    `${outcome.events} events received, ${outcome.violations.length} violations` +
    `${outcome.directory === undefined ? "" : `; kept: ${outcome.directory}`}\n`,
);
process.exit(outcome.violations.length === 0 ? 0 : 1);
