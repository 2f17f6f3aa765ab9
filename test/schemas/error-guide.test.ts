import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type ErrorCode, ServiceError } from "../../src/model/errors.ts";
import { failureResponseOf } from "../../src/schemas/error-to-response.ts";

const read = (path: string) => readFileSync(join(import.meta.dirname, "../../src", path), "utf8");

test("the guide has every error code with its status, a cause and a remedy, and no other code", () => {
  const codes = [...read("model/errors.ts").matchAll(/^ {2}\| "([\w.]+)"/gm)].map(
    ([, code]) => code as ErrorCode,
  );
  expect(codes.length).toBeGreaterThan(30);
  const rows = [...read("guide/errors.md").matchAll(/^\| `([^`]+)` \| (\d+) \| \S.* \| \S.* \|$/gm)];
  const documented = rows.map(([, code, status]) => `${code} ${status}`);
  expect(documented.toSorted()).toEqual(
    codes.map((code) => `${code} ${failureResponseOf(new ServiceError(code, "")).status}`).toSorted(),
  );
});

test("the guide names the code that the refusal of a run's input has, and no other", () => {
  const row = (code: string) =>
    read("guide/errors.md")
      .split("\n")
      .find((line) => line.startsWith(`| \`${code}\``));
  expect(row("validation.failed")).toMatch(/\binput\b/);
  expect(row("state.invalid")).not.toMatch(/\binput\b/i);
});
