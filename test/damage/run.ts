/**
 * `npm run damage -- --trials N [--seed S]`: damages a data directory N times. Exits with 1 if a loss was silent or an
 * answer wrong.
 */
import { numberOf, readOptions } from "../../bench/options.ts";
import { KINDS, PLACES } from "./trial.ts";
import { runTrials } from "./trials.ts";

const values = readOptions({ trials: { type: "string", default: "300" }, seed: { type: "string" } });
const seed =
  values.seed === undefined
    ? Math.floor(Math.random() * 2 ** 20)
    : numberOf("seed", values.seed, { least: 0 });
const say = (line: string): void => void process.stdout.write(`${line}\n`);
say(`seed ${seed}`);
const { trials, threads } = await runTrials(
  { trials: numberOf("trials", values.trials, { least: 1 }), loads: 10, seed },
  say,
);
say(
  "| place | kind | trials | told | threads refused | of them unharmed | nothing served | silent | wrong |",
);
say("|---|---|---|---|---|---|---|---|---|");
for (const place of PLACES) {
  for (const kind of KINDS) {
    const of = trials.filter((trial) => trial.place === place && trial.kind === kind);
    const sum = (figure: (trial: (typeof of)[number]) => number): number =>
      of.reduce((all, trial) => all + figure(trial), 0);
    say(
      `| ${place} | ${kind} | ${of.length} | ${sum(({ isTold }) => Number(isTold))} | ${sum(({ refused }) => refused)} | ` +
        `${sum(({ refusedWhole }) => refusedWhole)} | ${sum(({ isRefused }) => Number(isRefused))} | ` +
        `${sum(({ silent }) => Number(silent.length > 0))} | ${sum(({ wrong }) => Number(wrong.length > 0))} |`,
    );
  }
}
const [silent, wrong] = [
  trials.filter((trial) => trial.silent.length > 0),
  trials.filter((trial) => trial.wrong.length > 0),
];
const differ = trials.filter((trial) => !trial.isAgreed).length;
say(
  `seed ${seed}: ${trials.length} trials on 10 loads of ${threads} threads: ${silent.length} silent, ${wrong.length} wrong, ${differ} where start and check differ`,
);
process.exit(silent.length + wrong.length + differ === 0 ? 0 : 1);
