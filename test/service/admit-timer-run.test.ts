import { expect, test } from "vitest";
import { createTimerHandler } from "../../src/service/admit-timer-run.ts";
import type { Runs } from "../../src/service/runs.ts";
import type { Journal } from "../../src/ports/journal.ts";

const TIMER = { id: "t", due: 1 };

test("of the timers of one tenant that are due at once a few are admitted together; those of another do not wait", async () => {
  const admitted: string[] = [];
  const ends: (() => void)[] = [];
  const thread = { checkpoint: null, metadata: { assistant_id: "a" }, timers: [{ ...TIMER, run: null }] };
  const journal = { thread: () => thread } as unknown as Journal;
  const runs = {
    start: ({ tenant }: { readonly tenant: string }) => {
      admitted.push(tenant);
      return new Promise<void>((resolve) => ends.push(resolve));
    },
  } as unknown as Pick<Runs, "start">;
  const take = createTimerHandler({ engine: {}, journal, runs });
  const all = Array.from({ length: 6 }, (_, i) => take({ tenant: "one", thread: `${i}` }, TIMER));
  const other = take({ tenant: "two", thread: "0" }, TIMER);
  await new Promise(setImmediate);
  expect(admitted).toEqual(["one", "one", "one", "one", "two"]);
  while (ends.length > 0) {
    for (const end of ends.splice(0)) end();
    // oxlint-disable-next-line no-await-in-loop -- the next ones are admitted only then
    await new Promise(setImmediate);
  }
  expect(await Promise.all([...all, other])).toEqual(Array.from({ length: 7 }, () => true));
  expect(admitted).toHaveLength(7);
});
