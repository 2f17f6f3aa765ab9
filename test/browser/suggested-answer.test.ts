import { describe, expect, test } from "vitest";
import { suggestAnswerMethod } from "../../src/dashboard/threads/suggested-answer-method.ts";

const labels = (value: unknown) => suggestAnswerMethod(value).choices?.map(({ label }) => label) ?? null;

describe("the input for the answer to a question without a schema", () => {
  test.each([
    ["What is its name?", "text"],
    [{ question: "Book a flight?" }, "text"],
    [{ draft: "Draft 1 about tea", pages: 2 }, "text"],
    ["Do you approve this transfer?", "yes"],
    [{ question: "Are you sure?", amount: 5 }, "yes"],
    [{ message: "Please confirm: send it?" }, "yes"],
    // These ask for something else than yes or no.
    ["Which plan do you approve?", "text"],
    ["Approve it or reject it?", "text"],
    ["Approve this by typing the code.", "text"],
    [{ question: "Go on?", options: ["go", "stay"] }, "choice"],
    [{ count: 3 }, "json"],
    [[1, 2], "json"],
    [null, "json"],
  ] as const)("to %j is %s", (value, method) => {
    expect(suggestAnswerMethod(value).method).toBe(method);
  });

  test("has the answers that the question lists, with the values that it gives them", () => {
    const options = [{ label: "Small", value: 1 }, { value: { size: "large" } }];
    expect(suggestAnswerMethod({ question: "Which?", options }).choices).toEqual([
      { label: "Small", value: 1 },
      { label: '{"size":"large"}', value: { size: "large" } },
    ]);
    expect(labels({ choices: ["a", 2, true] })).toEqual(["a", "2", "true"]);
  });

  test("has the answers that end a text", () => {
    expect(suggestAnswerMethod("Continue? (yes/no)").choices).toEqual([
      { label: "yes", value: "yes" },
      { label: "no", value: "no" },
    ]);
    expect(labels({ question: "What next [approve / edit / reject]?" })).toEqual([
      "approve",
      "edit",
      "reject",
    ]);
  });

  test.each([
    [{ question: "Which?", options: [] }],
    [{ question: "Which?", options: ["a", { id: 1 }] }],
    [{ question: "Which?", options: Array.from({ length: 9 }, (_, i) => i) }],
    ["See docs (https://example.com/a) and decide"],
    ["Is it a file (/etc/hosts)?"],
    ["How fast (km/h)?"],
  ])("has no buttons for %j", (value) => {
    expect(labels(value)).toBeNull();
  });
});
