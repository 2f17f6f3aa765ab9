import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { DASHBOARD_PAGES } from "../../src/dashboard/app/dashboard-pages.ts";

const root = join(import.meta.dirname, "../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");

test("each page of the dashboard has a name and a key of its own", () => {
  // `g` and `n` opens the form of a new thread, whose address is `#/new`.
  const names = ["new", ...DASHBOARD_PAGES.map(({ name }) => name)];
  const keys = ["n", ...DASHBOARD_PAGES.map(({ key }) => key)];
  expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
  expect(keys.filter((key, i) => keys.indexOf(key) !== i)).toEqual([]);
});

test("the guide has a picture of each page", () => {
  const guide = read("src/guide/inspector.md");
  const script = read("test/browser/picture.ts");
  for (const { name, title } of DASHBOARD_PAGES) {
    expect(guide).toContain(`![${title}: light, dark and narrow](../../.github/pages/${name}.jpg)`);
    expect(script).toContain(`\n  ${name}: [`);
  }
});

test("each style sheet is imported by that of a page", () => {
  const pages = ["dashboard.css", "docs.css", "inspector.css"].map((file) => read(`src/dashboard/${file}`));
  const isImported = (file: string) => pages.some((css) => css.includes(`"./styles/${file}"`));
  expect(readdirSync(join(root, "src/dashboard/styles")).filter((file) => !isImported(file))).toEqual([]);
});
