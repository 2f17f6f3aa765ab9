import { mkdirSync, mkdtempSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { BuildMark, hashBuildInputs } from "../../src/build/build-freshness.ts";

function aPackage(): string {
  const root = mkdtempSync(join(tmpdir(), "heddle-inputs-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  for (const folder of ["src/deep", "actors", "dist/src", "node_modules"])
    mkdirSync(join(root, folder), { recursive: true });
  for (const [name, text] of [
    ["src/a.ts", "a"],
    ["src/deep/b.ts", "b"],
    ["actors/c.ts", "c"],
    ["package.json", "{}"],
    ["node_modules/.package-lock.json", "{}"],
    ["dist/src/cli.js", ""],
  ] as const)
    writeFileSync(join(root, name), text);
  return root;
}

test.each<[string, (root: string) => void]>([
  [
    "a source that changes, though it gets an old time",
    (root) => {
      writeFileSync(join(root, "src/deep/b.ts"), "B");
      utimesSync(join(root, "src/deep/b.ts"), 1, 1);
    },
  ],
  ["a source that is deleted", (root) => rmSync(join(root, "actors/c.ts"))],
  ["a source that is added, though it is empty", (root) => writeFileSync(join(root, "src/new.ts"), "")],
  ["a source that gets another name", (root) => renameSync(join(root, "src/a.ts"), join(root, "src/z.ts"))],
  [
    "text that moves from one source to the next",
    (root) => {
      writeFileSync(join(root, "src/a.ts"), "");
      writeFileSync(join(root, "src/deep/b.ts"), "ab");
    },
  ],
  [
    "another version of a package",
    (root) => writeFileSync(join(root, "node_modules/.package-lock.json"), "{ }"),
  ],
])("%s: the build is old", (_, change) => {
  const root = aPackage();
  const mark = new BuildMark(join(root, "dist"));
  mark.write(hashBuildInputs(root));
  expect(mark.matches(hashBuildInputs(root))).toBe(true);
  change(root);
  expect(mark.matches(hashBuildInputs(root))).toBe(false);
});

test("a build is not there before it is complete, nor after it was deleted", () => {
  const root = aPackage();
  const mark = new BuildMark(join(root, "dist"));
  const inputs = hashBuildInputs(root);
  expect(mark.matches(inputs)).toBe(false);
  mark.write(inputs);
  // A change of the modification time alone makes no difference.
  utimesSync(join(root, "src/a.ts"), new Date(), new Date());
  expect(mark.matches(hashBuildInputs(root))).toBe(true);
  rmSync(join(root, "dist/src/cli.js"));
  expect(mark.matches(inputs)).toBe(false);
  writeFileSync(join(root, "dist/src/cli.js"), "");
  mark.remove();
  expect(mark.matches(inputs)).toBe(false);
});
