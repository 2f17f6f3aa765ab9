import type { Setup, Slots } from "./process.ts";
import type { Dice } from "./random.ts";

/** Where a server may kill itself, and how often it may come by there first: some places it passes only at a start. */
const FAILPOINTS = {
  "commit.before": 150,
  "commit.after": 150,
  "recovery.before": 1,
  "recovery.thread": 5,
} as const;

export function failpoint(dice: Dice): NonNullable<Setup["dieAt"]> {
  const [place, most] = dice.pick(Object.entries(FAILPOINTS));
  return { place, count: dice.between(1, most) };
}

/** In some lives there is room for a few runs only: the others wait for a slot, also over a kill. */
export function slots(dice: Dice): Slots | undefined {
  if (dice.chance(0.6)) return undefined;
  const some = dice.between(2, 8);
  return dice.pick([{ all: some }, { perTenant: some }, { perGraph: { chaos: some } }]);
}
