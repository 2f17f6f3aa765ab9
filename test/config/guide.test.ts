import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { servedKeys } from "../../src/config/config-keys.ts";

const read = (path: string) => readFileSync(join(import.meta.dirname, "../../src", path), "utf8");

test("the guide's table of the configuration names every key that is read", () => {
  const keys = servedKeys();
  expect(keys.length).toBeGreaterThan(50);
  const rows = read("guide/configuration.md")
    .split("\n")
    .filter((line) => line.startsWith("| `"));
  const isNamed = (key: string) =>
    rows.some((row) => {
      const [, section = ""] = /^\| `([^`]+)`/.exec(row) ?? [];
      const rest = key === section ? "" : key.replace(`${section}.`, "");
      return (
        key === section ||
        (key.startsWith(`${section}.`) && row.includes(`\`${rest}\``)) ||
        row.includes(`\`${key}\``)
      );
    });
  expect(keys.filter((key) => !isNamed(key))).toEqual([]);
});
