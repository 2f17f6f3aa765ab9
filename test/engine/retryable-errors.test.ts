import { expect, test } from "vitest";
import { ServiceError } from "../../src/index.ts";
import { isRetryable } from "../../src/engine/retryable-errors.ts";
import { graph, value } from "../../src/index.ts";

const rule = (retry: object | number) =>
  graph({
    state: { n: value(0) },
    nodes: { a: { run: async () => {}, retry } },
    edges: { start: "a" },
  }).nodes.get("a")?.retry as Parameters<typeof isRetryable>[0];

test.each<[boolean, string, unknown]>([
  [true, "an error", new Error("x")],
  [true, "a text", "x"],
  [true, "nothing", undefined],
  [true, "a server's failure", Object.assign(new Error("x"), { status: 503 })],
  [true, "a time-out of a request", { status: 408 }],
  [true, "too many requests", { status: 429 }],
  [false, "a request that is wrong", { status: 400 }],
  [false, "one that is not allowed", { response: { status: 401 } }],
  [false, "an abort", new DOMException("x", "AbortError")],
  [false, "what Heddle refuses", new ServiceError("value.unstorable", "x")],
  [
    false,
    "a trap",
    {
      get status() {
        throw new Error("trap");
      },
    },
  ],
])("%s: %s", (expected, _, thrown) => expect(isRetryable(rule(3), thrown)).toBe(expected));

test("`when` has the word, also over what is not tried again by default; one that throws says no", () => {
  const is = (thrown: unknown, when: (error: unknown) => boolean) => isRetryable(rule({ when }), thrown);
  expect(is({ status: 400 }, (error) => (error as { status: number }).status === 400)).toBe(true);
  expect(is(new Error("x"), () => false)).toBe(false);
  expect(is(new Error("x"), () => JSON.parse("{") as boolean)).toBe(false);
});
