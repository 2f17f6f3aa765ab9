import { readdirSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join } from "node:path";
import { expect, test } from "vitest";
import { EXTERNAL_PACKAGES, PACKAGE_ROOT } from "../../src/build/package-bundles.ts";

/** The packages that the server's source files import dynamically. */
function importedOnDemand(): Set<string> {
  const names = new Set<string>();
  for (const folder of ["src", "actors"]) {
    for (const path of readdirSync(join(PACKAGE_ROOT, folder), { recursive: true, encoding: "utf8" })) {
      if (!path.endsWith(".ts") || path.startsWith("dashboard") || path.startsWith("build")) continue;
      const text = readFileSync(join(PACKAGE_ROOT, folder, path), "utf8");
      for (const [, name = ""] of text.matchAll(/(?<!typeof )\bimport\("([^".][^"]*)"\)/g))
        if (!isBuiltin(name)) names.add(name);
    }
  }
  return names;
}

test("packages imported on demand stay outside the bundle, where they find their own files", () => {
  const matches = (name: string) =>
    EXTERNAL_PACKAGES.some((one) =>
      one.endsWith("*") ? name.startsWith(one.slice(0, -1)) : name === one || name.startsWith(`${one}/`),
    );
  const names = [...importedOnDemand()];
  expect(names).toEqual(expect.arrayContaining(["esbuild", "tsx/cjs/api", "prom-client"]));
  expect(names.filter((name) => !matches(name))).toEqual([]);
});
