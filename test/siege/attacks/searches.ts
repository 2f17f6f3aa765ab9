import { type Answer, expectList } from "../client.ts";
import { defineAttack, type Siege } from "../siege.ts";

/** Returns the numbers below `count`. */
const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

/** Checks that the request was refused because of a field, which the answer names. */
export function expectRefusal({ status, start }: Answer, expected: number, what: string): void {
  if (status !== expected || !start.includes(what))
    throw new Error(`answered ${status}, not ${expected} with "${what}": ${start.slice(0, 300)}`);
}

/** Stores items of the hostile tenant, thousands at a time. */
async function putItems({ hostile }: Siege, count: number): Promise<void> {
  const batch = 50;
  for (let from = 0; from < count; from += batch) {
    await Promise.all(
      numbers(Math.min(batch, count - from)).map((i) =>
        hostile.json("PUT", "/store/items", {
          namespace: ["n"],
          key: `k${from + i}`,
          value: { n: from + i, text: "x".repeat(100) },
        }),
      ),
    );
  }
}

export const metadataFilter = defineAttack({
  name: "metadata-filter",
  sent: "a list as metadata filter against a list as long, in searches of threads, counts, assistants and crons",
  full: { size: 30_000 },
  small: { size: 5_000 },
  async prepare({ hostile }, size: number) {
    const list = numbers(size);
    for (let i = 0; i < 5; i++) await hostile.send("POST", "/threads", { metadata: { list } });
  },
  async attack({ hostile }, size) {
    const filter = numbers(size).toReversed();
    for (const path of ["/threads/search", "/threads/count", "/assistants/search", "/runs/crons/search"]) {
      expectRefusal(
        await hostile.send("POST", path, { metadata: { list: filter } }),
        422,
        "1000 members and list entries",
      );
      // As long as a filter may be, and not contained in any value.
      const list = [...filter.slice(0, 900), -1];
      const answers = await Promise.all(
        numbers(5).map(() => hostile.send("POST", path, { metadata: { list } })),
      );
      for (const { status, start } of answers) {
        if (status !== 200) throw new Error(`${path} answered ${status}: ${start.slice(0, 300)}`);
      }
    }
    const values = { values: { list: filter } };
    expectRefusal(await hostile.send("POST", "/threads/search", values), 422, "1000 members");
  },
});

export const storeIn = defineAttack({
  name: "store-in",
  sent: "a store's filter with a million operands of $in over thousands of items",
  full: { size: { items: 2_000, operands: 1_000_000 } },
  small: { size: { items: 200, operands: 200_000 } },
  prepare: (siege, { items }: { items: number; operands: number }) => putItems(siege, items),
  async attack({ hostile }, { operands }) {
    const ask = (count: number) => ({
      namespace_prefix: ["n"],
      filter: { n: { $in: numbers(count).map((n) => -1 - n) } },
      limit: 1000,
    });
    expectRefusal(await hostile.send("POST", "/store/items/search", ask(operands)), 422, "1000");
    for (const answer of await Promise.all(
      numbers(5).map(() => hostile.send("POST", "/store/items/search", ask(900))),
    ))
      expectList(answer);
  },
});

export const storeSearch = defineAttack({
  name: "store-search",
  sent: "ten searches at once of a store of many items: pages at the front, far behind, and with a filter",
  full: { size: 20_000 },
  small: { size: 1_000 },
  prepare: putItems,
  async attack({ hostile }, size: number) {
    const asked = [
      { limit: 1000 },
      { limit: 10, offset: size - 20 },
      { limit: 10, filter: { n: -1 } },
      { limit: 10, filter: { n: { $gte: size - 5 } } },
      { limit: 1, offset: 1_000_000_000 },
    ];
    const answers = await Promise.all(
      [...asked, ...asked].map((page) =>
        hostile.send("POST", "/store/items/search", { namespace_prefix: ["n"], ...page }),
      ),
    );
    for (const answer of answers) expectList(answer);
  },
});
