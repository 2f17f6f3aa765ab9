import { expect, test } from "vitest";
import type { Ctx } from "../../src/index.ts";
import { attempt } from "./attempt.ts";

async function context(): Promise<Ctx> {
  let seen: Ctx | undefined;
  await attempt((ctx) => {
    seen = ctx;
    return {};
  });
  return seen as Ctx;
}

test("accessors are the same for all contexts: their own would keep a whole run until a full collection", async () => {
  const accessors = async () =>
    Object.values(Object.getOwnPropertyDescriptors(await context())).flatMap(({ get }) => get ?? []);
  const [some, others] = [await accessors(), await accessors()];
  expect(some.length).toBeGreaterThan(0);
  expect(others.length).toBe(some.length);
  expect(others.every((get, i) => get === some[i])).toBe(true);
});

test("a copy has all that the context has", async () => {
  const told: unknown[] = [];
  const { facts } = await attempt((ctx) => {
    const copy = { ...ctx };
    told.push(copy.signal === ctx.signal, copy.log === ctx.log);
    copy.emit("told by a copy");
    return {};
  });
  expect(told).toEqual([true, true]);
  expect(facts).toMatchObject([{ t: "custom", json: '"told by a copy"' }]);
});
