/**
 * `npm run hammer -- [--seconds N] [--seed S] [--transport uws|node]`: clients that start, cancel, delete, resume and
 * read the runs of a few threads concurrently. Exits with 1 if an answer, the log or the stored data is wrong.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { numberOf, readOptions, refuse } from "../../bench/options.ts";
import { hammer } from "./hammer.ts";

const values = readOptions({
  seconds: { type: "string", default: "60" },
  seed: { type: "string" },
  transport: { type: "string", default: "uws" },
});
const { transport } = values;
if (transport !== "uws" && transport !== "node") refuse(`--transport "${transport}" is neither uws nor node`);
const seconds = numberOf("seconds", values.seconds, { least: 1 });
const seed =
  values.seed === undefined
    ? Math.floor(Math.random() * 2 ** 31)
    : numberOf("seed", values.seed, { least: 0 });
const data = mkdtempSync(join(tmpdir(), "heddle-hammer-"));
const { answers, sent, rounds, faults } = await hammer({
  data,
  seconds,
  seed,
  transport,
  progress: (line) => void process.stderr.write(`${line}\n`),
});
for (const [told, count] of [...answers].toSorted()) process.stdout.write(`${told}: ${count}\n`);
process.stdout.write(
  `${transport}, seed ${seed}: ${sent} requests in ${rounds} rounds, ${faults.length} faults\n`,
);
for (const fault of faults) process.stdout.write(`${fault}\n`);
if (faults.length === 0) rmSync(data, { recursive: true });
else process.stdout.write(`${data} is kept\n`);
process.exit(faults.length > 0 ? 1 : 0);
