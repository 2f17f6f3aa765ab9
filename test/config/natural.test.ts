import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { resolvesToHeddle } from "../../src/graph-loader/native-resolution-check.ts";

const ours = join(import.meta.dirname, "..", "..");
const door = join(ours, "dist", "src", "index.js");
const home = realpathSync(mkdtempSync(join(tmpdir(), "heddle-natural-")));
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** A file of a project with these additional files and links. */
function project(
  name: string,
  files: readonly string[],
  links: Readonly<Record<string, string>> = {},
): string {
  const folder = join(home, name);
  for (const file of ["a.js", ...files]) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), file.endsWith(".json") ? '{"name":"heddle"}' : "");
  }
  for (const [place, target] of Object.entries(links)) {
    mkdirSync(dirname(join(folder, place)), { recursive: true });
    symlinkSync(target, join(folder, place), "dir");
  }
  return folder;
}

const linked = { "node_modules/heddle": ours };

describe("the name heddle leads a file to the running package", () => {
  test("that it belongs to", () => {
    expect(resolvesToHeddle(join(ours, "dist", "src", "demo", "agent.js"), door)).toBe(true);
  });

  test("in the node_modules of a folder above", () => {
    const folder = project("linked", ["package.json", "graphs/deep/a.js"], linked);
    expect(resolvesToHeddle(join(folder, "a.js"), door)).toBe(true);
    expect(resolvesToHeddle(join(folder, "graphs/deep/a.js"), door)).toBe(true);
  });

  test.each<[string, string, readonly string[], Readonly<Record<string, string>>]>([
    ["there is none", "a.js", ["package.json"], {}],
    ["there is another copy", "a.js", ["node_modules/heddle/package.json"], {}],
    ["another copy is nearer", "sub/a.js", ["sub/node_modules/heddle/package.json", "sub/a.js"], linked],
    ["there is no such file", "b.js", [], linked],
  ])("not where %s", (_, file, files, links) => {
    expect(resolvesToHeddle(join(project(_, files, links), file), door)).toBe(false);
  });

  test("not where it runs from its sources, which the name does not lead to", () => {
    const folder = project("sources", [], linked);
    expect(resolvesToHeddle(join(folder, "a.js"), join(ours, "src", "index.ts"))).toBe(false);
  });
});
