import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import { MODULES_WITH_APP, PACKAGE_ROOT } from "../../src/build/package-bundles.ts";

test("every module that imports the app in the bundle is an entry point, or imported dynamically", () => {
  const sources = readdirSync(join(PACKAGE_ROOT, "src"), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts") && !path.startsWith("dashboard"))
    .map((path) => readFileSync(join(PACKAGE_ROOT, "src", path), "utf8"));
  const isImported = (module: string) =>
    sources.some((source) =>
      new RegExp(`import\\(["'][./a-z-]*/${basename(module)}\\.ts["']|entryUrl\\("${module}"\\)`).test(
        source,
      ),
    );
  expect(MODULES_WITH_APP.filter((module) => !isImported(module))).toEqual([]);
});
