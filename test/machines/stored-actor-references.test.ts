import { expect, test } from "vitest";
import { hasActorReference } from "../../src/machines/stored-actor-references.ts";

test("references to actors are found at any level, also in a list of many elements", () => {
  const many = Array.from({ length: 300_000 }, (_, index) => index);
  expect(hasActorReference({ many })).toBe(false);
  const reference = { xstate$$type: 1, id: "child" };
  expect(hasActorReference({ many: [...many, { deep: [reference] }] })).toBe(true);
  expect(hasActorReference([reference], (id) => id === "child")).toBe(false);
});
