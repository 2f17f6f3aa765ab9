import { expect, test } from "vitest";
import { withoutTsxUrls } from "../../src/model/stack-without-tsx-urls.ts";

const text = encodeURIComponent('const f = () => { throw new Error("?filePath=none"); };');
const path = encodeURIComponent("/home/ann/my graphs/a(1).ts?namespace=heddle-0f");

test.each([
  [
    "with a function's name",
    `    at run (data:text/javascript,${text}?filePath=${path}:2:10)`,
    "    at run (/home/ann/my graphs/a(1).ts)",
  ],
  [
    "without one",
    `    at data:text/javascript,${text}?filePath=${path}:2:10`,
    "    at /home/ann/my graphs/a(1).ts",
  ],
  [
    "a path that cannot be decoded",
    "    at data:text/javascript,x?filePath=%E0:1:1",
    "    at data:text/javascript,x?filePath=%E0:1:1",
  ],
  ["no path", "    at data:text/javascript,x:1:1", "    at data:text/javascript,x:1:1"],
  ["an ordinary file", "    at file:///a.ts:1:1", "    at file:///a.ts:1:1"],
])("of a stack's lines: %s", (_, line, shown) => {
  expect(withoutTsxUrls(`Error: one\n${line}\n    at file:///b.ts:1:2`)).toBe(
    `Error: one\n${shown}\n    at file:///b.ts:1:2`,
  );
});

test("a long line of nothing but beginnings takes no time to speak of", () => {
  const stack = "data:text/javascript,".repeat(100_000);
  expect(withoutTsxUrls(stack)).toBe(stack);
});

test("a long path of nothing but question marks takes no time to speak of", () => {
  const line = `    at data:text/javascript,x?filePath=/a${"%3F".repeat(100_000)}/b.ts%3Fx:1:1`;
  const from = performance.now();
  // The query is removed, the rest of the path stays.
  expect(withoutTsxUrls(line)).toBe(`    at /a${"?".repeat(100_000)}/b.ts`);
  // A former version took seconds.
  expect(performance.now() - from).toBeLessThan(500);
});
