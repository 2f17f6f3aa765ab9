import { expect, test } from "vitest";
import { toPlainError, ServiceError } from "../../src/model/errors.ts";

test.each([
  [new TypeError("kaboom"), { error: "TypeError", message: "kaboom" }],
  [new ServiceError("state.invalid", "no such key"), { error: "InvalidUpdateError", message: "no such key" }],
  [
    new ServiceError("resume.invalid", "nothing waits"),
    { error: "InvalidResumeError", message: "nothing waits" },
  ],
  [new ServiceError("journal.damaged", "a hole"), { error: "ServiceError", message: "a hole" }],
  ["a text", { error: "Error", message: "a text" }],
  [null, { error: "Error", message: "null" }],
  [{ message: "like one" }, { error: "Error", message: "like one" }],
  [{ a: 1 }, { error: "Error", message: '{"a":1}' }],
])("%j is told as an error's name and message", (thrown, told) => {
  expect(toPlainError(thrown)).toEqual(told);
});
