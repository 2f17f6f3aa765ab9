import type { Setup, Slots } from "./process.ts";
import type { SeededRandom } from "./random.ts";

/**
 * The failpoints at which a server may kill itself, and the largest count for each: some are passed only at a start.
 */
const FAILPOINTS = {
  "commit.before": 150,
  "commit.after": 150,
  "recovery.before": 1,
  "recovery.thread": 5,
} as const;

export function failpoint(dice: SeededRandom): NonNullable<Setup["dieAt"]> {
  const [place, most] = dice.pick(Object.entries(FAILPOINTS));
  return { place, count: dice.between(1, most) };
}

/** In some lives only a few runs may be in progress: the others wait for a slot, also across a kill. */
export function slots(dice: SeededRandom): Slots | undefined {
  if (dice.chance(0.6)) return undefined;
  const some = dice.between(2, 8);
  return dice.pick([{ all: some }, { perTenant: some }, { perGraph: { chaos: some } }]);
}
