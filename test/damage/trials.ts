import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SeededRandom } from "../chaos/random.ts";
import { type Image, makeImage } from "./load.ts";
import { KINDS, PLACES, type Trial, tryDamage } from "./trial.ts";

export interface Outcome {
  readonly trials: readonly Trial[];
  readonly threads: number;
}

/** Creates `loads` data directories, and damages copies of them `trials` times, with kinds and places in turn. */
export async function runTrials(
  { trials, loads, seed }: { readonly trials: number; readonly loads: number; readonly seed: number },
  say: (line: string) => void,
): Promise<Outcome> {
  const room = mkdtempSync(join(tmpdir(), "heddle-damage-"));
  try {
    const images: Image[] = [];
    for (let n = 0; n < loads; n++) {
      const directory = join(room, `load-${n}`);
      mkdirSync(directory);
      images.push(await makeImage(directory, new SeededRandom(seed + n), n % 2 === 0));
    }
    const done: Trial[] = [];
    for (let n = 0; n < trials; n++) {
      const directory = join(room, "trial");
      mkdirSync(directory);
      const [kind, place] = [KINDS[n % 4], PLACES[Math.floor(n / 4) % 4]] as [Trial["kind"], Trial["place"]];
      const image = images[Math.floor(n / 16 + n) % loads] as Image;
      const trial = await tryDamage(image, directory, new SeededRandom(seed * 1000 + n), kind, place);
      rmSync(directory, { recursive: true });
      done.push(trial);
      if (done.length % 50 === 0) say(`${done.length} trials`);
      const faults = [
        ...trial.silent.map((what) => `SILENT ${what}`),
        ...trial.wrong.map((what) => `WRONG ${what}`),
      ];
      if (!trial.isAgreed) faults.push("start and check differ");
      if (faults.length > 0 || trial.isRefused) {
        say(
          `trial ${n}: ${kind} in ${place} (${trial.done})${trial.isRefused ? ": nothing is served" : ""} ${faults.slice(0, 4).join("; ")}`,
        );
      }
    }
    return { trials: done, threads: images.reduce((sum, { facts }) => sum + facts.threads.size, 0) };
  } finally {
    rmSync(room, { recursive: true, force: true });
  }
}
