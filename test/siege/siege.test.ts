import { beforeAll, expect, test } from "vitest";
import { build } from "../config/process.ts";
import { attacks } from "./attacks/index.ts";
import { besiege } from "./siege.ts";

beforeAll(build, 300_000);

/** Milliseconds: the preparation takes as long as the machine is busy. The attack limits what the others wait for. */
const LONGEST = 300_000;

test.each(attacks.filter(({ small }) => small !== undefined))(
  "no client stalls the others or takes the memory: $name",
  { timeout: LONGEST },
  async (attack) => {
    const { breaches } = await besiege(attack, "small");
    expect(breaches).toEqual([]);
  },
);

test("a breach is seen: a bound of nothing is breached by anything", async () => {
  const [first] = attacks;
  if (first === undefined) throw new Error("there are no attacks");
  const { prepare: _, ...bare } = first;
  const none = { size: undefined, wait: -1, memory: -1 };
  const attack = () => Promise.reject(new Error("was refused"));
  const { breaches } = await besiege({ ...bare, small: none, attack }, "small");
  expect(breaches).toEqual([
    expect.stringContaining("the attack: was refused"),
    expect.stringContaining("the server was busy"),
    expect.stringContaining("the other tenant waited"),
    expect.stringContaining("memory grew by"),
  ]);
});
